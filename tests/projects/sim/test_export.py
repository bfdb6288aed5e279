"""What a run delivers: the script runs alone, gives the engine's numbers, and says what is missing."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engines.training.project import TrainingLog
from projects.sim.drives import write_drive
from projects.sim.export import FILES, script
from projects.sim.inference import load, main, read_telemetry
from projects.sim.labels import HIGH, TELEMETRY, ModelError
from projects.sim.project import SimProject
from tests.projects.sim.logs import random_drive
from tests.projects.sim.test_project import CONTEXT, CPU, config

LOG = TrainingLog(({"epoch": 1, "step": 4, "score": 0.5},), 1, 0.5)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an export, beside it the drives and `recording`, a folder of the first one's frames."""
    root = tmp_path_factory.mktemp("sim")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        (root / "data").mkdir()
        for k in range(5):
            write_drive(root / "data" / f"d{k}.npz", random_drive(f"d{k}", 30, k))
        cfg, project = config(root / "data"), SimProject()
        split = project.data(cfg, CPU)
        model = project.model(cfg, split).eval()
        evaluation = project.evaluation(cfg, split)
        with torch.inference_mode():
            evaluation.add(model, split.validation.batch(torch.arange(len(split.validation)), None), CONTEXT)
        project.export(cfg, root / "export", model, split, evaluation.result(), LOG)
    drive = random_drive("d0", 30, 0)
    (root / "recording").mkdir()
    assert drive.frames is not None
    for k, pixels in enumerate(drive.frames):
        Image.fromarray(pixels).save(root / "recording" / f"{k:03d}.png")
    with (root / "recording" / "telemetry.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(TELEMETRY)
        rows.writerows(drive.telemetry.tolist())
    return root / "export"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script in a process that cannot import anything of ours."""
    guard = (
        "import sys; sys.path = [p for p in sys.path if p]; sys.modules['projects'] = sys.modules['engines'] = None; "
    )
    guard += "import runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", guard, str(folder / "sim_v0_infer.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, check=False)


def test_the_script_runs_alone_and_says_of_a_recording_what_the_model_does(exported: Path) -> None:
    done = run(exported, str(exported.parent / "recording"))
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first.startswith("largest difference to the training engine: ")
    assert float(first.split()[-1]) < 1e-5
    said = [json.loads(line) for line in lines]
    assert [one["sample_id"] for one in said] == [f"{k:03d}.png" for k in range(3, 30)]
    network, settings = load(exported)
    drive = random_drive("d0", 30, 0)
    assert drive.frames is not None
    grid = drive.frames.reshape(30, 6, 2, 8, 2, 3).mean(axis=(2, 4)).transpose(0, 3, 1, 2).reshape(30, -1) / 255 - 0.5
    batch = {
        "telemetry": torch.from_numpy(drive.telemetry[10:11]),
        "vis_feats": torch.from_numpy(grid[None, 7:11]).float(),
    }
    chance = network(batch)["risk_logits"].softmax(1)[0, HIGH].item()
    assert said[7]["risk"]["probabilities"]["high"] == pytest.approx(chance, abs=1e-5)
    assert said[7]["alarm"] == (chance >= settings["thresholds"]["risk_high"])


def test_the_export_is_complete_and_names_every_label(exported: Path) -> None:
    assert sorted(path.name for path in exported.iterdir()) == sorted(FILES)
    labels = json.loads((exported / "labels.json").read_bytes())
    assert labels["risk"] == {"0": "none", "1": "low", "2": "med", "3": "high"}
    assert labels["action"]["3"] == "reverse"
    settings = json.loads((exported / "sim_v0.json").read_bytes())
    assert settings["model"]["dv"] == 144
    assert settings["training"] == {"best_epoch": 1, "best_step": 4, "best_score": 0.5}
    weights = torch.load(exported / "sim_v0.pt", weights_only=True)
    assert not any(name.startswith(("llm", "vision")) for name in weights)


def test_the_script_has_no_import_of_ours_and_one_of_each_kind() -> None:
    lines = script().splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    assert not any("projects" in line or "engines" in line for line in imports)
    assert len(imports) == len(set(imports))
    compile(script(), "sim_v0_infer.py", "exec")


def copied(exported: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes((exported / name).read_bytes())
    return folder


def test_weights_without_statistics_of_another_model_or_damaged_are_said(exported: Path, tmp_path: Path) -> None:
    weights = torch.load(exported / "sim_v0.pt", weights_only=True)
    folder = copied(exported, tmp_path)
    torch.save({name: value for name, value in weights.items() if name != "telemetry_std"}, folder / "sim_v0.pt")
    with pytest.raises(ModelError, match="lacks telemetry_std, so telemetry has no statistics"):
        load(folder)
    torch.save({**weights, "extra.weight": torch.zeros(1)}, folder / "sim_v0.pt")
    with pytest.raises(ModelError, match=r"does not fit sim_v0\.json \(other parts: extra\.weight\)"):
        load(folder)
    (folder / "sim_v0.pt").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="is no export of SIM, or damaged"):
        load(folder)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("telemetry.csv", "ax,v\n1,2\n", "telemetry.csv: cannot be read .it holds 1 rows for 30 frames"),
        ("telemetry.csv", "v\n" + 30 * "fast\n", "telemetry.csv: cannot be read .* expected a header among ax,ay"),
        ("000.png", "no picture", "000.png: cannot be read as a JPEG or PNG"),
    ],
)
def test_a_bad_recording_is_one_sentence(
    exported: Path, tmp_path: Path, file: str, content: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:

    folder = tmp_path / "recording"
    folder.mkdir()
    for path in (exported.parent / "recording").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / file).write_text(content)
    assert main([str(folder), "--export", str(exported)]) == 2
    assert re.search(said, capsys.readouterr().err)


def test_a_column_that_is_missing_is_at_its_mean(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("v\n1\n2\n")
    values = read_telemetry(tmp_path / "t.csv", 2, torch.arange(8.0))
    assert values[:, 6].tolist() == [1, 2]
    assert values[1, :6].tolist() == list(range(6))
    assert np.isfinite(values.numpy()).all()
