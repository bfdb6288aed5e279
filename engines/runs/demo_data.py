"""The data of a demo, made where there is none."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from engines.basics.errors import DataError
from engines.basics.files import make_directory
from engines.basics.reading import read_json
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import list_runs, runs_folder

MARK = "demo.json"
"""In a folder of demo data: says whether it is complete, and is absent where a person's own data lies."""


def making_run(project: str, path: Path) -> RunDirectory | None:
    """The run that makes a project's demo data in `path`, started now or by another before; None when it is there."""
    title = f"demo data in {path}"
    with _one_at_a_time():
        if is_ready(path):
            return None
        if (maker := _live_run(title)) is not None:
            return maker
        run = launch.prepare_task(project, "make", {"out": str(path)}, title=title)
        launch.start(run)
        return run


def is_ready(path: Path) -> bool:
    """Whether all of the demo data is there, or what a person put there."""
    try:
        return read_json(path / MARK, dict[str, Any]).get("complete") is True
    except (FileNotFoundError, NotADirectoryError):
        # data without a mark is a person's own, and the training says what is wrong with it, if anything is
        return path.exists() and not (path.is_dir() and not any(path.iterdir()))
    except (OSError, msgspec.DecodeError):
        return False


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Keeps a second demo waiting while the first one looks and starts; what it started is then there to be seen."""
    make_directory(runs_folder())
    with open(runs_folder() / ".demo.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _live_run(title: str) -> RunDirectory | None:
    for run in list_runs():
        with contextlib.suppress(DataError):  # an unreadable record of some other run
            if run.info.title == title and RunReader(run).status().live:
                return run
    return None
