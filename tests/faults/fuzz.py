"""`python -m tests.faults.fuzz --out docs/fuzzing.md`: many damaged inputs for every reader, and what came of them.

A reader gives a result or raises an error that it documents. On every `COUNTED`-th input its work is counted: bytes of
memory held at once, and calls made, both bounded by the bytes of the input; never the clock. A limit of address space
refuses what would be absurd on every input.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import traceback
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from tests.faults.mutated import inputs
from tests.faults.readers import CORPUS, Reader, all_readers

COUNTED = 20
MOST_CALLS, CALLS_PER_BYTE = 400_000, 600
BYTES_PER_BYTE = 400
LEAST_READ = 0.3
"""Share of the inputs that a reader takes, where they keep its form; else its depths are not reached."""
ADDRESS_SPACE = 4 << 30
"""Bytes beyond what is mapped at the start."""


@dataclass
class Tally:
    """What came of a reader's inputs."""

    inputs: int = 0
    refused: int = 0
    crashed: int = 0
    counted: int = 0
    most_memory: int = 0
    most_calls: int = 0

    @property
    def read(self) -> int:
        return self.inputs - self.refused - self.crashed


class TooMuch(AssertionError):
    """A reader took more memory or work than its input allows."""


@contextmanager
def counting(reader: Reader, size: int, tally: Tally) -> Iterator[None]:
    """Raises `TooMuch` where the work inside the `with` is more than so many bytes of input may cause."""
    calls = 0

    def call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    tracemalloc.start()
    sys.setprofile(call)
    try:
        yield
    finally:
        sys.setprofile(None)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    tally.counted += 1
    tally.most_memory, tally.most_calls = max(tally.most_memory, memory), max(tally.most_calls, calls)
    if memory > reader.base_memory + BYTES_PER_BYTE * size:
        raise TooMuch(f"{memory:,} bytes of memory for {size:,} bytes of input")
    if calls > MOST_CALLS + CALLS_PER_BYTE * size:
        raise TooMuch(f"{calls:,} calls for {size:,} bytes of input")


def refuses(reader: Reader, path: Path) -> bool:
    """Whether it answers with an error that it documents."""
    try:
        reader.read(path)
    except reader.refuses:
        return True
    return False


def apart(reader: Reader, path: Path, tally: Tally) -> None:
    """The same in a process of its own, which may die of it. Raises `AssertionError` for an error that it hides."""
    pid = os.fork()
    if not pid:
        try:
            os._exit(int(refuses(reader, path)))
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 2:
        raise AssertionError("an error that is not documented")
    tally.refused += code == 1
    tally.crashed += code < 0


def fuzz(reader: Reader, count: int, folder: Path, *, fresh: bool = False) -> Tally:
    """Give a reader `count` damaged inputs. Raises what it should not have raised, with the input made small."""
    tally = Tally()
    path = folder / reader.file
    path.parent.mkdir(parents=True, exist_ok=True)
    reader.prepare(folder)

    @settings(
        max_examples=count, deadline=None, derandomize=not fresh, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink], print_blob=False,
    )  # fmt: skip
    @given(inputs(reader.all_seeds(), reader.shaped))
    def one(data: bytes) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        tally.inputs += 1
        if reader.apart:
            apart(reader, path, tally)
        elif tally.inputs % COUNTED:
            tally.refused += refuses(reader, path)
        else:
            with counting(reader, len(data), tally):
                tally.refused += refuses(reader, path)

    one()
    return tally


def limit_memory() -> None:
    """Let what asks for absurdly much get nothing."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE, hard))


HEAD = f"""\
# Fuzzing

The output of `python -m tests.faults.fuzz --out docs/fuzzing.md`, never edited by hand. Each reader gets good files
with bytes changed, cut, dropped, repeated and spliced, and random bytes; those with a form of their own (JSON, arrays,
tables, replays, checkpoints) get most inputs in that form, with fields, values, types and lengths changed, so that
at least {LEAST_READ:.0%} are read and what comes after the first check is reached. A reader must give a result or an
error that it documents, a sentence with the file; a command that reads must end with an exit code and a sentence, and
print no escape sequence. On every {COUNTED}th input its work is counted: at most {BYTES_PER_BYTE} bytes of memory and
{CALLS_PER_BYTE} calls for each byte of input, beyond a base. What reads through a library that may crash reads in a
process of its own, here as in the product: *crashed* says how often that process died, which the product reports as a
damaged file.

| reader | inputs | read | refused | crashed | most memory | found and fixed |
|---|--:|--:|--:|--:|--:|---|
"""


def row(reader: Reader, tally: Tally) -> str:
    memory = f"{tally.most_memory / (1 << 20):.0f} MiB" if tally.counted else ""
    cells = (reader.name, f"{tally.inputs:,}", f"{tally.read:,}", f"{tally.refused:,}", f"{tally.crashed:,}", memory)
    return f"| {' | '.join(cells)} | {reader.found or 'nothing'} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.fuzz", description=__doc__)
    parser.add_argument("--out", type=Path, help="page to write")
    parser.add_argument("--inputs", type=int, default=3000, help="for each reader; slow ones get fewer")
    parser.add_argument("--only", default="", help="readers whose name contains this")
    parser.add_argument("--fresh", action="store_true", help="other inputs than last time")
    arguments = parser.parse_args()
    lines, failed = [], 0
    limit_memory()
    for reader in all_readers():
        if arguments.only not in reader.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["COCKPIT_RUNS"] = folder
            try:
                tally = fuzz(
                    reader, max(20, round(arguments.inputs * reader.share)), Path(folder), fresh=arguments.fresh
                )
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                failed += 1
                errors = error.exceptions if isinstance(error, ExceptionGroup) else [error]
                for one in errors:
                    where = traceback.extract_tb(one.__traceback__)[-1]
                    what = f"{type(one).__name__}: {str(one)[:300]}"
                    print(f"FAILED {reader.name}: {what} at {where.filename}:{where.lineno}")
                    print(*(note[:300] for note in getattr(one, "__notes__", [])), flush=True)
                lines.append(f"| {reader.name} | | | | | | **fails**: {type(errors[0]).__name__} |")
                continue
        if reader.shaped is not None and CORPUS.is_dir() and tally.read < LEAST_READ * tally.inputs:
            failed += 1
            print(f"FAILED {reader.name}: {tally.read} of {tally.inputs} inputs are read, expected {LEAST_READ:.0%}")
        lines.append(row(reader, tally))
        print(lines[-1], flush=True)
    real = "" if CORPUS.is_dir() else "\nWithout the corpus of real inputs.\n"
    if arguments.out:
        arguments.out.write_text(HEAD + "\n".join(lines) + "\n" + real, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
