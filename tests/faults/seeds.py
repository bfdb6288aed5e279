"""Good inputs of every reader: files as the programs that write them make them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.trainings import ROOT


@cache
def run_files() -> dict[str, bytes]:
    """The files of a small run that has ended, by their names."""
    import tempfile

    from engines.contract import commands as cmd
    from engines.contract import events as ev
    from engines.contract.steps import StepWriter
    from engines.thresholds.review import About, write_review
    from tests.support.fake_run import FakeRun, stopped_early

    with tempfile.TemporaryDirectory() as folder:
        fake = stopped_early(FakeRun(Path(folder)))
        fake.say(
            ev.Alert(code="overfitting", level="warning", text="loss rises", step=9),
            ev.Progress(done=3, total=9, unit="batches"),
            ev.GradientNorms(step=4, norms={"action": 1.0}, parameters=9),
            ev.CommandAnswer(command=cmd.SetLossWeights(attempt=1, weights={"look": 0.5}), state="applied", step=4),
            ev.Ended(reason="stopped", step=20, detail="saved at step 20; r resumes"),
        )
        run = fake.run
        for command in (
            cmd.Stop(attempt=1),
            cmd.SetLrScale(attempt=1, scale=0.5, at_step=3),
            cmd.SetEpochs(attempt=2, epochs=9),
        ):
            with open(run.commands, "ab") as file:
                file.write(cmd.encode(command) + b"\n")
        writer = StepWriter(run.steps, ["time", "loss", "lr"])
        writer.append(np.arange(60.0).reshape(12, 5))
        writer.close()
        about = About(checkpoint="best.pt", step=10, epoch=1, score=0.1)
        write_review(run.review, {"scores": np.zeros((4, 2), np.float32)}, about)
        run.report.write_bytes(b'{"tables": {"headline": {"columns": ["a", "b"], "rows": [[1, "x"]], "note": "n"}}}')
        return {str(path.relative_to(run.path)): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def of_run(name: str) -> Callable[[], list[bytes]]:
    return lambda: [run_files()[name]]


def all_but(skipped: str) -> Callable[[Path], None]:
    """All files of the run but the one that is damaged."""

    def prepare(folder: Path) -> None:
        for name, content in run_files().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name != skipped:
                path.write_bytes(content)

    return prepare


def npz_of(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def made_by(make: Callable[[Path], object], pattern: str) -> Callable[[], list[bytes]]:
    """Files that a demo makes."""

    @cache
    def seeds() -> list[bytes]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder) / "out")
            return [path.read_bytes() for path in sorted(Path(folder).rglob(pattern))[:2]]

    return seeds


def recordings(folder: Path) -> None:
    from projects.controls.recordings import write_recording
    from tests.projects.controls.sessions import random_session

    for rows in (40, 90):
        write_recording(folder / f"{rows}.npz", random_session("a", rows, rows))


def drives(folder: Path) -> None:
    from projects.sim.demo.task import make
    from tests.faults.trainings import Quiet

    make({"out": str(folder), "drives": 2, "minutes": 0.2}, Quiet())


def games(folder: Path) -> None:
    from projects.agent.demo.task import make
    from tests.faults.trainings import Quiet

    make({"out": str(folder), "games": 2, "frames": 32}, Quiet())


def league_games() -> list[bytes]:
    import tempfile

    from tests.projects.agent.test_league import written

    with tempfile.TemporaryDirectory() as folder:
        return [written(Path(folder) / "a.npz").read_bytes()]


def matches(folder: Path) -> None:
    from projects.melee.demo.task import make
    from tests.faults.trainings import Quiet

    make({"out": str(folder), "games": 2, "minutes": 0.5}, Quiet())


@cache
def tables() -> list[bytes]:
    import tempfile

    from tests.projects.melee.tables import columns, write_table

    with tempfile.TemporaryDirectory() as folder:
        for name, packed in (("a", False), ("b", True)):
            write_table(Path(folder) / name, columns(40, 1), packed=packed)
        return [path.read_bytes() for path in sorted(Path(folder).iterdir())]


@cache
def checkpoints() -> list[bytes]:
    """One as an engine saves it."""
    import torch

    live = {"weights": {"action": 1.0}, "lr_scale": 1.0, "epochs": 4, "patience": None}
    state = {"step": 8, "epoch": 2, "step_in_epoch": 0, "live": live, "stage": 0, "best_epoch": 1}
    file = io.BytesIO()
    torch.save({"format": 1, "model": {"w": torch.zeros(3, 2)}, "state": state, "metadata": {"a": [1, "x"]}}, file)
    return [file.getvalue()]


def arrays() -> list[bytes]:
    return [npz_of(a=np.arange(6), b=np.ones((3, 2), np.float32), c=np.array("word"))]


def configs() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))]


def logs() -> list[bytes]:
    from tests.cockpit.core.foreign.event_files import VERSION, event, record, simple

    rows = b"".join(b'{"step": %d, "loss": %.2f, "epoch": %d}\n' % (k, 1 / (k + 1), k // 4) for k in range(12))
    return [
        rows,
        gzip.compress(rows),
        b"step,loss,val_loss\n" + b"".join(b"%d,%.3f,\n" % (k, 1 / (k + 1)) for k in range(12)),
        b"".join(b"[2026-01-01 10:00:%02d] step %d/90 | loss 0.%d | lr 1e-3\n" % (k, k, 90 - k) for k in range(12)),
        record(VERSION) + b"".join(record(event(simple("loss", 1.0 / k), step=k)) for k in range(1, 9)),
        b'{"log_history": [{"loss": 1.0, "step": 1, "epoch": 0.1}, {"eval_loss": 2.0, "step": 2}], "global_step": 2}',
        b'[{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.4}]',
    ]


def played(count: int) -> dict[str, bytes]:
    """A log of each kind that controls takes, of so many ticks."""
    import json

    from tests.projects.controls import test_import_minerl, test_import_vpt

    def joined(ticks: list[dict[str, Any]]) -> bytes:
        return "".join(json.dumps(tick) + "\n" for tick in ticks).encode()

    keys = ("", "w", "wd", "e", "")
    list_ = [{"ESC": 0, "noop": [], "camera": [0.0, 1.5], "forward": k % 2} for k in range(count)]
    return {
        "vpt": joined([test_import_vpt.line(k, keys[k % 5], mouse={"dx": k % 7}) for k in range(count)]),
        "minerl": joined([test_import_minerl.tick(50 * k, camera=(1, k % 3)) for k in range(count)]),
        "list": json.dumps(list_).encode(),
    }


def recordings_of_version_1() -> list[bytes]:
    import tempfile

    from tests.projects.controls.test_import_v1 import version_1

    with tempfile.TemporaryDirectory() as folder:
        for width in (16, 24):
            version_1(Path(folder) / f"{width}.npz", rows=40, width=width)
        return [path.read_bytes() for path in sorted(Path(folder).iterdir())]
