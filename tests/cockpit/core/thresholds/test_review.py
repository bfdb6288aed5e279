"""Reviewing and saving thresholds: nothing is lost, nothing is overwritten unseen."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from cockpit.core.thresholds.review import FEW, ThresholdReview
from engines.basics import files
from engines.basics.errors import DataError, UserError
from engines.contract.rundir import RunDirectory
from engines.thresholds.review import SAVE_LOCK, About, write_review
from projects.controls.thresholds import NAMES
from tests.support.fake_review import ABOUT, exported_config, review_arrays, reviewed_run
from tests.support.fake_run import FakeRun

HOLDER = """
import sys
import threading
from pathlib import Path
from typing import Any
from engines.basics.lock import RunLock
assert RunLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return reviewed_run(tmp_path, review_arrays()).run


def config_of(run: RunDirectory) -> dict[str, object]:
    content: dict[str, object] = json.loads((run.export / "control_config_v2.json").read_text())
    return content


@pytest.mark.behaviour("threshold-lies-between-equal")
def test_the_f1_shown_is_the_f1_at_the_saved_threshold(run: RunDirectory) -> None:
    review = ThresholdReview(run)
    review.save(review.optimum, who="me@here", now=5.0)
    again = ThresholdReview(run)
    assert again.saved == review.optimum
    for row in again.rows(again.saved):
        head = again.heads[row.name].head
        on = head.scores >= row.saved
        yes, hits = int(on.sum()), int((on & head.targets).sum())
        assert row.after is not None
        assert row.after == row.before
        assert row.after.f1 == pytest.approx(2 * hits / max(1, yes + row.positives))
        assert row.after.precision == (pytest.approx(hits / yes) if yes else None)
        assert row.after.alarm_rate == (None if head.quiet is None else pytest.approx(on[head.quiet].mean()))
        assert (row.positives, row.negatives) == (head.targets.sum(), (~head.targets).sum())


@pytest.mark.behaviour("thresholds-saved-checkpoint-epoch")
def test_a_save_changes_thresholds_only_and_is_told_in_the_history(run: RunDirectory) -> None:
    before = config_of(run)
    review = ThresholdReview(run)
    new = {**review.saved, "jump": 0.25}
    review.save(new, who="me@here", now=5.0)
    after = config_of(run)
    assert after["thresholds_reviewed"] is True
    assert after["thresholds_review"]["support"]["jump"]["positives"] > 0  # type: ignore[index]
    assert after["thresholds"]["action"][6] == 0.25  # type: ignore[index]
    assert {key: after[key] for key in ("version", "model", "training", "thresholds_unsupported")} == {
        key: before[key] for key in ("version", "model", "training", "thresholds_unsupported")
    }
    review.save({**new, "jump": 0.5}, who="me@here", now=6.0)  # what was saved is what is compared with next
    lines = [json.loads(line) for line in (run.review / "history.jsonl").read_text().splitlines()]
    assert [(line["time"], line["who"], line["epoch"], line["step"]) for line in lines] == [
        (5.0, "me@here", 2, 20),
        (6.0, "me@here", 2, 20),
    ]
    assert (lines[0]["new"]["jump"], lines[1]["old"]["jump"], lines[1]["new"]["jump"]) == (0.25, 0.25, 0.5)
    assert [lines[0]["old"][name] for name in NAMES[:12]] == before["thresholds"]["action"]  # type: ignore[index]


@pytest.mark.behaviour("two-cockpits-may-look")
def test_two_cockpits_cannot_overwrite_each_other(run: RunDirectory) -> None:
    mine, theirs = ThresholdReview(run), ThresholdReview(run)
    theirs.save({**theirs.saved, "jump": 0.3}, who="them", now=1.0)
    with pytest.raises(DataError, match="was changed since it was read"):
        mine.save({**mine.saved, "jump": 0.7}, who="me", now=2.0)
    assert ThresholdReview(run).saved["jump"] == 0.3
    assert len((run.review / "history.jsonl").read_text().splitlines()) == 1


def test_while_another_process_saves_nothing_is_saved(run: RunDirectory) -> None:
    review = ThresholdReview(run)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run.review / SAVE_LOCK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DataError, match="Another cockpit is saving"):
            review.save(review.saved, who="me", now=1.0)
        holder.communicate()
    review.save(review.saved, who="me", now=1.0)


def test_a_full_disk_leaves_the_config_as_it_was(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    before, review = config_of(run), ThresholdReview(run)
    monkeypatch.setattr(files, "replace_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        review.save(review.optimum, who="me", now=1.0)
    monkeypatch.undo()
    assert config_of(run) == before
    review.save(review.optimum, who="me", now=1.0)  # and the lock is free again


@pytest.mark.behaviour("thresholds-saved-checkpoint-epoch")
def test_thresholds_of_another_checkpoint_are_warned_of_and_not_saved(run: RunDirectory) -> None:
    write_review(run.review, review_arrays(seed=1), msgspec.structs.replace(ABOUT, epoch=7, step=70))
    review = ThresholdReview(run)
    assert "is from epoch 2, these numbers are from best.pt at epoch 7, step 70" in review.warning
    with pytest.raises(DataError, match=r"Nothing was saved\. .*cockpit export"):
        review.save(review.optimum, who="me", now=1.0)
    content = msgspec.json.encode(exported_config(review_arrays(), epoch=7, step=70))
    (run.export / "control_config_v2.json").write_bytes(content)
    assert ThresholdReview(run).warning == ""


def test_before_an_export_the_configs_own_thresholds_are_in_force(tmp_path: Path) -> None:
    run = reviewed_run(tmp_path, review_arrays(), exported=False).run
    review = ThresholdReview(run)
    names = ("sprint", "inv_shift_held", "hotbar_min_confidence")
    assert [review.saved[name] for name in names] == [0.5, 0.4, 0.3]
    with pytest.raises(DataError, match="no exported config yet: make it with `cockpit export"):
        review.save(review.optimum, who="me", now=1.0)


@pytest.mark.behaviour(
    "nan-both-infinities-place",
    "control-without-positives-without",
    "equal-scores-throughout-said",
    "support-interval-over-sessions",
)
def test_flags_say_what_to_know_before_trusting_a_threshold(tmp_path: Path) -> None:
    arrays = review_arrays()
    arrays["scores"][3, 0] = np.nan
    arrays["scores"][:, 1] = 0.25
    arrays["groups"][:] = 0
    judged = arrays["masks"][:, 7]
    arrays["targets"][:, 7] = judged
    review = ThresholdReview(reviewed_run(tmp_path, arrays).run)
    rows = {row.name: row for row in review.rows(review.optimum)}
    assert rows["swap_offhand"].flag == "cannot tune: no positives; kept"
    assert rows["attack"].flag == "cannot tune: no negatives; kept"
    assert rows["move_forward"].flag.startswith("cannot tune: 1 of ")
    assert rows["move_forward"].after is None
    assert rows["move_backward"].flag == "all scores are equal"
    assert rows["strafe_left"].flag == ""
    few = review.heads["inv_shift_held"].head.positives
    assert rows["inv_shift_held"].flag == f"only {few} positives"
    for name in ("swap_offhand", "attack", "move_forward"):
        assert rows[name].new == review.saved[name]
    assert all(it.interval is None for it in review.heads.values())


@pytest.mark.behaviour("threshold-moved-best-only", "threshold-moves-for-a-gain")
def test_a_threshold_moves_only_for_a_gain_above_the_regret(run: RunDirectory) -> None:
    """Against counting: move_backward is saved far from its best, the others near it."""
    review = ThresholdReview(run)
    moved = {name for name, value in review.optimum.items() if value != review.saved[name]}
    assert "move_backward" in moved
    assert "move_forward" not in moved
    for name in ("move_backward", "move_forward"):
        it, saved = review.heads[name], review.saved[name]
        head, best = it.head, it.best
        assert head.quiet is not None
        assert it.regret_set is not None
        assert best is not None
        values = []
        for threshold in (saved, best):
            on = head.scores >= threshold
            f1 = 2 * (on & head.targets).sum() / (on.sum() + head.targets.sum())
            values.append(f1 - 0.5 * on[head.quiet].mean())
        row = it.row(saved, best)
        assert row.gain == pytest.approx(values[1] - values[0])
        assert row.gained == pytest.approx(row.gain)
        assert (values[1] - values[0] > max(0.002, it.regret_set.regret)) == (name in moved)


@pytest.mark.behaviour("threshold-moved-best-only")
def test_few_sessions_say_why_there_is_no_interval(tmp_path: Path) -> None:
    review = ThresholdReview(reviewed_run(tmp_path, review_arrays(sessions=2)).run)
    it = review.heads["move_forward"]
    assert it.interval is None
    assert it.regret_set is not None
    assert review.no_interval(it) == "2 sessions: no interval"
    assert review.no_interval(review.heads["swap_offhand"]) == ""  # it cannot be tuned, and says so


@pytest.mark.behaviour("threshold-interval-holds-best")
def test_with_8_sessions_every_control_with_support_has_its_best_inside(run: RunDirectory) -> None:
    supported = [it for it in ThresholdReview(run).heads.values() if it.head.positives >= FEW and not it.head.untunable]
    assert len(supported) >= 10
    for it in supported:
        assert it.best is not None
        if it.interval is not None:
            assert it.interval.low <= it.best <= it.interval.high
    assert sum(it.interval is None for it in supported) == 0


@pytest.mark.behaviour("threshold-moves-for-a-gain")
def test_a_best_that_never_says_yes_is_flagged(tmp_path: Path) -> None:
    arrays = review_arrays()
    jump = NAMES.index("jump")
    arrays["scores"][:, jump] = np.where(arrays["targets"][:, jump], 0.2, 0.6) + arrays["scores"][:, jump] / 100
    arrays["idle"] = ~arrays["targets"][:, jump]
    it = ThresholdReview(reviewed_run(tmp_path, arrays).run).heads["jump"]
    assert it.head.positives >= FEW
    assert "the best never predicts +" in it.flag


def test_what_cannot_be_reviewed_is_a_sentence(tmp_path: Path) -> None:
    none = FakeRun(tmp_path).begin().started()
    with pytest.raises(DataError, match="has no review yet: every new best epoch writes one; the run is lost"):
        ThresholdReview(none.run)
    task = FakeRun(tmp_path, "controls-20261127-201500-fir", kind="task")
    with pytest.raises(UserError, match="is a task and has no thresholds"):
        ThresholdReview(task.run)
    old = FakeRun(tmp_path, "controls-20261127-201600-oak").begin()
    write_review(old.run.review, {"scores": np.zeros((3, 15))}, About(checkpoint="best.pt", step=1, epoch=1, score=0))
    with pytest.raises(DataError, match="The review lacks names"):
        ThresholdReview(old.run)
    damaged = reviewed_run(tmp_path / "b", review_arrays()).run
    (damaged.export / "control_config_v2.json").write_text("[")
    with pytest.raises(DataError, match="cannot be read as an exported config"):
        ThresholdReview(damaged)


def test_a_save_from_here_is_no_news_and_a_newer_review_stays_news(run: RunDirectory) -> None:
    review = ThresholdReview(run)
    new = dict(review.saved) | {NAMES[0]: 0.3}
    put, asked = review.file.save, []
    asking = threading.Thread(target=lambda: asked.append(review.stale))

    def save_while_another_thread_looks(*args: Any, **named: Any) -> None:
        put(*args, **named)
        asking.start()
        asking.join(0.2)  # time enough to look at what is half done, if that can be done at all

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(review.file, "save", save_while_another_thread_looks)
        review.save(new, who="ada", now=1.0)
    asking.join()
    asked.append(review.stale)
    write_review(run.review, review_arrays(), ABOUT)
    asked.append(review.stale)
    review.save(new | {NAMES[1]: 0.4}, who="ada", now=2.0)
    asked.append(review.stale)
    assert asked == [False, False, True, True]
