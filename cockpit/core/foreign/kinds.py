"""The kinds of logs there are, told apart by content: by name only where a file holds nothing that tells."""

from __future__ import annotations

import functools
import itertools
import math
import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from cockpit.core.foreign import csv_log, json_logs, keras_history, mlflow, monitor_csv, parquet, text_log, unread
from cockpit.core.foreign.folder import FolderReader
from cockpit.core.foreign.reader import LineReader, Reader, document_reader
from cockpit.core.foreign.run_directory import RunSource
from cockpit.core.foreign.source import LogSource
from cockpit.core.foreign.tensorboard import TensorBoardReader
from cockpit.core.foreign.tfrecord import starts_record
from cockpit.core.foreign.unpacking import PrintedLines, Unpacker
from cockpit.core.foreign.wandb import WandbReader, begins_wandb
from engines.basics.errors import DataError

HEAD = 1 << 16
"""Bytes that are looked at to tell what a file is."""
LINES = 50
"""That tell what a file of lines is."""
EVENTS = "*tfevents*"
NO_LOGS = ("debug*.log", "wandb-*.json")
"""W&B's notes on itself, which lie beside its runs: read only where a person names them."""

Source = LogSource | RunSource


@dataclass(frozen=True)
class Kind:
    """A format: how it is called, how it is known, how it is read."""

    name: str
    names: tuple[str, ...]
    """Patterns of file names that mean this kind where the content does not tell."""
    holds: Callable[[bytes], bool]
    """Whether a file that begins so is of this kind."""
    reader: Callable[[Path], Reader]


def _is_trainer_state(head: bytes) -> bool:
    return head.lstrip().startswith(b"{") and b'"log_history"' in head


def _is_list(head: bytes) -> bool:
    text = head.lstrip()
    return text.startswith(b"[") and text[1:].lstrip().startswith((b"{", b"]"))


def _is_jsonl(head: bytes) -> bool:
    """Half of its lines at least are whole objects, or the first one is too long to be seen whole and begins as one."""
    lines = _lines(head)
    objects = sum(map(json_logs.is_object, lines or [head]))
    return 2 * objects >= max(1, len(lines)) or (not lines and len(head) == HEAD and head.startswith(b'{"'))


def _is_text_log(head: bytes) -> bool:
    """A line tells numbers at a step or an epoch; two, where they tell no such place."""
    parse, unplaced = text_log.TextParser(), 0
    for line in _lines(head.replace(b"\r", b"\n"), most=HEAD):
        try:
            row = parse(line)
        except ValueError:
            continue
        if row is not None and row.values:
            unplaced += 1
            if unplaced == 2 or not (math.isnan(row.step) and math.isnan(row.epoch)):
                return True
    return False


def _is_csv(head: bytes) -> bool:
    """A line of names, of which the next one gives numbers."""
    parse = csv_log.CsvParser()
    try:
        lines = itertools.dropwhile(lambda line: line.startswith(b"#"), _lines(head))
        rows = [parse(line) for line in itertools.islice(lines, 2)]
    except ValueError:
        return False
    return len(rows) == 2 and rows[0] is None and rows[1] is not None and bool(rows[1].values)


def _lines(head: bytes, most: int = LINES) -> list[bytes]:
    """The first whole lines that are not blank."""
    whole = head[: head.rfind(b"\n") + 1]
    return [line for line in whole.split(b"\n") if line.strip()][:most]


KINDS = (
    Kind("TensorBoard events", (EVENTS,), starts_record, TensorBoardReader),
    Kind("Parquet table", ("*.parquet",), parquet.is_readable, parquet.parquet_reader),
    Kind("W&B run", ("*.wandb",), begins_wandb, WandbReader),
    Kind(
        "Hugging Face trainer_state.json", ("trainer_state.json",), _is_trainer_state,
        functools.partial(document_reader, rows_of=json_logs.rows_of_trainer_state),
    ),
    Kind("JSON list", ("*.json",), _is_list, functools.partial(document_reader, rows_of=json_logs.rows_of_list)),
    Kind(
        "JSON object of lists (Keras History)", (), keras_history.begins_history,
        functools.partial(document_reader, rows_of=keras_history.rows_of_history),
    ),
    Kind(
        "JSON lines", ("*.jsonl", "*.ndjson"), _is_jsonl,
        functools.partial(LineReader, make_parse=lambda: json_logs.parse_line, is_whole=json_logs.is_closed),
    ),
    Kind("MLflow metric", (), mlflow.holds_metric, mlflow.metric_reader),
    Kind(
        "Monitor CSV", ("*monitor.csv",), monitor_csv.holds_monitor,
        functools.partial(LineReader, make_parse=monitor_csv.MonitorParser),
    ),
    Kind(
        "text log (name: value)", ("*.log", "*.txt", "*.out"), _is_text_log,
        functools.partial(LineReader, make_parse=text_log.TextParser, follow=PrintedLines),
    ),
    Kind("CSV", ("*.csv", "*.tsv"), _is_csv, functools.partial(LineReader, make_parse=csv_log.CsvParser)),
)  # fmt: skip


def open_logs(path: Path) -> list[Source]:
    """The logs that `path` is: a file, a run's directory, or a folder with such in it, one source each.

    Raises `DataError` when it is none of these, naming the kinds, and for a file that cannot be read.
    """
    if path.is_dir():
        found = [source for place in candidates(path) if (source := open_candidate(place))]
        if not found:
            raise DataError(unread.why_folder(path) or f"No log found in the folder {path}; {_known()}.")
        return found
    try:
        if path.exists() and not path.is_file():  # a pipe would wait for its writer
            raise DataError(f"{path} is neither a file nor a folder; {_known()}.")
        head = _head(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read as a log: {error.strerror}.") from None
    if not parquet.is_readable(head) and (why := unread.why_file(path, head)):
        raise DataError(why)
    if (kind := _kind(head) or _kind_by_name(path)) is None:
        raise DataError(f"{path} is not a log of a known kind; {_known()}.")
    return [LogSource(path, kind.name, kind.reader(path))]


def _known() -> str:
    return f"known are a run's directory, {', '.join(kind.name for kind in KINDS)}"


def open_candidate(place: Path) -> Source | None:
    """What was found in a folder, None when it is no log; a file that cannot be read goes by its name, and says so."""
    if place.is_dir():
        return _open_folder(place)
    try:
        kind = _kind(_head(place))
    except OSError:
        kind = _kind_by_name(place)
    return None if kind is None else LogSource(place, kind.name, kind.reader(place))


def _open_folder(folder: Path) -> Source:
    """Of a folder that is one log as a whole."""
    if (folder / "run.json").exists():
        return RunSource(folder)
    if mlflow.is_run(folder):
        return LogSource(folder, "MLflow run", mlflow.run_reader(folder))
    return LogSource(folder, KINDS[0].name, FolderReader(folder, _event_files, TensorBoardReader))


def _event_files(folder: Path) -> list[Path]:
    """TensorBoard takes those of one folder for one run, the oldest first: their names begin with their times."""
    return sorted(path for path in folder.glob(EVENTS) if path.is_file())


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return Unpacker().feed(file.read(HEAD)).removeprefix(BOM_UTF8)[:HEAD]


def _kind(head: bytes) -> Kind | None:
    return next((kind for kind in KINDS if kind.holds(head)), None)


def _kind_by_name(path: Path) -> Kind | None:
    name = path.name.removesuffix(".gz")
    return next((kind for kind in KINDS if any(fnmatch(name, pattern) for pattern in kind.names)), None)


def candidates(folder: Path) -> Iterator[Path]:
    """Files that may be logs, and folders that are one, in order of their names; only names are looked at."""
    if (folder / "run.json").exists() or mlflow.is_run(folder):
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    if any(fnmatch(entry.name, EVENTS) and entry.is_file() for entry in ordered):
        yield folder
    for entry in ordered:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False) or (path / "run.json").exists():
            yield from candidates(path)
        elif entry.is_file() and not any(fnmatch(entry.name, name) for name in NO_LOGS):
            kind = _kind_by_name(path)
            if kind is not None and kind is not KINDS[0]:  # event files are their folder's
                yield path
