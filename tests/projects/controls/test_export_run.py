"""A real training, shortened: what it delivers runs as it was judged, and can be delivered anew at any time."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.tasks import StopRequested
from engines.thresholds.objectives import F1_LESS_ALARMS
from engines.thresholds.review import About, write_review
from engines.thresholds.sweep import Sweep
from engines.training import trained as opening
from engines.training.engine import train
from projects.controls import export_run
from projects.controls.batches import WindowSource
from projects.controls.config import ControlsConfig
from projects.controls.export import FILES
from projects.controls.export_run import export
from projects.controls.exported import read_exported
from projects.controls.layout import BINARY
from projects.controls.policy import ControlPolicy
from projects.controls.recordings import Recording, write_recording
from projects.controls.sending import Rules
from projects.controls.split import read_split
from projects.controls.thresholds import sent_controls
from tests.projects.controls.sessions import random_session
from tests.projects.controls.task_context import Listener

CONFIG = """
project: controls
version: 2
data: {path: recordings}
model: {d_model: 32, nhead: 2, num_layers: 2, dim_feedforward: 32}
training: {epochs: 3, steps_per_epoch: 8, batch_size: 16, warmup_epochs: 0, lr: 3e-3}
launch: {device: cpu, threads: 1}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, its data beside it."""
    base = tmp_path_factory.mktemp("trained")
    for k in range(5):
        write_recording(base / "recordings" / f"s{k}.npz", random_session(f"s{k}", 80 + k, k))
    (base / "config.yaml").write_text(CONFIG)
    run = launch.prepare_training(
        base / "config.yaml", [f"data.path={base / 'recordings'}"], run_dir=base / "runs" / "a-run"
    )
    assert carry_out(run, 1, train) == 0
    return base


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> RunDirectory:
    """A copy of the finished run that a test may change."""
    shutil.copytree(trained / "runs" / "a-run", tmp_path / "a-run")
    return RunDirectory(tmp_path / "a-run")


@pytest.fixture
def no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing the graph takes a second; where a test is not about it, it is a few bytes."""
    monkeypatch.setattr(export_run, "export_graph", lambda model: b"a graph")


def do_export(run: RunDirectory) -> list[str]:
    context = Listener()
    export({"run": str(run.path)}, context)
    return context.lines


def content(run: RunDirectory) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in run.export.iterdir()}


def exported_config(run: RunDirectory) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((run.export / "control_config_v2.json").read_text())
    return config


def write_config(run: RunDirectory, config: dict[str, Any]) -> None:
    (run.export / "control_config_v2.json").write_text(json.dumps(config))


def validation(run: RunDirectory) -> tuple[Recording, WindowSource]:
    settings = load_config(run.config).settings
    assert isinstance(settings, ControlsConfig)
    recordings = read_split(settings.data)[1]
    assert len(recordings) == 1
    return recordings[0], WindowSource(recordings, torch.device("cpu"), 0.0)


def test_the_policy_decides_as_the_evaluation_judged(run: RunDirectory) -> None:
    """Teacher-forced and without a margin, on every frame that is a window's target."""
    config = exported_config(run)
    config["post_processing"]["hysteresis_margin"] = 0.0
    write_config(run, config)
    session, source = validation(run)
    policy = ControlPolicy.load(run.export)
    decisions = []
    for k in range(len(session)):
        decisions.append(policy.step(session.frames[k], session.state[k], float(session.timestamps[k])))
        policy.observe(session.controls[k])
    targets = range(29, len(session))
    review = reviewed(run)
    thresholds = np.array(config["thresholds"]["action"] + config["thresholds"]["inv_click"])
    judged = review["scores"] >= thresholds
    ours = np.stack([np.concatenate([decisions[k].raw.action, decisions[k].raw.inv]) for k in targets])
    np.testing.assert_allclose(ours, review["scores"], atol=5e-6)
    assert np.array_equal(ours >= thresholds, judged)
    assert 0.02 < judged[review["masks"]].mean() < 0.98  # the case is worth something
    # what is sent of the held keys, which no cooldown changes, and the slot as the evaluation's argmax
    held = [k for k, column in enumerate(BINARY) if column in (0, 1, 2, 3, 4, 5, 8, 27)]
    sent = np.stack([decisions[k].controls[list(BINARY)] for k in targets]) > 0
    assert np.array_equal(sent[:, held], (judged & review["masks"])[:, held])
    batch = source.batch(torch.arange(len(source)), None)
    model = policy._network._model
    with torch.inference_mode():
        heads = model(batch["features"], batch["mask"])
    slots = heads["hotbar_logits"].argmax(1).numpy()
    assert [int(decisions[k].raw.hotbar.argmax()) for k in targets] == slots.tolist()
    np.testing.assert_allclose([decisions[k].raw.look for k in targets], heads["look"], atol=5e-6)
    np.testing.assert_allclose([decisions[k].raw.cursor for k in targets], heads["cursor"], atol=5e-6)


SENDING = ("times", "fps", "margins", "holds")


def reviewed(run: RunDirectory) -> dict[str, Any]:
    return {file.stem.rpartition("-")[0]: np.load(file) for file in run.review.glob("*.npy")}


def test_the_policy_sends_what_the_review_says_is_sent(run: RunDirectory) -> None:
    """Teacher-forced, from the first target of a window on, which is where a review begins."""
    config, arrays = exported_config(run), reviewed(run)
    assert config["post_processing"]["pulse_margin"] == 0.0
    assert config["features"]["frames_per_second"] == 20.0
    session, _ = validation(run)
    policy = ControlPolicy.load(run.export)
    sent = []
    for k in range(len(session)):
        if k == 29:
            policy._binary.reset()
            policy._keys.reset()
        sent.append(policy.step(session.frames[k], session.state[k], float(session.timestamps[k])).controls[[*BINARY]])
        policy.observe(session.controls[k])
    thresholds = np.array(config["thresholds"]["action"] + config["thresholds"]["inv_click"])
    rules = Rules(arrays["margins"], arrays["holds"])
    expected = sent_controls(arrays, rules, thresholds)
    assert np.array_equal(np.array(sent)[29:] > 0, expected)
    assert 0.01 < expected[arrays["masks"]].mean() < 0.9  # the case is worth something


@pytest.mark.usefixtures("no_trace")
def test_a_run_of_an_earlier_version_exports_as_it_did(run: RunDirectory) -> None:
    """Its config says nothing of pulses, its review nothing of how controls are sent."""
    tree = yaml12.read(run.config.read_text())[0]
    tree.pop("version", None)
    for key in ("pulse_margin", "kinds"):
        del tree["post_processing"][key]
    run.config.write_text(yaml12.write(tree))
    arrays = {name: array for name, array in reviewed(run).items() if name not in SENDING}
    about = msgspec.json.decode((run.review / "about.json").read_bytes(), type=About)
    write_review(run.review, arrays, about)
    do_export(run)
    config = exported_config(run)
    assert "frames_per_second" not in config["features"]
    assert list(config["post_processing"].items()) == [
        ("hysteresis_margin", 0.05), ("look_deadzone", 0.08), ("look_ema_alpha", 0.35), ("look_rate_limit", 0.3),
        ("cursor_ema_alpha", 0.5),
    ]  # fmt: skip
    for k, threshold in enumerate(config["thresholds"]["action"]):
        kept = arrays["masks"][:, k]
        quiet = arrays["idle"][kept]
        raw = Sweep(arrays["scores"][kept, k], arrays["targets"][kept, k], quiet)
        assert threshold == (raw.optimum(F1_LESS_ALARMS).threshold if arrays["targets"][kept, k].any() else 0.5)
    assert read_exported(run.export).post.rules.margins.tolist() == [0.05] * 15


@pytest.mark.usefixtures("no_trace")
def test_made_again_it_is_what_the_training_delivered_and_a_graph(run: RunDirectory) -> None:
    before = content(run)
    assert set(before) == set(FILES) - {"control_policy_v2.pt2"}
    shutil.rmtree(run.export)
    lines = do_export(run)
    after = content(run)
    assert set(after) == set(FILES)
    ours, theirs = torch.load(run.export / "control_policy_v2.pt"), torch.load(run.best)["model"]
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert after["training_log_v2.json"] == before["training_log_v2.json"]
    made, delivered = (json.loads(one["control_config_v2.json"]) for one in (after, before))
    # an epoch's values and the finish's evaluation of the same weights may differ by rounding
    values, theirs = (config["training"].pop("per_head_metrics") for config in (made, delivered))
    assert values == pytest.approx(theirs, nan_ok=True)
    assert made == delivered
    assert [line.split()[-2] for line in lines[1:]] == [f"{len(after[name]):,}" for name in FILES]


def test_the_graph_gives_what_the_policy_gives(run: RunDirectory) -> None:
    do_export(run)
    graph = torch.export.load(run.export / "control_policy_v2.pt2").module()
    model = ControlPolicy.load(run.export)._network._model
    generator = torch.Generator().manual_seed(0)
    for batch in (1, 2, 7):
        features = torch.randn(batch, 30, 671, generator=generator)
        mask = torch.arange(30) >= torch.randint(0, 30, (batch, 1), generator=generator)
        with torch.inference_mode():
            expected, found = model(features, mask), graph(features, mask)
        for head, values in expected.items():
            torch.testing.assert_close(found[head], values, atol=1e-5, rtol=0)


@pytest.mark.usefixtures("no_trace")
def test_neither_the_data_nor_an_ended_run_is_needed(run: RunDirectory, trained: Path) -> None:
    """As while it trains: nothing of the end is there, and last.pt is further than best.pt."""
    shutil.rmtree(run.export)
    run.report.unlink()
    settings = run.config.read_text()
    run.config.write_text(settings.replace(str(trained / "recordings"), "/nowhere"))
    assert "/nowhere" in run.config.read_text()
    do_export(run)
    ControlPolicy.load(run.export)


@pytest.mark.usefixtures("no_trace")
def test_reviewed_thresholds_stay_with_their_checkpoint(run: RunDirectory) -> None:
    config = exported_config(run)
    config["thresholds"]["action"][3] = 0.123
    config["thresholds_reviewed"] = True
    write_config(run, config)
    assert do_export(run)[-1] == "The reviewed thresholds are kept."
    kept = exported_config(run)
    assert kept["thresholds"] == config["thresholds"]
    assert kept["thresholds_reviewed"] is True

    kept["training"]["best_epoch"] += 1  # reviewed for another epoch
    write_config(run, kept)
    sentence = do_export(run)[-1]
    assert f"The thresholds reviewed for epoch {kept['training']['best_epoch']} are not kept" in sentence
    assert "`cockpit thresholds RUN`" in sentence
    reset = exported_config(run)
    assert reset["thresholds_reviewed"] is False
    assert reset["thresholds"]["action"][3] != 0.123
    assert do_export(run)[-1].endswith("bytes")  # nothing was reviewed: nothing to say


@pytest.mark.usefixtures("no_trace")
def test_a_damaged_config_is_no_obstacle(run: RunDirectory) -> None:
    for content in (b"{", b"[]", b'{"thresholds_reviewed": true}'):
        (run.export / "control_config_v2.json").write_bytes(content)
        do_export(run)
        ControlPolicy.load(run.export)


@pytest.mark.usefixtures("no_trace")
def test_a_full_disk_leaves_the_older_export_whole(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    do_export(run)
    before = content(run)
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        do_export(run)
    assert content(run) == before


@pytest.mark.usefixtures("no_trace")
def test_a_stop_leaves_the_older_export_whole(run: RunDirectory) -> None:
    before = content(run)
    with pytest.raises(StopRequested):
        export({"run": str(run.path)}, Listener(stop_at=2))
    assert content(run) == before


@pytest.mark.usefixtures("no_trace")
def test_a_review_ahead_of_its_checkpoint_is_waited_for(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MATCH_SECONDS", 0.0)
    about = run.review / "about.json"
    written = about.read_bytes()
    newer = json.loads(written)
    about.write_text(json.dumps({**newer, "step": newer["step"] + 8}))

    class SavedMeanwhile(Listener):
        def check(self) -> None:
            about.write_bytes(written)

    export({"run": str(run.path)}, SavedMeanwhile())
    about.write_text(json.dumps({**newer, "step": newer["step"] + 8}))
    with pytest.raises(DataError, match=r"is of step \d+ and best.pt of step \d+: the disk was full"):
        do_export(run)


@pytest.mark.usefixtures("no_trace")
def test_an_export_waits_for_no_one_who_saves_thresholds(run: RunDirectory) -> None:
    saving = "from pathlib import Path; from engines.basics.lock import RunLock; import sys; "
    saving += "assert RunLock(Path(sys.argv[1])).acquire(); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", saving, str(run.review / "save.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        before = content(run)
        with pytest.raises(DataError, match=r"export is being written right now, .* export again"):
            do_export(run)
        assert content(run) == before
        other.communicate(b"")
    (run.export / ".control_policy_v2.pt.00000000.tmp").write_bytes(b"half an export that was killed")
    do_export(run)
    assert set(content(run)) == set(FILES)


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("checkpoints/best.pt", "has no best.pt yet: it is written after the first scored epoch"),
        ("review/about.json", "has no review; the next best epoch of a resumed run writes one"),
    ],
)
def test_nothing_to_export_yet_is_a_sentence(run: RunDirectory, missing: str, sentence: str) -> None:
    (run.path / missing).unlink()
    with pytest.raises(DataError, match=sentence):
        do_export(run)


def test_a_checkpoint_of_another_size_is_a_sentence(run: RunDirectory) -> None:
    run.config.write_text(run.config.read_text().replace("d_model: 32", "d_model: 64"))
    with pytest.raises(DataError, match=r"best\.pt does not match the model of"):
        do_export(run)


def test_other_arguments_are_refused() -> None:
    with pytest.raises(UserError, match="epoch is no argument; expected run, stage or flat"):
        export({"run": "x", "epoch": 3}, Listener())
