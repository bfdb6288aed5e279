import shutil
import time
from pathlib import Path

import msgspec
import pytest

from cockpit.core.runs import fleet as module
from cockpit.core.runs import summary
from cockpit.core.runs.fleet import Fleet, FleetNews
from cockpit.core.runs.summary import RunSummary
from engines.contract import events as ev
from tests.support.fake_run import FakeRun


@pytest.fixture(autouse=True)
def _scan_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCAN_SECONDS", 0.0)


def everything(fleet: Fleet) -> dict[str, RunSummary]:
    """What the fleet tells until it has nothing more to tell."""
    told: dict[str, RunSummary] = {}
    while True:
        news = fleet.poll()
        told |= {summary.id: summary for summary in news.changed}
        if not news.changed and not news.loading:
            return told


def test_no_folder_and_no_runs(tmp_path: Path) -> None:
    news = Fleet(tmp_path / "none").poll()
    assert (news.changed, news.gone, news.loading) == ((), (), False)


def test_what_a_list_shows_of_a_run(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, label="try 2").begin().started(epochs=8).epochs(1, 2, 3, best=2)
    with fake.locked():
        summary = everything(Fleet(tmp_path))[fake.id]
    assert (summary.state, summary.project, summary.label) == ("running", "controls", "try 2")
    assert (summary.done, summary.total, summary.score) == (3, 8, 0.2)
    assert summary.scores == (0.1, 0.2, 0.3)
    assert (summary.device, summary.attempt, summary.is_task) == ("cpu", 1, False)
    assert summary.spans[-1].ended is None


def test_only_changes_are_told(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    with fake.locked():
        fleet = Fleet(tmp_path)
        assert everything(fleet)
        assert everything(fleet) == {}
        fake.epochs(1)
        assert everything(fleet)[fake.id].done == 1
        fake.end("finished")
        assert everything(fleet)[fake.id].state == "finished"


def test_what_changes_while_another_looks_is_still_told(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    fleet, fake = Fleet(runs), FakeRun(runs).begin().started()
    with fake.locked():
        assert everything(fleet)[fake.id].state == "running"
        fake.end("finished")
    fleet.refresh()
    fleet.refresh()
    assert everything(fleet)[fake.id].state == "finished"

    fake.run.path.rename(tmp_path / "elsewhere")
    fleet.refresh()
    (tmp_path / "elsewhere").rename(fake.run.path)
    fleet.refresh()
    news = fleet.poll()
    assert ([summary.id for summary in news.changed], news.gone) == ([fake.id], ())
    shutil.rmtree(fake.run.path)
    fleet.refresh()
    assert fleet.poll() == FleetNews((), (fake.run.path,), loading=False)


def test_a_new_run_appears_and_a_deleted_one_goes(tmp_path: Path) -> None:
    first = FakeRun(tmp_path, "controls-20261127-100000-amber").begin().started()
    first.end("finished")
    fleet = Fleet(tmp_path)
    assert list(everything(fleet)) == [first.id]
    second = FakeRun(tmp_path, "controls-20261127-110000-birch").begin()
    assert list(everything(fleet)) == [second.id]
    shutil.rmtree(first.run.path)
    assert fleet.poll().gone == (first.run.path,)


def test_an_ended_run_is_left_alone_until_it_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRun(tmp_path).begin().started().epochs(1)
    fake.end("stopped")
    fleet = Fleet(tmp_path)
    everything(fleet)
    with monkeypatch.context() as patch:
        patch.setattr(summary, "RunReader", lambda run: pytest.fail("an ended run was read again"))
        assert everything(fleet) == {}
    with fake.locked():
        fake.begin().started(resumed_step=10)
        assert everything(fleet)[fake.id].state == "running"


def test_tasks_count_what_they_count(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, kind="task").begin()
    fake.say(ev.Phase(phase="working"), ev.Progress(done=3, total=12, unit="sessions"))
    with fake.locked():
        summary = everything(Fleet(tmp_path))[fake.id]
    assert (summary.is_task, summary.done, summary.total) == (True, 3, 12)


def test_broken_runs_are_shown_as_that_and_harm_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = FakeRun(tmp_path, "controls-20261127-100000-amber").begin().started().epochs(1)
    good.end("finished")
    garbled = FakeRun(tmp_path, "controls-20261127-110000-birch")
    garbled.run.info_file.write_text("{nonsense")
    attempt = FakeRun(tmp_path, "controls-20261127-120000-cedar").begin()
    (attempt.run.attempts / "1.json").write_bytes(b"\x00" * 40)
    damaged = FakeRun(tmp_path, "controls-20261127-130000-delta").begin().started()
    damaged.run.events.write_bytes(b"\xff\xfe nonsense\n" * 3)
    damaged.end("finished")
    (tmp_path / "controls-20261127-140000-ember").symlink_to(tmp_path / "gone")
    (tmp_path / "controls-20261127-150000-flint").mkdir()
    (tmp_path / "controls-20261127-160000-garnet").symlink_to("x" * 300)  # stat fails, as where entering is forbidden
    (tmp_path / "controls-99999999-999999-hazel").mkdir()
    folder = FakeRun(tmp_path, "controls-20261127-170000-ivory").begin()
    folder.run.events.unlink(missing_ok=True)
    folder.run.events.mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "a file").write_text("not a run")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    told = everything(Fleet(tmp_path))
    assert {run.rsplit("-", 1)[-1]: summary.state for run, summary in told.items()} == {
        "amber": "finished",
        "birch": "broken",
        "cedar": "broken",
        "delta": "finished",
        "ember": "broken",
        "flint": "broken",
        "garnet": "broken",
        "hazel": "broken",
        "ivory": "broken",
    }
    assert told[folder.id].detail == "events.jsonl: Is a directory."
    assert "run.json" in told[garbled.id].detail
    assert told[damaged.id].detail == "3 bad lines in events.jsonl, the first is line 1"
    assert told[garbled.id].created == 1795777200.0  # 2026-11-27 11:00:00 UTC, by its name


def test_a_directory_still_being_made_is_not_broken(tmp_path: Path) -> None:
    (tmp_path / "controls-20261127-150000-flint").mkdir()
    assert everything(Fleet(tmp_path)) == {}


def test_many_runs_come_in_portions_newest_first(tmp_path: Path) -> None:
    for minute in range(30):
        FakeRun(tmp_path, f"controls-20261127-10{minute:02d}00-amber").begin().end("finished")
    fleet = Fleet(tmp_path)
    first = fleet.poll(most=10)
    assert first.loading
    assert [summary.id[20:22] for summary in first.changed] == [str(minute) for minute in range(29, 19, -1)]
    assert len(everything(fleet)) == 20


def test_scores_are_thinned_with_the_newest_kept(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started(epochs=1000).epochs(*range(1, 501))
    fake.end("finished")
    scores = everything(Fleet(tmp_path))[fake.id].scores
    assert len(scores) <= 32
    assert scores[-1] == 50.0


def test_words_and_parent_of_an_ended_run_are_read_again_when_they_change(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started().end("stopped")
    fleet = Fleet(tmp_path)
    everything(fleet)
    fake.run.write_info(msgspec.structs.replace(fake.run.info, label="new", notes="why", parent="other"))
    summary = everything(fleet)[fake.id]
    assert (summary.label, summary.notes, summary.parent) == ("new", "why", "other")
    assert fleet.summaries() == [summary]


def test_a_link_and_its_target_gone_are_noticed(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path / "mine").begin().end("finished")
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / fake.id).symlink_to(fake.run.path)
    fleet = Fleet(folder)
    assert everything(fleet)[fake.id].state == "finished"
    shutil.rmtree(fake.run.path)
    assert everything(fleet)[fake.id].state == "broken"
    (folder / fake.id).unlink()
    assert fleet.poll().gone == (folder / fake.id,)


def test_asking_for_a_scan_does_not_wait_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCAN_SECONDS", 1e9)
    fleet = Fleet(tmp_path)
    everything(fleet)
    fake = FakeRun(tmp_path).begin()
    assert everything(fleet) == {}
    fleet.scan_now()
    assert list(everything(fleet)) == [fake.id]


@pytest.mark.behaviour("run-100-000-epochs")
def test_a_huge_run_is_read_in_pieces_and_holds_back_no_other(tmp_path: Path) -> None:
    huge = FakeRun(tmp_path, "controls-20261127-210000-amber", label="long")
    huge.begin().started(epochs=200).epochs(*range(1, 201), best=7).end("finished")
    others = [FakeRun(tmp_path, f"controls-20261127-20000{n}-birch").begin().started().end("stopped") for n in range(3)]
    fleet = Fleet(tmp_path, piece=huge.run.events.stat().st_size // 4)
    news = fleet.poll()
    first = {summary.id: summary for summary in news.changed}
    assert [first[fake.id].state for fake in others] == ["stopped"] * 3
    unread = first[huge.id]
    assert (unread.state, unread.label, unread.done, unread.total, unread.score) == ("reading", "long", 0, 0, None)
    assert news.loading
    told = []
    while news.loading:
        news = fleet.poll()
        told += [(summary.id, summary.state) for summary in news.changed]
    assert told == [(huge.id, "finished")]  # no state and no number on the way to it
    assert {row.id: row for row in fleet.summaries()}[huge.id] == summary.look(huge.run.path)


def test_one_who_asks_once_is_told_of_whole_runs(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started(epochs=200).epochs(*range(1, 201)).end("finished")
    pieces, whole = Fleet(tmp_path, piece=4096), Fleet(tmp_path)
    pieces.refresh()
    assert pieces.summaries() == list(whole.poll().changed)
    assert [(row.id, row.done) for row in pieces.summaries()] == [(fake.id, 200)]


def test_what_is_known_of_a_run_stays_while_it_is_read_again(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started(epochs=200).epochs(*range(1, 201)).end("stopped")
    fleet = Fleet(tmp_path, piece=4096)
    assert everything(fleet)[fake.id].state == "stopped"
    fake.begin().end("finished")
    states = []
    while (news := fleet.poll()).loading or news.changed:
        states += [row.state for row in news.changed]
    assert states == ["finished"]
