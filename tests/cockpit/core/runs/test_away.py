"""What happened while nobody looked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cockpit.core.runs.away import Away, Lookout, read, seen_path, while_away, write
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import Shown
from engines.runs.spending import Span
from tests.support.fake_run import FakeRun

LEFT = 1_000_000.0
BACK = LEFT + 2 * 3600 + 14 * 60


def run(word: str, **facts: Any) -> RunSummary:
    path = Path("/runs") / f"controls-20261127-100000-{word}"
    given: dict[str, Any] = {"path": path, "id": path.name, "created": LEFT - 9000, "state": "running", "attempt": 1}
    return RunSummary(**given | facts)


BEFORE = (
    run("amber", done=30, score=0.7, spans=(Span(LEFT - 9000, None, 1.0),)),
    run("ember", done=2),
    run("birch", state="finished", done=9, score=0.5, spans=(Span(0, LEFT - 5, 5.0),)),
    run("slate", is_task=True, done=4),
)


def away(tmp_path: Path, now: list[RunSummary], back: float = BACK) -> Away | None:
    path = tmp_path / "state" / "seen.json"
    write(path, Path("/runs"), BEFORE, LEFT)
    return while_away(read(path), now, back)


def test_progress_ends_and_money_of_an_absence(tmp_path: Path) -> None:
    amber, ember, birch, slate = BEFORE
    told = away(
        tmp_path,
        [
            replace(amber, done=41, score=0.736),
            replace(ember, state="failed", last_step=18204),
            birch,
            replace(slate, state="finished", done=12),
            run("fern", done=1, score=0.1, created=LEFT + 60, spans=(Span(LEFT + 3600, LEFT + 7200, 2.0),)),
        ],
    )
    assert told is not None
    assert told.seconds == 2 * 3600 + 14 * 60
    assert told.happened == (
        "ember: failed at step 18,204",
        "fern: 1 epoch, new best 0.100, is new",
        "amber: 11 epochs, new best 0.736",
        "slate: finished",
        "spent $4.23",  # 2 h 14 m at $1 and one hour at $2
    )


def test_the_same_word_twice_is_told_by_the_whole_id(tmp_path: Path) -> None:
    other = replace(BEFORE[1], id="sim-20261127-100000-ember", path=Path("/runs/sim"), state="lost")
    told = away(tmp_path, [replace(BEFORE[1], state="stopped"), other])
    assert told is not None
    assert told.happened == ("sim-20261127-100000-ember: 2 epochs, lost", "controls-20261127-100000-ember: stopped")


def test_nothing_is_told_of_a_first_visit_a_short_absence_and_a_quiet_one(tmp_path: Path) -> None:
    changed = [replace(BEFORE[1], state="stopped")]
    assert while_away(None, changed, BACK) is None
    assert away(tmp_path, changed, LEFT + 299) is None
    assert away(tmp_path, changed, LEFT + 300) is not None
    assert away(tmp_path, list(BEFORE[1:])) is None
    assert away(tmp_path, []) is None


@pytest.mark.behaviour("bad-news-at-once")
@pytest.mark.parametrize("state", ["failed", "lost", "out-of-budget", "broken"])
def test_bad_news_has_no_minimum(tmp_path: Path, state: Shown) -> None:
    """And money, progress and good ends of the same minute wait."""
    rows = [replace(BEFORE[0], state="stopped"), replace(BEFORE[1], state=state)]
    told = away(tmp_path, rows, LEFT + 1)
    assert told is not None
    assert len(told.happened) == 1
    assert state in told.happened[0]
    known = [BEFORE[0], replace(BEFORE[1], state=state)]
    write(tmp_path / "seen.json", tmp_path, known, LEFT)
    assert while_away(read(tmp_path / "seen.json"), known, LEFT + 1) is None


def test_many_are_counted(tmp_path: Path) -> None:
    told = away(tmp_path, [run(f"w{place}", state="finished") for place in range(300)])
    assert told is not None
    assert len(told.happened) == 7
    assert told.happened[-1] == "294 more"


def test_it_is_kept_for_each_folder_in_the_state_directory(tmp_path: Path) -> None:
    home = {"XDG_STATE_HOME": str(tmp_path)}
    one, other = seen_path(Path("/runs"), home), seen_path(Path("/more"), home)
    assert one.parent == other.parent == tmp_path / "cockpit"
    assert one != other
    assert seen_path(Path("/runs"), {}).parent == Path("~/.local/state/cockpit").expanduser()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"folder": 1}', b"\xff\x00"])
def test_a_damaged_record_is_a_first_visit(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "seen.json"
    path.write_bytes(content)
    assert read(path) is None


def test_a_lookout_keeps_every_run_and_tells_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, moment = tmp_path / "runs", LEFT
    fakes = [FakeRun(folder, f"controls-20261127-10{place:02d}00-amber").begin().started() for place in range(60)]
    Lookout(folder, lambda: moment).keep(Fleet(folder))
    kept = read(seen_path(folder))
    assert kept is not None
    assert (kept.time, len(kept.runs)) == (LEFT, 60)
    fakes[7].end("failed")
    moment = BACK
    fleet, lookout = Fleet(folder), Lookout(folder, lambda: moment)
    fleet.poll(most=60)
    assert lookout.away(fleet.summaries()) == Away(BACK - LEFT, ("amber: failed",))
    assert lookout.away(fleet.summaries()) is None


def test_a_state_directory_that_cannot_be_written_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    Lookout(tmp_path, lambda: LEFT).keep(Fleet(tmp_path))
