"""Every reader of what others have written: seeds, how it is called, and which errors it documents."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from engines.basics.errors import UserError
from tests.faults import shaped
from tests.faults.shaped import Shaped
from tests.faults.trainings import ROOT

CORPUS = ROOT.parent / "shared" / "data"
Errors = tuple[type[BaseException], ...]
BY_COMMAND: tuple[int, ...] = (0, 1, 2, 3)
"""Exit codes of a command that ends with a sentence, or with none to say."""


@dataclass(frozen=True)
class Reader:
    """A reader with its seeds; `read` gets the path of the damaged file and must do no more than raise `refuses`."""

    name: str
    file: str
    """What the file is called, which some readers go by."""
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]
    refuses: Errors = (UserError,)
    corpus: Sequence[str] = ()
    """Globs of further seeds among the real inputs, where these are there."""
    prepare: Callable[[Path], object] = lambda folder: None
    """Makes what lies beside the file, once."""
    found: str = ""
    """What earlier runs found; all of it is fixed."""
    share: float = 1.0
    """Of the inputs of a reader that others are given: less where one takes long."""
    base_memory: int = 32 << 20
    """Bytes that it may hold whatever the input."""
    apart: bool = False
    """It reads in a process of its own, as `each_file` has it do."""
    shaped: Shaped | None = None
    """Changes its content and keeps its form; then at least `fuzz.LEAST_READ` of the inputs are read."""

    def all_seeds(self) -> list[bytes]:
        """Its own, and real files that are not large."""
        found = [seed for seed in self.seeds() if seed]
        for pattern in self.corpus:
            for path in sorted(CORPUS.glob(pattern))[:8]:
                content = _opened(path)
                found.append(content if content.startswith((b"PK", shaped.RAW)) else content[: 1 << 16])
        return found


def _opened(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


# -- seeds -----------------------------------------------------------------------------------------------------------


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


def _beside(skipped: str) -> Callable[[Path], None]:
    """All files of the run but the one that is damaged."""

    def prepare(folder: Path) -> None:
        for name, content in run_files().items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name != skipped:
                path.write_bytes(content)

    return prepare


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _from(make: Callable[[Path], object], pattern: str) -> Callable[[], list[bytes]]:
    """Files that a demo makes."""

    @cache
    def seeds() -> list[bytes]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder) / "out")
            return [path.read_bytes() for path in sorted(Path(folder).rglob(pattern))[:2]]

    return seeds


def _recordings(folder: Path) -> None:
    from projects.controls.recordings import write_recording
    from tests.projects.controls.sessions import random_session

    for rows in (40, 90):
        write_recording(folder / f"{rows}.npz", random_session("a", rows, rows))


def _drives(folder: Path) -> None:
    from projects.sim.demo.task import make
    from tests.faults.trainings import Quiet

    make({"out": str(folder), "drives": 2, "minutes": 0.2}, Quiet())


def _games(folder: Path) -> None:
    from projects.agent.demo.task import make
    from tests.faults.trainings import Quiet

    make({"out": str(folder), "games": 2, "frames": 32}, Quiet())


def _league_games() -> list[bytes]:
    import tempfile

    from tests.projects.agent.test_league import written

    with tempfile.TemporaryDirectory() as folder:
        return [written(Path(folder) / "a.npz").read_bytes()]


def _matches(folder: Path) -> None:
    from projects.melee.demo.task import make
    from tests.faults.trainings import Quiet

    make({"out": str(folder), "games": 2, "minutes": 0.5}, Quiet())


@cache
def _tables() -> list[bytes]:
    import tempfile

    from tests.projects.melee.tables import columns, write_table

    with tempfile.TemporaryDirectory() as folder:
        for name, packed in (("a", False), ("b", True)):
            write_table(Path(folder) / name, columns(40, 1), packed=packed)
        return [path.read_bytes() for path in sorted(Path(folder).iterdir())]


@cache
def _checkpoints() -> list[bytes]:
    """One as an engine saves it."""
    import torch

    live = {"weights": {"action": 1.0}, "lr_scale": 1.0, "epochs": 4, "patience": None}
    state = {"step": 8, "epoch": 2, "step_in_epoch": 0, "live": live, "stage": 0, "best_epoch": 1}
    file = io.BytesIO()
    torch.save({"format": 1, "model": {"w": torch.zeros(3, 2)}, "state": state, "metadata": {"a": [1, "x"]}}, file)
    return [file.getvalue()]


def _arrays() -> list[bytes]:
    return [_npz(a=np.arange(6), b=np.ones((3, 2), np.float32), c=np.array("word"))]


def _configs() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))]


def _logs() -> list[bytes]:
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


# -- reading ---------------------------------------------------------------------------------------------------------


def _commands(*lines: str) -> Callable[[Path], None]:
    """What these commands print of the run in the file's folder: a sentence at worst. None starts an engine."""

    def read(path: Path) -> None:
        from cockpit.cli import starting
        from tests.support.command import called

        folder = _run_of(path)
        for line in lines:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(starting, "_start", lambda *run, **options: 0)
                answer = called(*(str(folder) if word == "RUN" else word for word in line.split()))
            if "see `cockpit" in answer.stderr:
                raise AssertionError(f"{line} is no command: {answer.stderr}")
            silent = answer.returncode in (1, 2) and not answer.stderr.strip()
            if silent or answer.returncode not in BY_COMMAND:
                raise AssertionError(f"{line}: exit code {answer.returncode}, {answer.stderr!r}")
            if "\x1b" in answer.stdout + answer.stderr:
                raise AssertionError(f"{line} prints an escape sequence")

    return read


def _run_of(path: Path) -> Path:
    return next(folder for folder in path.parents if folder.name == "run")


def _hear(path: Path) -> None:
    from engines.basics.jsonl import RecordFollower
    from engines.contract import commands as cmd

    for command in RecordFollower(path, cmd.decoder).poll():
        cmd.describe(command)
        command.due(3, 1)
        cmd.encode(command)


def _steps(path: Path) -> None:
    from engines.contract.steps import read_segments, read_series

    for columns, records in read_segments(path.parent):
        assert records.shape[1] == len(columns)
        for column in columns[:9]:
            read_series(path.parent, column)


def _npz_alone(path: Path) -> None:
    from engines.basics import npz

    npz.load(path)


def _config(path: Path) -> None:
    from engines.contract.config import load_config

    loaded = load_config(path)
    loaded.dump()


def _log(path: Path) -> None:
    from cockpit.core.foreign.kinds import open_logs

    for source in open_logs(path):
        while source.poll():
            pass
        source.series()
        source.problems()


def _saved(path: Path) -> None:
    from engines.runs.saved import read_saved

    msgspec.json.encode(read_saved(path).step)


def _loaded(path: Path) -> None:
    from engines.training.checkpoint import load

    load(path)


def _controls(path: Path) -> None:
    from projects.controls.recordings import read_recording

    read_recording(path)


def _drive(path: Path) -> None:
    from projects.sim.drives import read_drive

    read_drive(path)


def _latents(path: Path) -> None:
    from projects.agent.latents import open_latents

    open_latents(path)


def _league(path: Path) -> None:
    from projects.agent.league import read_game

    read_game(path)


def _features(path: Path) -> None:
    from projects.agent.features import read_features

    read_features(path)


def _replay(path: Path) -> None:
    from projects.melee.replay import read_replay

    try:
        read_replay(path, least_frames=1)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # documented: it is read in a process that is watched
            raise


def _table(path: Path) -> None:
    from projects.melee.table import read_table

    read_table(path, least_frames=1)


def _store(path: Path) -> None:
    from projects.melee.store import Store

    store = Store(path.parent)
    for place in range(len(store.games)):
        store.game(place)


def _store_beside(folder: Path) -> None:
    _matches(folder / "out")


def _played(count: int) -> dict[str, bytes]:
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


def _of_version_1() -> list[bytes]:
    import tempfile

    from tests.projects.controls.test_import_v1 import version_1

    with tempfile.TemporaryDirectory() as folder:
        for width in (16, 24):
            version_1(Path(folder) / f"{width}.npz", rows=40, width=width)
        return [path.read_bytes() for path in sorted(Path(folder).iterdir())]


def _imported(name: str) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        from projects.controls.importers.kinds import named
        from projects.controls.importers.meter import Meter
        from tests.faults.trainings import Quiet

        takes = named(name).read(path, None, Meter(Quiet(), 1))
        for take in takes[:2]:
            for session in take.sessions(["a"], np.random.default_rng(0)):
                assert all(np.isfinite(array).all() for array in (session.controls, session.frames, session.state))

    return read


def _not_taken() -> Errors:
    from projects.melee.game import NotTaken

    return (UserError, OSError, NotTaken)


SHOWS = _commands("show RUN --json", "metrics RUN --csv", "advice RUN", "plot RUN loss")


def all_readers() -> list[Reader]:
    """Every one, each with its documented errors."""

    def of(name: str, file: str, read: Callable[[Path], object], share: float = 0.2, **options: Any) -> Reader:
        def prepare(folder: Path) -> None:
            _beside(file)(folder / "run")

        return Reader(name, f"run/{file}", of_run(file), read, prepare=prepare, share=share, **options)

    return [
        of("events", "events.jsonl", SHOWS),
        of("commands, as an engine hears them", "commands.jsonl", _hear, 1.0),
        of("commands, at a resume", "commands.jsonl", _commands("resume RUN", "show RUN")),
        of("run.json", "run.json", _commands("show RUN", "ls", "label RUN x")),
        of("attempts", "attempts/1.json", _commands("show RUN", "ls --json", "stop RUN"),
           found="a number that is not its file's: endless recursion in every command"),
        of("step columns", "metrics/steps/00001.json", _steps, 1.0, found="text that is not UTF-8: a traceback"),
        of("step records", "metrics/steps/00001.f64", _steps, 1.0),
        of("step columns, by commands", "metrics/steps/00001.json", SHOWS),
        of("resolved config", "config_resolved.yaml", _commands("show RUN", "weights RUN", "resume RUN")),
        of("report", "report.json", _commands("report RUN", "report RUN --json")),
        of("review", "review/about.json", _commands("thresholds RUN"), found="text that is not UTF-8: a traceback"),
        of("checkpoint, by commands", "checkpoints/last.pt", _commands("resume RUN", "show RUN")),
        Reader("YAML configs", "a.yaml", _configs, _config, share=0.3),
        Reader("npz", "a.npz", _arrays, _npz_alone, shaped=shaped.arrays),
        Reader("npz: recordings of controls", "a.npz", _from(_recordings, "*.npz"), _controls, shaped=shaped.arrays,
               found="members that are no arrays"),
        Reader("npz: drives of sim", "a.npz", _from(_drives, "*.npz"), _drive, shaped=shaped.arrays,
               found="members that are no arrays, headers that are no Python: tracebacks"),
        Reader("npz: latents of agent", "a.npz", _from(_games, "latents/*.npz"), _latents, shaped=shaped.arrays),
        Reader("npz: League games", "a.npz", _league_games, _league, corpus=("league/*.npz",), share=0.3,
               shaped=shaped.arrays),
        Reader("features.json", "features.json", _from(_games, "features.json"), _features, shaped=shaped.document),
        Reader("slp", "a.slp", lambda: [b"{U\x03raw[$U#l" + bytes(300)], _replay, refuses=_not_taken(), apart=True,
               found="positions that are not finite, or of 1e38, went into the store",
               corpus=("melee/odd/odd_0[34]*.slp.xz", "melee/odd/odd_05*.slp.xz", "melee/odd/odd_12*.slp.xz"),
               share=0.2, shaped=shaped.replay),
        Reader("parquet tables of melee", "a.parquet", _tables, _table, refuses=_not_taken(), apart=True, share=0.5,
               shaped=shaped.table),
        Reader("store of melee: a shard's record", "out/00000.json", _from(_matches, "00000.json"), _store,
               prepare=_store_beside, share=0.5, shaped=shaped.document, found="text that is not UTF-8: a traceback"),
        Reader("checkpoints, by the cockpit", "last.pt", _checkpoints, _saved, shaped=shaped.checkpoint),
        Reader("checkpoints, by the engine", "last.pt", _checkpoints, _loaded, shaped=shaped.checkpoint),
        *(Reader(f"external logs: {name}", name, _logs, _log, corpus=real, share=0.7) for name, real in LOGS.items()),
        Reader("MineRL logs", "a.jsonl", lambda: [_played(40)["minerl"]], _imported("minerl"), share=0.3,
               corpus=("minecraft/minerl*",), shaped=shaped.lines),
        Reader("VPT logs", "a.jsonl", lambda: [_played(40)["vpt"], _played(90)["vpt"]], _imported("vpt"), share=0.3,
               shaped=shaped.lines),
        Reader("action lists", "a.json", lambda: [_played(40)["list"]], _imported("list"), share=0.3,
               corpus=("minecraft/*vpt*",), shaped=shaped.document),
        Reader("npz: recordings of version 1", "a.npz", _of_version_1, _imported("v1"), share=0.3,
               shaped=shaped.arrays),
    ]  # fmt: skip


LOGS: dict[str, tuple[str, ...]] = {
    "train.log": ("runlogs/0[12]*/*.log", "cases/*/*.log"),
    "log.jsonl": ("cases/*/*.jsonl",),
    "metrics.csv": ("runlogs/*/*.csv", "runlogs/*/*/*.csv"),
    "trainer_state.json": ("runlogs/*/*.json",),
    "events.out.tfevents.1.host": ("runlogs/*/events*", "runlogs/*/*/events*", "cases/hostile/events*"),
}
