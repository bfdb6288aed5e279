"""Lines of charts: single runs, and the mean of several seeds with a band around it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from cockpit.core.compare import drawn as module
from cockpit.core.compare.drawn import DrawnLines, Slot, facts_of, mean_of
from cockpit.core.series import Series
from tests.support.compared import configured, model_of
from tests.support.fake_run import epoch


def series(name: str, steps: list[float], values: list[float]) -> Series:
    step = np.array(steps)
    return Series(name, step, step / 10, step * 2, np.array(values))


@pytest.mark.behaviour("seeds-are-one-line")
def test_the_mean_is_over_the_same_runs_at_every_step_with_their_sample_deviation() -> None:
    values = {0.0: [1.0, 3.0, 8.0], 10.0: [2.0, 2.5, 4.0]}
    logs = [
        {"loss": series("loss", [0, 5, 10, 20], [values[0.0][0], 9, values[10.0][0], 7])},
        {"loss": series("loss", [0, 10], [values[0.0][1], values[10.0][1]]), "own": series("own", [0], [1])},
        {"loss": series("loss", [0, 10, 20], [values[0.0][2], values[10.0][2], 6])},
    ]
    made = mean_of(logs)
    loss = made["loss"]
    assert loss.step.tolist() == [0, 10]  # at 20 the second has ended, at 5 only one has a value
    assert loss.epoch.tolist() == [0, 1]
    assert loss.band is not None
    for place, numbers in enumerate(values.values()):
        mean = sum(numbers) / 3
        deviation = (sum((number - mean) ** 2 for number in numbers) / 2) ** 0.5
        assert loss.value[place] == pytest.approx(mean)
        assert (loss.band[0][place], loss.band[1][place]) == pytest.approx((mean - deviation, mean + deviation))
    assert made["own"] is logs[1]["own"]
    assert made["own"].band is None


def test_what_is_not_finite_leaves_a_gap_in_the_mean() -> None:
    made = mean_of([{"loss": series("loss", [0, 1], [1, np.nan])}, {"loss": series("loss", [0, 1], [3, 3])}])
    assert made["loss"].value[0] == 2
    assert np.isnan(made["loss"].value[1])


def test_lines_keep_their_numbers_are_followed_and_read_again_when_they_come_back(tmp_path: Path) -> None:
    fakes = [configured(tmp_path, word, 0.1, 0.2, at=n, lr=n) for n, word in enumerate(("amber", "birch"))]
    first, second = [Slot(line) for line in model_of(fakes).table.lines]
    lines = DrawnLines()
    assert not lines.poll()
    lines.draw([first, None, second])
    assert lines.poll()
    assert {name for name in lines.series() if name.endswith(":score")} == {"1:score", "3:score"}
    assert not lines.poll()
    fakes[0].say(epoch(3, score=0.9, best=True))
    assert lines.poll()
    assert lines.series()["1:score"].value.tolist() == [0.1, 0.2, 0.9]
    lines.draw([None, None, second])
    assert lines.poll()
    assert {name.partition(":")[0] for name in lines.series()} == {"3"}
    shutil.rmtree(fakes[1].run.path)
    lines.draw([second, first])
    assert lines.poll()
    assert {name for name in lines.series() if name.endswith(":score")} == {"1:score", "2:score"}
    with pytest.raises(ValueError, match="9 lines in one chart"):
        lines.draw([None] * 9)


def test_a_group_is_a_mean_with_the_settings_of_its_runs(tmp_path: Path) -> None:
    scores = ([0.1, 0.4], [0.3, 0.8, 0.9])
    fakes = [configured(tmp_path, "amber", *own, at=n, seed=n, lr=5) for n, own in enumerate(scores)]
    (group,) = model_of(fakes).table.lines
    lines = DrawnLines()
    lines.draw([Slot(group)])
    lines.poll()
    assert lines.series()["1:score"].value.tolist() == pytest.approx([0.2, 0.6])
    facts = facts_of(group)
    assert facts.config is not None
    assert (facts.config["training.seed"], facts.config["training.lr"], facts.best) == ("0, 1", 5, None)


def test_a_large_group_is_read_in_pieces_and_drawn_once_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE", 2)
    fakes = [configured(tmp_path, "amber", n / 10, at=n, seed=n) for n in range(5)]
    (group,) = model_of(fakes).table.lines
    lines = DrawnLines()
    lines.draw([Slot(group)])
    polls = 0
    while not lines.series():
        lines.poll()
        polls += 1
    assert polls == 3
    assert lines.series()["1:score"].value.tolist() == pytest.approx([0.2])
    assert not lines.poll()
