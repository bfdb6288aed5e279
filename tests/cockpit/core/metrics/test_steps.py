import json
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.metrics import steps
from cockpit.core.metrics.steps import StepFollower
from cockpit.core.sparkline import sparkline
from engines.contract.steps import ABSENT, StepWriter, read_series
from engines.runs.history import History


def records(*rows: tuple[float, int, float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Rows of (step, attempt, loss), with a time and a gradient norm that tell them apart."""
    return np.array([[step, attempt, step * 2.0, loss, loss + 1] for step, attempt, loss in rows], dtype=np.float64)


def writer(folder: Path) -> StepWriter:
    return StepWriter(folder, ["time", "loss", "grad_norm"])


attempts = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=5)


@given(plan=attempts, cuts=st.integers(1, 7))
def test_following_gives_what_reading_it_all_gives(
    plan: list[tuple[int, int]], cuts: int, tmp_path_factory: Any
) -> None:
    """Attempts begin at any step; the follower looks after every few records, the reader once at the end."""
    folder = tmp_path_factory.mktemp("steps")
    follower, out, loss = StepFollower(folder), writer(folder), 0.0
    for attempt, (first, length) in enumerate(plan, 1):
        for start in range(first, first + length, cuts):
            rows = [(step, attempt, loss := loss + 1) for step in range(start, min(start + cuts, first + length))]
            out.append(records(*rows))
            assert follower.poll()
    steps, losses = read_series(folder, "loss")
    assert follower.steps.column("step").tolist() == steps.tolist()
    assert follower.steps.column("loss").tolist() == losses.tolist()
    assert follower.steps.newest == steps[-1] + 1


def test_the_last_value_is_the_last_that_was_logged(tmp_path: Path) -> None:
    follower, out = StepFollower(tmp_path), StepWriter(tmp_path, ["time", "loss"])
    assert follower.steps.last("loss") is None
    out.append(np.array([[0.0, 1, 0.0, ABSENT]]))
    follower.poll()
    assert follower.steps.last("loss") is None
    out.append(np.array([[1.0, 1, 0.0, 0.5], [2.0, 1, 0.0, ABSENT]]))
    follower.poll()
    assert follower.steps.last("loss") == 0.5
    out.append(np.array([[3.0, 1, 0.0, np.nan]]))
    follower.poll()
    assert np.isnan(follower.steps.last("loss") or 0.0)


class CountingFile:
    """A file that notes how many bytes are read from it."""

    total = 0

    def __init__(self, file: IO[Any]) -> None:
        self._file = file

    def __enter__(self) -> "CountingFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def seek(self, place: int) -> int:
        return self._file.seek(place)

    def read(self, size: int = -1) -> Any:
        data = self._file.read(size)
        CountingFile.total += len(data)
        return data


@pytest.mark.behaviour("byte-read-twice-run")
def test_no_byte_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, follower = writer(tmp_path), StepFollower(tmp_path)
    out.append(records(*((step, 1, 0.5) for step in range(1000))))
    follower.poll()
    out.append(records((1000, 1, 0.5), (1001, 1, 0.5)))
    monkeypatch.setattr(steps, "open", lambda path, mode: CountingFile(Path(path).open(mode)), raising=False)  # noqa: SIM115
    assert follower.poll()
    assert not follower.poll()
    assert CountingFile.total == 2 * 5 * 8


def test_a_view_once_given_never_changes(tmp_path: Path) -> None:
    out, follower = writer(tmp_path), StepFollower(tmp_path)
    out.append(records((0, 1, 0.1), (1, 1, 0.2), (2, 1, 0.3)))
    follower.poll()
    before = follower.steps
    kept = before.table.copy()
    out.append(records((1, 2, 9.0), (2, 2, 9.1)))  # a resume from step 1
    follower.poll()
    assert follower.steps.column("loss").tolist() == [0.1, 9.0, 9.1]
    np.testing.assert_array_equal(before.table, kept)


def test_new_columns_torn_records_and_damage_harm_nothing(tmp_path: Path) -> None:
    out, follower = writer(tmp_path), StepFollower(tmp_path)
    assert not follower.poll()
    out.append(records((0, 1, 0.1)))
    with open(tmp_path / "00001.f64", "ab") as file:
        file.write(b"torn")
    follower.poll()
    assert follower.steps.column("loss").tolist() == [0.1]
    other = StepWriter(tmp_path, ["loss"])  # a new segment without time and gradient norm
    other.append(np.array([[1, 1, 0.2], [np.nan, 1, 0.3]]))
    (tmp_path / "00003.json").write_text("{not json")
    (tmp_path / "00003.f64").write_bytes(b"\x00" * 64)
    (tmp_path / "00004.json").write_text(json.dumps([]))
    (tmp_path / "00004.f64").write_bytes(b"\x00" * 64)
    follower.poll()
    assert follower.steps.column("loss").tolist() == [0.1, 0.2]
    assert np.isnan(follower.steps.column("time")[1])


def test_a_replaced_folder_is_read_again(tmp_path: Path) -> None:
    out, follower = writer(tmp_path), StepFollower(tmp_path)
    out.append(records((0, 1, 0.1), (1, 1, 0.2)))
    follower.poll()
    for file in tmp_path.iterdir():
        file.unlink()
    assert follower.poll()
    assert follower.steps.newest == 0
    writer(tmp_path).append(records((0, 1, 0.7)))
    follower.poll()
    assert follower.steps.column("loss").tolist() == [0.7]


def test_the_rate_is_that_of_the_newest_steps(tmp_path: Path) -> None:
    out, follower = writer(tmp_path), StepFollower(tmp_path)
    out.append(records(*((step, 1, 0.5) for step in range(200))))  # time is twice the step
    follower.poll()
    assert follower.steps.rate(History().stepping) == pytest.approx(0.5)
    assert StepFollower(tmp_path / "none").steps.rate(History().stepping) is None


def test_a_sparkline_rises_with_its_values() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([0.0, None, 1.0], 8) == "▁ █"
    assert sparkline([3.0] * 4, 8) == "▁▁▁▁"
    assert sparkline([None, None], 8) == "  "
    assert sparkline([], 8) == ""
    assert len(sparkline(list(range(1000)), 14)) == 14
    assert sparkline([0.0] * 50 + [9.0] + [0.0] * 50, 10).count("█") == 1
