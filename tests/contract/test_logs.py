"""Writing the logs: torn lines are ended, numbers that are not finite are named, a full disk is an error."""

from __future__ import annotations

import math
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.basics.jsonl import RecordFollower, last_lines
from engines.basics.line_writer import LineWriter, append_line
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.runs import launch


def test_a_torn_last_event_is_ended_and_damages_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"type":"phase","phase":"trai')
    writer = ev.EventWriter(path, attempt=2)
    writer.write(ev.Phase(phase="loading"))
    writer.close()
    follower = RecordFollower(path, ev.decoder)
    (event,) = follower.poll()
    assert isinstance(event, ev.Phase)
    assert (event.phase, event.attempt, event.seq) == ("loading", 2, 0)
    assert [damage.line for damage in follower.damage] == [1]


def test_a_torn_last_command_is_ended_and_damages_only_itself(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.commands.write_bytes(b'{"type":"stop","atte')
    pause = cmd.Pause(attempt=3)
    launch.send(run, pause)
    launch.send(run, cmd.Continue(attempt=3))
    follower = RecordFollower(run.commands, cmd.decoder)
    first, second = follower.poll()
    assert first == pause
    assert isinstance(second, cmd.Continue)
    assert len(follower.damage) == 1


def test_a_whole_log_gets_no_empty_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append_line(path, b"one")
    append_line(path, b"two")
    assert path.read_bytes() == b"one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_write_cut_short_is_an_error_and_the_next_line_still_stands_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    writer = LineWriter(path)
    write = os.write

    def full_disk(file: int, data: bytes) -> int:
        return write(file, data[:3])

    monkeypatch.setattr(os, "write", full_disk)
    with pytest.raises(OSError, match="No space left on device"):
        writer.append(b"one 11")
    monkeypatch.setattr(os, "write", write)
    writer.append(b"two")
    writer.close()
    assert path.read_bytes() == b"one\ntwo\n"


@given(st.dictionaries(st.text(max_size=5), st.none() | st.floats(), max_size=6))
def test_finite_names_exactly_what_it_removes(values: dict[str, float | None]) -> None:
    clean, named = ev.finite(values, "train.")
    assert clean.keys() == values.keys()
    for key, value in values.items():
        if value is None or math.isfinite(value):
            assert clean[key] == value
            assert f"train.{key}" not in named
        else:
            assert clean[key] is None
            assert f"train.{key}" in named


@pytest.mark.behaviour("nan-both-infinities-place")
def test_an_epoch_that_is_not_finite_is_written_as_json_that_every_reader_takes(tmp_path: Path) -> None:
    train, named = ev.finite({"loss": math.nan, "look": -math.inf, "action": 0.5}, "train.")
    writer = ev.EventWriter(tmp_path / "events.jsonl", attempt=1)
    row = ev.Epoch(
        epoch=1, step=9, stage="main", train=train, validation={"loss": None}, score=None, lr=1e-4, best=False,
        weights={"action": 1.0}, seconds=2.0, nonfinite=named,
    )  # fmt: skip
    writer.write(row, durable=True)
    writer.write(ev.Ended(reason="stopped", step=9))
    writer.close()
    text = (tmp_path / "events.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    first, second = (msgspec.json.decode(line) for line in text.splitlines())
    assert first["train"] == {"loss": None, "look": None, "action": 0.5}
    assert first["nonfinite"] == ["train.loss", "train.look"]
    assert [first["seq"], second["seq"]] == [0, 1]
    assert first["time"] <= second["time"]


orders: list[cmd.Command] = [
    cmd.Pause(attempt=1),
    cmd.Continue(attempt=1),
    cmd.Stop(attempt=1, when="after_epoch"),
    cmd.SetLossWeights(attempt=2, weights={"action": 1.5, "look": 0.25}, at_step=12),
    cmd.SetLrScale(attempt=1, scale=0.5),
    cmd.SetEpochs(attempt=1, epochs=20),
    cmd.SetPatience(attempt=1, patience=4),
    cmd.SaveCheckpoint(attempt=1),
    cmd.Evaluate(attempt=1),
]


@pytest.mark.parametrize("order", orders, ids=lambda order: type(order).__name__)
def test_every_command_survives_the_wire_inside_its_answer(order: cmd.Command) -> None:
    assert cmd.decoder.decode(cmd.encode(order)) == order
    answer = ev.CommandAnswer(command=order, state="applied", step=5)
    assert ev.decoder.decode(msgspec.json.encode(answer)) == answer


@pytest.mark.parametrize(
    ("order", "words"),
    zip(
        orders,
        ["pause", "continue", "stop after epoch", "loss weights action 1.5, look 0.25", "learning rate × 0.5",
         "epochs 20", "patience 4", "save a checkpoint", "evaluate now"],
        strict=True,
    ),
)  # fmt: skip
def test_every_command_has_words(order: cmd.Command, words: str) -> None:
    assert cmd.describe(order) == words


def test_ids_of_commands_are_their_own() -> None:
    assert len({cmd.Pause(attempt=1).id for _ in range(100)}) == 100


def test_last_lines_reads_only_the_end_of_a_log_of_any_bytes(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    assert last_lines(path, 3) == []
    path.write_bytes(b"x" * 100_000 + b"\nbad \xff byte\n\xc3\xa9\nlast, unfinished")
    assert last_lines(path, 3) == ["bad \ufffd byte", "é", "last, unfinished"]
    assert last_lines(path, 1, limit=10) == ["unfinished"]
