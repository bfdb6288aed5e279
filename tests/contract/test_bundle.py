"""Bundles: the same run is the same bytes, and what anybody may have made is a run or leaves nothing."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engines.basics.errors import DataError, UserError
from engines.basics.lock import ELSEWHERE, lock_holder
from engines.contract.rundir import RunInfo
from engines.runs import bundle
from engines.runs.bundle import write_bundle
from engines.runs.trust import is_from_elsewhere
from engines.runs.unbundle import unbundle
from tests.support.fake_run import FakeRun, epoch

ID = "controls-20261127-201400-amber"
Member = tuple[tarfile.TarInfo, bytes]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "there"))
    return tmp_path / "there"


def trained(folder: Path) -> FakeRun:
    fake = FakeRun(folder, ID).begin().started().say(epoch(1), epoch(2)).end("finished")
    fake.run.best.write_bytes(b"best" * 1000)
    fake.run.last.write_bytes(b"last" * 1000)
    fake.run.report.write_text("{}")
    return fake


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.behaviour("bundle-is-a-run")
def test_a_bundle_is_the_same_bytes_and_the_same_run(tmp_path: Path, runs: Path) -> None:
    fake = trained(tmp_path / "here")
    (fake.run.path / "export" / ("x" * 200)).write_bytes(b"long name")
    os.symlink("/etc/passwd", fake.run.path / "export" / "link")
    one, other = tmp_path / "one.tar", tmp_path / "other.tar"
    assert write_bundle(fake.run, one, {"table.csv": b"a\n"}) == ["checkpoints/best.pt"]
    for file in fake.run.path.rglob("*"):
        os.utime(file, (1, 1), follow_symlinks=False)
    write_bundle(fake.run, other, {"table.csv": b"a\n"})
    assert one.read_bytes() == other.read_bytes()

    run = unbundle(one)
    here, there = files_of(fake.run.path), files_of(run.path)
    left_out = {"run.json", "checkpoints/last.pt", "export/link", "engine.lock", "logs/supervisor.log"}
    assert {name: here[name] for name in here.keys() - left_out} == {
        name: there[name] for name in there.keys() - {"run.json", "bundle/table.csv"}
    }
    assert there["bundle/table.csv"] == b"a\n"
    assert run.info == msgspec.structs.replace(fake.run.info, seal="")
    assert is_from_elsewhere(run.info)
    assert not is_from_elsewhere(fake.run.info)
    assert {path.stat().st_mode & 0o777 for path in run.path.rglob("*")} == {0o600, 0o700}
    with pytest.raises(UserError, match=f"already has {ID}; delete that first"):
        unbundle(one)


def test_a_bundle_cannot_say_that_its_run_is_alive_elsewhere(tmp_path: Path, runs: Path) -> None:
    write_bundle(trained(tmp_path / "here").run, tmp_path / "a.tar", {})
    with tarfile.open(tmp_path / "a.tar", "a", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo(f"{ID}/{ELSEWHERE}"))
    run = unbundle(tmp_path / "a.tar")
    assert lock_holder(run.lock) is None


def test_shards_that_are_replaced_meanwhile_leave_no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = trained(tmp_path / "here")
    shards = [fake.run.checkpoints / f"shards_{step}_1" / "1.safetensors" for step in (8, 16)]
    for file in shards:
        file.parent.mkdir()
        file.write_bytes(b"shard")
    monkeypatch.setattr(bundle, "shard_files", lambda path: [shards.pop(0)] if path == fake.run.last else [])
    with pytest.raises(DataError, match="saved a checkpoint in shards meanwhile"):
        write_bundle(fake.run, tmp_path / "a.tar", {}, last=True)
    assert not (tmp_path / "a.tar").exists()


def test_the_last_checkpoint_goes_along_where_asked_or_where_there_is_no_best(tmp_path: Path) -> None:
    fake = trained(tmp_path / "here")
    both = write_bundle(fake.run, tmp_path / "a.tar", {}, last=True)
    assert both == ["checkpoints/best.pt", "checkpoints/last.pt"]
    fake.run.best.unlink()
    assert write_bundle(fake.run, tmp_path / "b.tar", {}) == ["checkpoints/last.pt"]


def member(name: str, content: bytes = b"", **facts: object) -> Member:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for fact, value in facts.items():
        setattr(entry, fact, value)
    return entry, content


def record(run_id: str = ID) -> Member:
    return member(f"{ID}/run.json", msgspec.json.encode(RunInfo(id=run_id, project="controls")))


def folder(name: str) -> Member:
    return member(name, type=tarfile.DIRTYPE)


def archive(*members: Member, **options: object) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=options.get("format", tarfile.GNU_FORMAT)) as made:  # type: ignore[call-overload]
        for entry, content in members:
            made.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def in_run(*members: Member) -> Callable[[], bytes]:
    return lambda: archive(folder(ID), record(), *members)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "symlink": in_run(member(f"{ID}/export", type=tarfile.SYMTYPE, linkname="/etc")),
    "hard link": in_run(member(f"{ID}/last.pt", type=tarfile.LNKTYPE, linkname="/etc/passwd")),
    "device": in_run(member(f"{ID}/null", type=tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "pipe": in_run(member(f"{ID}/pipe", type=tarfile.FIFOTYPE)),
    "above": in_run(member(f"{ID}/../../escaped", b"x")),
    "absolute": in_run(member("/tmp/escaped", b"x")),
    "other root": in_run(member("escaped/file", b"x")),
    "hidden root": lambda: archive(folder(".ssh"), member(".ssh/run.json", b"{}")),
    "a file at the root": lambda: archive(member("run.json", b"{}")),
    "control characters": in_run(member(f"{ID}/a\x1b[2Jb", b"x")),
    "dot": in_run(member(f"{ID}/./a", b"x")),
    "too deep": in_run(member("/".join([ID, *"abcdefghij"]), b"x")),
    "twice": in_run(member(f"{ID}/a", b"x"), member(f"{ID}/a", b"y")),
    "a file as a folder": in_run(member(f"{ID}/a", b"x"), member(f"{ID}/a/b", b"y")),
    "extended headers": lambda: archive(
        folder(ID), record(), member(f"{ID}/{'é' * 120}", b"x"), format=tarfile.PAX_FORMAT
    ),
    "cut short": lambda: in_run(member(f"{ID}/a", b"x" * 5000))()[:-12000],
    "another id": lambda: archive(folder(ID), record("other-20261127-201400-amber")),
    "no record": lambda: archive(folder(ID), member(f"{ID}/events.jsonl", b"")),
    "a damaged record": lambda: archive(folder(ID), member(f"{ID}/run.json", b"{")),
    "garbage": lambda: b"garbage" * 1000,
    "nothing": lambda: b"",
    "packed": lambda: __import__("gzip").compress(in_run()()),
}


@pytest.mark.behaviour("hostile-bundle")
@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_bundle_leaves_nothing(what: str, tmp_path: Path, runs: Path) -> None:
    (file := tmp_path / "hostile.tar").write_bytes(HOSTILE[what]())
    with pytest.raises(UserError, match=r"is not a bundle of a run: .*; nothing was taken from it"):
        unbundle(file)
    assert list(runs.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hostile.tar", "there"]


def test_a_size_that_the_file_does_not_have_is_refused(tmp_path: Path, runs: Path) -> None:
    content = bytearray(in_run(member(f"{ID}/a", b"x"))())
    at = content.index(f"{ID}/a\0".encode())
    header = tarfile.TarInfo(f"{ID}/a")
    header.size = 1 << 50
    content[at : at + 512] = header.tobuf(tarfile.GNU_FORMAT)
    (file := tmp_path / "huge.tar").write_bytes(content)
    with pytest.raises(UserError, match="it is cut short at"):
        unbundle(file)
    assert list(runs.iterdir()) == []


def test_a_full_disk_leaves_no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = trained(tmp_path / "here")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "_add", full)
    with pytest.raises(OSError, match="No space left"):
        write_bundle(fake.run, tmp_path / "out.tar", {})
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
