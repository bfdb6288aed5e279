"""A task's folder: nobody else's files touched, and the same bytes in the end however often it was interrupted."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engines.basics.errors import DataError
from engines.basics.files import make_directory, replace_bytes
from engines.tasks.folder import claimed, output_folder
from tests.support.readers import wait_for

PARTS = [f"part_{k:03d}" for k in range(60)]


def fill(out: Path, last: int = len(PARTS), seed: int = 3) -> list[str]:
    """The parts that had to be made."""
    made = []
    ours = {f"{part}.bin" for part in PARTS} | {f"below/{part}.bin" for part in PARTS}
    with output_folder(out, "notes.json", {"version": 1, "seed": seed, "sizes": (2, 3)}, ours.__contains__) as folder:
        make_directory(out / "below")
        for part in PARTS[:last]:
            if folder.has(part, f"{part}.bin", f"below/{part}.bin"):
                continue
            made.append(part)
            replace_bytes(out / "below" / f"{part}.bin", part.encode() * 1000)
            replace_bytes(out / f"{part}.bin", part.encode() * seed)
            folder.finish(part)
        folder.complete()
    return made


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


FILL = """
import sys
from pathlib import Path
from tests.engines.tasks.test_folder import fill

fill(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("reached", [0, 7, 40])
def test_killed_anywhere_it_ends_like_an_undisturbed_one(tmp_path: Path, reached: int) -> None:
    out = tmp_path / "out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    with subprocess.Popen([sys.executable, "-c", FILL, out], env=environment) as filling:
        wait_for(out / f"{PARTS[reached]}.bin")
        filling.send_signal(signal.SIGKILL)
    (out / ".part_050.bin.12345678.tmp").write_bytes(b"half")
    (out / "below" / ".part_050.bin.12345678.tmp").write_bytes(b"half")
    fill(out)
    fill(tmp_path / "straight")
    assert content(out) == content(tmp_path / "straight")
    assert json.loads((out / "notes.json").read_bytes()) == {
        "version": 1, "seed": 3, "sizes": [2, 3], "finished": PARTS, "complete": True,
    }  # fmt: skip


def test_what_is_finished_is_not_made_again_and_more_can_follow(tmp_path: Path) -> None:
    assert fill(tmp_path, last=3) == PARTS[:3]
    assert fill(tmp_path, last=3) == []
    assert fill(tmp_path, last=5) == PARTS[3:5]
    (tmp_path / "below" / "part_001.bin").unlink()
    assert fill(tmp_path, last=5) == ["part_001"]


def test_what_was_never_noted_is_made_again(tmp_path: Path) -> None:
    fill(tmp_path, last=2)
    (tmp_path / "part_002.bin").write_bytes(b"half of another program")
    assert fill(tmp_path, last=3) == ["part_002"]
    assert (tmp_path / "part_002.bin").read_bytes() == b"part_002" * 3


def test_an_error_keeps_the_notes_and_is_not_complete(tmp_path: Path) -> None:
    def interrupted() -> None:
        with output_folder(tmp_path, "notes.json", {}, PARTS.__contains__) as folder:
            for part in PARTS:
                (tmp_path / part).touch()
                folder.finish(part)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert json.loads((tmp_path / "notes.json").read_bytes()) == {"finished": PARTS, "complete": False}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("thesis.txt", "holds 'thesis.txt' and no notes.json"),
        ("part_000.bin", "holds 'part_000.bin' and no notes.json"),
        ("below/deep/mine.npz", "holds 'below/deep/mine.npz' and no notes.json"),
    ],
)
def test_a_folder_of_somebody_else_is_refused_and_left_alone(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / name).write_text("precious")
    (tmp_path / ".other.0000.tmp").write_text("theirs")
    with pytest.raises(DataError, match=said):
        fill(tmp_path)
    assert content(tmp_path) == {name: b"precious", ".other.0000.tmp": b"theirs"}


def test_a_foreign_file_among_ones_own_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, last=2)
    (tmp_path / "below" / "link").symlink_to(tmp_path)
    with pytest.raises(DataError, match=r"holds 'below/link', which this task does not make; choose a new"):
        fill(tmp_path)


def test_other_settings_need_another_folder(tmp_path: Path) -> None:
    fill(tmp_path, last=2)
    before = content(tmp_path)
    with pytest.raises(DataError, match="was made with seed 3, not 4; choose another folder"):
        fill(tmp_path, seed=4)
    assert content(tmp_path) == before


@pytest.mark.parametrize("damage", ['{"seed": ', "[]", '{"finished": 3}'])
def test_damaged_notes_are_said(tmp_path: Path, damage: str) -> None:
    fill(tmp_path, last=1)
    (tmp_path / "notes.json").write_text(damage)
    with pytest.raises(DataError, match=r"notes\.json: damaged"):
        fill(tmp_path)


def test_a_second_task_waits_for_its_turn(tmp_path: Path) -> None:
    with (
        claimed(tmp_path, PARTS.__contains__),
        pytest.raises(DataError, match="another task is writing there"),
        claimed(tmp_path, PARTS.__contains__),
    ):
        pass
    with claimed(tmp_path, PARTS.__contains__):
        pass


def test_without_notes_only_known_files_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "part_000").touch()
    with claimed(tmp_path, PARTS.__contains__):
        pass
    (tmp_path / "other").touch()
    with pytest.raises(DataError, match="holds 'other', which this task"), claimed(tmp_path, PARTS.__contains__):
        pass


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file: is a file, expected a new or empty folder"):
        fill(tmp_path / "file")
    with pytest.raises(DataError, match="cannot be written"):
        fill(tmp_path / "file" / "below")
    with pytest.raises(DataError, match=r"out: cannot be written \(No space left"), claimed(tmp_path / "out", bool):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FileNotFoundError), claimed(tmp_path / "out", bool):
        (tmp_path / "elsewhere").read_bytes()
