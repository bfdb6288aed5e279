"""What a file is, is told by what it holds; what is nothing known is told in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.core.foreign import kinds
from cockpit.core.foreign.kinds import KINDS, open_logs
from cockpit.core.foreign.logs import Logs
from engines.basics.errors import DataError
from tests.cockpit.core.foreign.event_files import VERSION, record
from tests.cockpit.core.foreign.reading import points

CONTENT = {
    "TensorBoard events": record(VERSION),
    "W&B run": b":W&B\xe1\xbe\x00",
    "Parquet table": b"PAR1",
    "Hugging Face trainer_state.json": b'{\n "epoch": 1,\n "log_history": []\n}',
    "JSON list": b'[\n  {"epoch": 1, "loss": 2}\n]',
    "JSON object of lists (Keras History)": b'{"loss": [2.5, 1.25], "val_loss": [3, 2]}',
    "JSON lines": b'{"step": 1, "loss": 2}\n',
    "MLflow metric": b"1767225600000 2.5 0\n",
    "Monitor CSV": b'#{"t_start": 1767225600.0, "env_id": "Pole"}\nr,l,t\n20.0,11,0.5\n',
    "text log (name: value)": b"hello\nstep:1/10 val_loss:2.5 train_time:1s\n",
    "CSV": b"loss , step\n 0.5 , 1\n",
}


@pytest.mark.parametrize("kind", CONTENT)
def test_a_kind_is_known_by_content_whatever_the_name(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "no name that tells"
    path.write_bytes(CONTENT[kind])
    assert [source.kind for source in open_logs(path)] == [kind]
    assert set(CONTENT) == {one.name for one in KINDS}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", "JSON lines"),
        ("a.csv", "CSV"),
        ("a.json", "JSON list"),
        ("events.out.tfevents.1", "TensorBoard events"),
    ],
)
def test_an_empty_file_goes_by_its_name(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.touch()
    assert [source.kind for source in open_logs(path)] == [kind]


@pytest.mark.parametrize(
    "content",
    [b"", b"Dear reader,\n", b"Dear reader,\nthis is prose.\n", b"\x89PNG\r\n\x1a\n" + bytes(64), b"1,2\n3,4\n"],
)
def test_anything_else_is_refused_naming_the_kinds(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "what"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a log of a known kind") as error:
        open_logs(path)
    assert all(kind.name in str(error.value) for kind in KINDS)


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        open_logs(tmp_path / "gone.csv")
    with pytest.raises(DataError, match="No log found in the folder"):
        open_logs(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="neither a file nor a folder"):
        open_logs(tmp_path / "pipe")


def test_a_folder_gives_its_logs_and_follows_no_loop(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "metrics.csv").write_bytes(CONTENT["CSV"])
    (tmp_path / "a.jsonl").write_bytes(CONTENT["JSON lines"])
    (tmp_path / "notes.txt").write_text("prose\n")
    (tmp_path / "config.json").write_text('{\n "lr": 1\n}\n')
    (tmp_path / "weights.bin").write_bytes(CONTENT["CSV"])
    os.symlink(tmp_path, tmp_path / "b" / "loop")
    assert [source.path.name for source in open_logs(tmp_path)] == ["a.jsonl", "metrics.csv"]


def test_logs_that_appear_later_are_followed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.core.foreign.logs.SCAN_SECONDS", 0.0)
    (tmp_path / "a.jsonl").write_bytes(CONTENT["JSON lines"])
    logs = Logs([tmp_path])
    logs.read_all()
    assert len(logs.sources) == 1
    (tmp_path / "b.jsonl").write_bytes(CONTENT["JSON lines"])
    assert logs.poll()
    assert [points(source.series()["loss"]) for source in logs.sources] == [[(1.0, 2.0)]] * 2
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "b.jsonl").unlink()
    logs.poll()
    assert len(logs.sources) == 2  # what was read stays


def test_what_is_no_log_is_looked_at_again_only_when_it_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cockpit.core.foreign.logs.SCAN_SECONDS", 0.0)
    (tmp_path / "a.jsonl").write_bytes(CONTENT["JSON lines"])
    (tmp_path / "out.txt").write_text("It will take a while.\n")
    logs = Logs([tmp_path])
    logs.poll()
    looked: list[Path] = []
    head = kinds._head

    def noting(path: Path) -> bytes:
        looked.append(path)
        return head(path)

    monkeypatch.setattr(kinds, "_head", noting)
    logs.poll()
    assert looked == []
    with open(tmp_path / "out.txt", "a") as file:
        file.write("step 1 loss 2.0\n")
    logs.poll()
    assert looked == [tmp_path / "out.txt"]
    assert [source.path.name for source in logs.sources] == ["a.jsonl", "out.txt"]
