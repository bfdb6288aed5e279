"""Every reader of what others have written: seeds, how it is called, and which errors it documents."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from engines.basics.errors import UserError
from tests.faults import seeds, shaped
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
    seeds.matches(folder / "out")


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
            seeds.all_but(file)(folder / "run")

        return Reader(name, f"run/{file}", seeds.of_run(file), read, prepare=prepare, share=share, **options)

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
        Reader("YAML configs", "a.yaml", seeds.configs, _config, share=0.3),
        Reader("npz", "a.npz", seeds.arrays, _npz_alone, shaped=shaped.arrays),
        Reader("npz: recordings of controls", "a.npz", seeds.made_by(seeds.recordings, "*.npz"), _controls,
               shaped=shaped.arrays, found="members that are no arrays"),
        Reader("npz: drives of sim", "a.npz", seeds.made_by(seeds.drives, "*.npz"), _drive, shaped=shaped.arrays,
               found="members that are no arrays, headers that are no Python: tracebacks"),
        Reader("npz: latents of agent", "a.npz", seeds.made_by(seeds.games, "latents/*.npz"), _latents,
               shaped=shaped.arrays),
        Reader("npz: League games", "a.npz", seeds.league_games, _league, corpus=("league/*.npz",), share=0.3,
               shaped=shaped.arrays),
        Reader("features.json", "features.json", seeds.made_by(seeds.games, "features.json"), _features,
               shaped=shaped.document),
        Reader("slp", "a.slp", lambda: [shaped.RAW + bytes(300)], _replay, refuses=_not_taken(), apart=True,
               found="positions that are not finite, or of 1e38, went into the store",
               corpus=("melee/odd/odd_0[34]*.slp.xz", "melee/odd/odd_05*.slp.xz", "melee/odd/odd_12*.slp.xz"),
               share=0.2, shaped=shaped.replay),
        Reader("parquet tables of melee", "a.parquet", seeds.tables, _table, refuses=_not_taken(), apart=True,
               share=0.5, shaped=shaped.table),
        Reader("store of melee: a shard's record", "out/00000.json", seeds.made_by(seeds.matches, "00000.json"), _store,
               prepare=_store_beside, share=0.5, shaped=shaped.document, found="text that is not UTF-8: a traceback"),
        Reader("checkpoints, by the cockpit", "last.pt", seeds.checkpoints, _saved, shaped=shaped.checkpoint),
        Reader("checkpoints, by the engine", "last.pt", seeds.checkpoints, _loaded, shaped=shaped.checkpoint),
        *(
            Reader(f"external logs: {name}", name, seeds.logs, _log, corpus=real, share=0.7)
            for name, real in LOGS.items()
        ),
        Reader("MineRL logs", "a.jsonl", lambda: [seeds.played(40)["minerl"]], _imported("minerl"), share=0.3,
               corpus=("minecraft/minerl*",), shaped=shaped.lines),
        Reader("VPT logs", "a.jsonl", lambda: [seeds.played(40)["vpt"], seeds.played(90)["vpt"]], _imported("vpt"),
               share=0.3, shaped=shaped.lines),
        Reader("action lists", "a.json", lambda: [seeds.played(40)["list"]], _imported("list"), share=0.3,
               corpus=("minecraft/*vpt*",), shaped=shaped.document),
        Reader("npz: recordings of version 1", "a.npz", seeds.recordings_of_version_1, _imported("v1"), share=0.3,
               shaped=shaped.arrays),
    ]  # fmt: skip


LOGS: dict[str, tuple[str, ...]] = {
    "train.log": ("runlogs/0[12]*/*.log", "cases/*/*.log"),
    "log.jsonl": ("cases/*/*.jsonl",),
    "metrics.csv": ("runlogs/*/*.csv", "runlogs/*/*/*.csv"),
    "trainer_state.json": ("runlogs/*/*.json",),
    "events.out.tfevents.1.host": ("runlogs/*/events*", "runlogs/*/*/events*", "cases/hostile/events*"),
}
