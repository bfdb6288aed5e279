"""One damaged run harms no other: every command answers it with numbers or a sentence, soon and without a traceback."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from cockpit.cli import starting
from engines.contract.steps import FIXED, StepWriter
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun

CASES = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "cases" / "hostile"
HAS_CASES = pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this project (../shared/data)")
GOOD, BAD = "controls-20261127-100000-amber", "controls-20261127-110000-birch"
SAID = (0, 3)
"""Exit codes without a sentence: done, and the end that a run that is followed came to."""
DEEP = b'{"id":' + b"[" * 30_000
FILES = (
    "run.json", "attempts/1.json", "attempts/1.provenance.json", "config_resolved.yaml", "attempts/config.yaml",
    "events.jsonl", "commands.jsonl", "metrics/steps/00001.json", "metrics/steps/00001.f64",
    "metrics/system/00001.json", "metrics/train_metrics.jsonl", "report.json", "review/about.json",
    "checkpoints/last.pt", "checkpoints/best.pt",
    "logs/stdout.log", "engine.lock",
)  # fmt: skip
COMMANDS = (
    "show RUN", "tail RUN --json", "log RUN", "report RUN", "metrics RUN", "metrics RUN --csv", "advice RUN",
    "plot RUN loss", "weights RUN", "thresholds RUN", f"compare RUN {GOOD}", "resume RUN", "fork RUN",
    "kill RUN", "stop RUN", "label RUN x", "note RUN x", "play RUN",
)  # fmt: skip


def sparse(path: Path) -> None:
    """Five gigabytes that take none."""
    with open(path, "wb") as file:
        file.truncate(5 << 30)


def pickled_memo(path: Path) -> None:
    """A checkpoint whose 30 bytes of pickle ask for a memo of a billion entries."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("last/data.pkl", b"\x80\x02}r\xff\xff\xff\x3f.")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\xff\xfe\x00{nonsense" * 7),
    "of another shape": lambda path: path.write_text("[1, {}, null]\n"),
    "nested too deeply": lambda path: path.write_bytes(DEEP),
    "five gigabytes": sparse,
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a memo of a billion": pickled_memo,
}
LARGE: dict[str, Callable[[Path], object]] = {
    "five megabytes of keys": lambda path: path.write_text("".join(f"key{k}: {k}\n" for k in range(330_000))),
    "300,000 names": lambda path: path.write_text(json.dumps([*FIXED, *(f"m{k}" for k in range(300_000))])),
    "300,000 values": lambda path: path.write_text(json.dumps({f"m{k}": k for k in range(300_000)})),
}


def whole_run(folder: Path, name: str) -> FakeRun:
    """A run that has ended, with something in every file that commands read."""
    fake = FakeRun(folder, name).begin().started().epochs(1, 2, best=2)
    fake.end("stopped")
    run = fake.run
    run.write_config(run.config.read_text())
    for place in (run.steps, run.system):
        place.mkdir(parents=True, exist_ok=True)
        writer = StepWriter(place, ["time", "loss"])
        writer.append(np.arange(40.0).reshape(10, 4))
        writer.close()
    run.train_metrics.write_text('{"epoch": 1, "loss": 1.0}\n')
    run.report.write_text(json.dumps({"tables": {"headline": {"columns": ["a"], "rows": [[1]]}}}))
    (run.review / "about.json").write_text("{}")
    run.stdout.write_text("a line\n")
    with zipfile.ZipFile(run.last, "w") as archive:
        archive.writestr("last/data.pkl", pickle.dumps({"state": {}}, protocol=2))
    run.best.write_bytes(run.last.read_bytes())
    return fake


def faults_of(kind: str, commands: Sequence[str], cockpit: Cockpit, runs: Path) -> list[tuple[str, str, str]]:
    """File, command and error of every answer that is neither numbers nor a sentence; each file is damaged in turn."""
    whole_run(runs, GOOD).end("finished")
    fake = whole_run(runs, BAD)
    faults = []
    for name in FILES:
        path = fake.run.path / name
        if kind == "five gigabytes" and path.suffix in (".jsonl", ".log", ".f64"):
            continue  # these may be long: they are read in pieces
        kept = path.read_bytes() if path.is_file() else None
        path.unlink(missing_ok=True)
        (DAMAGE | LARGE)[kind](path)
        for command in commands:
            try:
                answer = cockpit(*command.replace("RUN", BAD).split())
            except Exception as error:
                faults.append((name, command, repr(error)[:200]))
                continue
            assert "see `cockpit" not in answer.stderr  # it is a command
            if "Traceback" in answer.stderr or not (answer.returncode in SAID or answer.stderr.startswith("cockpit: ")):
                faults.append((name, command, answer.stderr[:200]))
        listed = cockpit("ls").stdout.splitlines()
        if not any(GOOD in line and "finished" in line for line in listed):
            faults.append((name, "ls", "the other run is not listed"))
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        if kept is not None:
            path.write_bytes(kept)
    return faults


@pytest.mark.behaviour("damaged-run-harms-no-other")
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_harms_no_other_run(kind: str, cockpit: Cockpit, runs: Path) -> None:
    assert faults_of(kind, ("show RUN",), cockpit, runs) == []


@pytest.mark.behaviour("damaged-run-harms-no-other")
@pytest.mark.slow
@pytest.mark.parametrize("kind", [*DAMAGE, *LARGE])
def test_every_command_answers_a_damaged_file(
    kind: str, cockpit: Cockpit, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a resume or a fork is prepared, no engine starts
    monkeypatch.setattr(starting, "_start", lambda *run, **options: 0)
    assert faults_of(kind, COMMANDS, cockpit, runs) == []


@pytest.mark.behaviour("index-takes-no-memory")
def test_a_hostile_index_of_a_checkpoint_takes_no_memory(tmp_path: Path) -> None:
    """Numbers that ask for gigabytes, a pickle that unpacks to them, and a call: all refused within 256 MB."""
    shapes = {
        "memo": b"\x80\x02}r\xff\xff\xff\x3f.",
        "bytearray": b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".",
        "bytes": b"\x80\x05\x8e" + (1 << 40).to_bytes(8, "little") + b".",
        "call": pickle.dumps({"state": os.getcwd}),
    }
    for name, pickled in shapes.items():
        with zipfile.ZipFile(tmp_path / f"{name}.pt", "w") as archive:
            archive.writestr("last/data.pkl", pickled)
    with zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("last/data.pkl", bytes(1 << 27))
    code = (
        "import resource, sys; from pathlib import Path; from engines.runs.saved import read_saved\n"
        "from engines.basics.errors import DataError\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1 << 28, 1 << 28))\n"
        "for path in sorted(Path(sys.argv[1]).glob('*.pt')):\n"
        "    try: read_saved(path)\n"
        "    except DataError as error: assert 'not a whole checkpoint' in str(error); print(path.stem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["bytearray", "bytes", "call", "memo", "packed"], "")


@HAS_CASES
@pytest.mark.behaviour("absurd-numbers-cost-their-row")
@pytest.mark.parametrize(
    ("file", "watched", "imported"),
    [
        ("events.out.tfevents.1.alternating", "8000 damaged records skipped", "no numbers to import"),
        ("mlflow_huge_step", "1 damaged line skipped, the first is line 3", [[1, 0.5], [2, 0.4]]),
        ("import_nan_place.log", "loss_idle       2    0  5      0    5    0", [[0, 5], [1, 0]]),
    ],
)
def test_a_hostile_log_is_watched_and_imported(
    file: str, watched: str, imported: str | list[list[float]], cockpit: Cockpit
) -> None:
    """Of the cases that users brought; others of each kind are in test_hostile.py."""
    assert watched in cockpit("watch", "--once", str(CASES / file)).stdout
    answer = cockpit("import", str(CASES / file))
    if isinstance(imported, str):
        assert imported in answer.stderr
        return
    rows = cockpit("metrics", "last", "--csv").stdout.splitlines()[1:]
    assert [[float(row.split(",")[0]), float(row.split(",")[-1])] for row in rows] == imported


@HAS_CASES
@pytest.mark.behaviour("damaged-run-harms-no-other", "index-takes-no-memory")
@pytest.mark.parametrize(
    ("file", "over", "command", "said"),
    [
        ("deep_run.json", "run.json", "show", "run.json"),
        ("memo_index.pt", "checkpoints/last.pt", "fork", "no checkpoint to fork"),
    ],
)
def test_a_hostile_file_in_a_run_is_named(
    file: str, over: str, command: str, said: str, cockpit: Cockpit, runs: Path
) -> None:
    whole_run(runs, GOOD).end("finished")
    fake = whole_run(runs, BAD)
    (fake.run.path / over).write_bytes((CASES / file).read_bytes())
    answer = cockpit(command, BAD)
    assert (answer.returncode != 0, said in answer.stderr, answer.stderr.count("\n")) == (True, True, 1), answer
    assert any(GOOD in line and "finished" in line for line in cockpit("ls").stdout.splitlines())
    assert len(list(runs.glob("controls-*"))) == 2
