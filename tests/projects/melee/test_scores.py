"""Scores of rollouts beside a plain loop; baselines beside their formulas; the breakdown beside counting."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from projects.melee.actions import CATEGORIES, COUNT, NAMES, OTHER, category
from projects.melee.breakdown import ActionBreakdown, count_actions
from projects.melee.evaluation import fixed_starts
from projects.melee.frames import ACTION, ON_GROUND, PERCENT, Frames, X, Y
from projects.melee.rollout import constant_velocity, persistence
from projects.melee.scores import MODEL, STILL, TRUTH, VELOCITY_LINE, Scores
from tests.projects.melee.made import frames

HORIZONS = (1, 3, 8)


def rollouts() -> tuple[Frames, Frames, Frames]:
    """A start, what was rolled and what was true: near one another, with a dead fighter here and there."""
    truth, other = frames(6, 9, first_action=14), frames(6, 9, seed=1)
    truth.ints[2, 5, 0, ACTION] = 3  # dead within the horizon
    truth.ints[3, 0, 1, ACTION] = 12  # respawning at the start
    rolled = truth.map(torch.clone)
    rolled.state[..., : Y + 1] += 0.02 * other.state[..., : Y + 1]
    wrong = torch.rand(6, 9, 2, generator=torch.Generator().manual_seed(3)) < 0.3
    rolled.ints[..., ACTION] = torch.where(wrong, other.ints[..., ACTION], truth.ints[..., ACTION])
    return truth.at(0), rolled.at(slice(1, None)), truth.at(slice(1, None))


def test_scores_are_those_of_a_loop() -> None:
    start, rolled, truth = rollouts()
    scores = Scores(HORIZONS)
    for part in (slice(0, 2), slice(2, 6)):  # in two parts, as batches come

        def some(all_of: Frames, rows: slice = part) -> Frames:
            return all_of.map(lambda x: x[rows])

        scores.add(MODEL, some(start), some(rolled), some(truth))
    sums: dict[tuple[str, int], list[float]] = defaultdict(list)
    for b in range(6):
        for f in (0, 1):
            actions = [int(start.ints[b, f, ACTION]), *truth.ints[b, :, f, ACTION].tolist()]
            if any(action <= 13 for action in actions):
                continue
            lost, errors = False, []
            for t in range(8):
                apart = [
                    abs(float(rolled.value(column)[b, t, f] - truth.value(column)[b, t, f]))
                    for column in (X, Y, PERCENT)
                ]
                errors.append((apart[0] + apart[1]) / 2)
                lost |= errors[-1] > 10
                right = float(rolled.ints[b, t, f, ACTION] == truth.ints[b, t, f, ACTION])
                if t + 1 in HORIZONS:
                    sums["position", t + 1] += errors
                    sums["percent", t + 1].append(apart[2])
                    sums["action", t + 1].append(right)
                    sums["survival", t + 1].append(float(not lost))
                    if actions[t + 1] != actions[t]:
                        sums["change", t + 1].append(right)
    for horizon in HORIZONS:
        assert scores.position(MODEL, horizon) == pytest.approx(np.mean(sums["position", horizon]), rel=1e-4)
        for what in ("percent", "action", "survival", "change"):
            assert scores.at(MODEL, what, horizon) == pytest.approx(np.mean(sums[what, horizon]), rel=1e-4), what


def beside_baselines() -> tuple[Scores, Frames, Frames]:
    start, rolled, truth = rollouts()
    scores = Scores(HORIZONS)
    for line, some in (
        (MODEL, rolled), (STILL, persistence(start, 8)), (VELOCITY_LINE, constant_velocity(start, 8)), (TRUTH, truth),
    ):  # fmt: skip
        scores.add(line, start, some, truth)
    return scores, rolled, truth


def test_truth_has_no_error_and_tables_have_a_row_per_line() -> None:
    scores, _, _ = beside_baselines()
    assert scores.position(TRUTH, 8) == 0
    assert scores.at(TRUTH, "action", 3) == 1
    tables = scores.tables()
    assert [row[0] for row in tables["Position"].rows][:3] == [MODEL, STILL, VELOCITY_LINE]
    assert tables["Position"].columns[:4] == ("", "1", "3", "8")
    for name in ("Rules broken", "Hits"):
        assert [row[0] for row in tables[name].rows] == [MODEL, STILL, VELOCITY_LINE, TRUTH]


def test_a_loss_is_marked_with_the_baseline_that_wins() -> None:
    """Percent is made as wrong as can be from frame 3 on; nobody knows an action that begins, but the run."""
    scores, rolled, truth = beside_baselines()
    wrong = rolled.map(torch.clone)
    wrong.state[:, 2:, :, PERCENT] = 999 * 0.01
    scores = Scores(HORIZONS, {**scores._sums, MODEL: {}})
    scores.add(MODEL, truth.at(0), wrong, truth)
    rows = {row[0]: row[1:] for row in scores.tables()["Against the baselines"].rows}
    assert list(rows) == ["Position", "Percent", "Action", "Action changes", "Survival"]
    assert rows["Percent"][-1] == "✗ persistence at 3, 8"
    assert rows["Position"][-1] == rows["Action changes"][-1] == ""
    errors = [scores.at(line, "percent", 8) or 0 for line in (MODEL, STILL)]
    assert rows["Percent"][2] == pytest.approx(1 - errors[0] / errors[1], abs=1e-3)
    right = [scores.at(line, "action", 3) or 0 for line in (MODEL, STILL)]
    assert rows["Action"][1] == pytest.approx(1 - (1 - right[0]) / (1 - right[1]), abs=1e-3)


def test_rises_of_percent_are_counted_a_minute() -> None:
    start, _, truth = rollouts()
    percent = torch.cat([start.value(PERCENT)[:, None], truth.value(PERCENT)], dim=1)
    rises = sum(
        float(percent[b, t + 1, f]) > float(percent[b, t, f]) for b in range(6) for t in range(8) for f in (0, 1)
    )
    scores = Scores(HORIZONS)
    scores.add(TRUTH, start, truth, truth)
    scores.add(STILL, start, persistence(start, 8), truth)
    assert scores.hits(TRUTH) == pytest.approx(rises / (6 * 8) * 3600)
    assert scores.hits(STILL) == 0


def test_nothing_to_count_is_no_number() -> None:
    start, rolled, truth = rollouts()
    truth.ints[..., ACTION] = 0
    scores = Scores(HORIZONS)
    scores.add(MODEL, start, rolled, truth)
    assert scores.position(MODEL, 3) is None
    assert scores.at(MODEL, "action", 3) is None


def test_baselines_follow_their_formulas() -> None:
    start = frames(4, 1).at(0)
    still, moved = persistence(start, 5), constant_velocity(start, 5)
    for t in range(5):
        assert torch.equal(still.at(t).state, start.state)
        for b in range(4):
            for f in (0, 1):
                _, x, y, _, air, up, ground, across, lift = start.state[b, f, :9].tolist()
                own = ground if start.state[b, f, ON_GROUND] > 0.5 else air
                expected = 20 * (x + (t + 1) * (own + across)), 20 * (y + (t + 1) * (up + lift))
                found = float(moved.value(X)[b, t, f]), float(moved.value(Y)[b, t, f])
                assert found == pytest.approx(expected, abs=1e-3)
    assert torch.equal(moved.ints, still.ints)


def test_starts_of_a_game_depend_on_its_length_alone() -> None:
    games, rows = fixed_starts(np.array([500, 150, 4000]), 20, 60, seed=0)
    assert Counter(games.tolist()) == {0: 20, 2: 20}
    assert rows.min() >= 150
    assert (rows + 60 < np.array([500, 150, 4000])[games]).all()
    alone = fixed_starts(np.array([4000]), 20, 60, seed=0)[1]
    assert rows[games == 2].tolist() == alone.tolist()
    assert len(fixed_starts(np.array([100]), 20, 60, seed=0)[0]) == 0


def test_the_breakdown_counts() -> None:
    random = torch.Generator().manual_seed(0)
    truth = torch.randint(10, 80, (200, 7, 2), generator=random)
    said = torch.where(torch.rand(truth.shape, generator=random) < 0.7, truth, truth + 1)
    begins = torch.rand(truth.shape, generator=random) < 0.2
    parts = [count_actions(said[rows], truth[rows], begins[rows]) for rows in (slice(0, 13), slice(13, 200))]
    breakdown = ActionBreakdown(parts[0] + parts[1])
    right = said == truth
    assert breakdown.accuracy() == pytest.approx((float(right.float().mean()), float(right[begins].float().mean())))
    tables = breakdown.tables()
    by_action = {row[0]: row[1:] for row in tables["Actions"].rows}
    for action in (10, 44, 79):
        of_it = truth == action
        row = by_action[f"{action} {NAMES[action]}"]
        assert row[0] == int(of_it.sum())
        assert row[1] == pytest.approx(float(right[of_it].float().mean()), abs=1e-4)
        assert row[2] == int((of_it & begins).sum())
    by_category = {row[0]: row[1] for row in tables["Actions by category"].rows}
    expected = Counter(category(int(action)) for action in truth.flatten())
    assert by_category == {name: expected.get(name, 0) for name in (*CATEGORIES, OTHER)}
    worst = tables["Worst actions"].rows
    shares = [float(row[2] or 0) for row in worst]
    assert 0 < len(shares) <= 5
    assert shares == sorted(shares)
    assert ActionBreakdown().accuracy() == (None, None)


@pytest.mark.parametrize(
    ("action", "name"),
    [(14, "idle"), (244, "movement"), (38, "damage"), (37, "aerial"), (64, "ground attack"), (74, "aerial attack"),
     (236, "shield and dodge"), (243, "grab"), (263, "edge"), (397, "special"), (0, OTHER), (264, OTHER), (340, OTHER)],
)  # fmt: skip
def test_categories(action: int, name: str) -> None:
    assert category(action) == name


def test_every_action_has_a_name() -> None:
    assert len(NAMES) == COUNT
    assert (NAMES[14], NAMES[65], NAMES[245], NAMES[399]) == ("standing", "nair", "edge teetering start", "special 399")
