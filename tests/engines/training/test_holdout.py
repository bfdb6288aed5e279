"""Whole groups are held out: drawn evenly over their kinds, or by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.basics.errors import DataError
from engines.training.holdout import drawn, hold_out

GAMES = [f"game_{k:02d}" for k in range(10)]


def held(**lists: Any) -> Any:
    return hold_out(Path("games"), GAMES, "game", fraction=0.2, seed=3, **lists)


@given(
    types=st.lists(st.sampled_from("abcd"), min_size=2, max_size=40),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_the_fraction_is_kept_in_all_and_nearly_in_each_type(types: list[str], fraction: float, seed: int) -> None:
    held_out = drawn(types, fraction, seed)
    assert len(set(held_out)) == len(held_out) == min(max(1, round(fraction * len(types))), len(types) - 1)
    assert held_out == drawn(types, fraction, seed)
    share = len(held_out) / len(types)
    counts = Counter(types[k] for k in held_out)
    for name, count in Counter(types).items():
        assert abs(counts[name] - share * count) <= 2


def test_every_type_is_in_both_parts_where_it_can_be() -> None:
    types = ["walk", "fight", "build", "mixed"] * 5
    for seed in range(10):
        held_out = drawn(types, 0.2, seed)
        assert sorted(types[k] for k in held_out) == ["build", "fight", "mixed", "walk"]
    assert len({tuple(drawn(types, 0.2, seed)) for seed in range(10)}) > 1


def test_the_only_session_of_a_type_is_kept_for_training() -> None:
    types = ["walk"] * 8 + ["fight"]
    assert all(8 not in drawn(types, 0.2, seed) for seed in range(20))


def test_the_draw_of_a_seed_never_changes() -> None:
    assert drawn(["walk", "fight", "build", "mixed"] * 3, 0.2, 42) == [8, 10]


def test_nothing_is_in_two_parts_and_the_summary_names_what_is_held_out() -> None:
    found = held(test=["game_03", "game_07"])
    assert sorted([*found.train, *found.validation, *found.tested]) == list(range(10))
    assert found.tested == [3, 7]
    assert len(found.validation) == round(0.2 * 8)
    assert found.summary("game") == {
        "train_games": 6,
        "validation_games": [GAMES[k] for k in found.validation],
        "test_games": ["game_03", "game_07"],
    }
    assert "test_games" not in held().summary("game")


def test_a_draw_is_spread_over_kinds_without_what_is_tested() -> None:
    kinds = ["a", "b"] * 5
    for seed in range(20):
        found = hold_out(
            Path("games"), GAMES, "game", fraction=0.25, seed=seed, kinds=kinds, test=["game_00", "game_01"]
        )
        assert sorted(kinds[k] for k in found.validation) == ["a", "b"]
        assert not {0, 1} & set(found.validation)


@given(
    kinds=st.lists(st.sampled_from("abcd"), min_size=3, max_size=40),
    validation=st.floats(0.05, 0.4),
    test=st.floats(0.05, 0.4),
    seed=st.integers(0, 99),
)
def test_a_drawn_test_leaves_every_kind_that_is_large_enough_in_all_parts(
    kinds: list[str], validation: float, test: float, seed: int
) -> None:
    names, n = [f"{k:02d}" for k in range(len(kinds))], len(kinds)
    found = hold_out(Path("x"), names, "game", fraction=validation, seed=seed, kinds=kinds, test_fraction=test)
    assert sorted([*found.train, *found.validation, *found.tested]) == list(range(n))
    assert len(found.tested) == max(1, round(test * n))
    assert len(found.validation) == min(max(1, round(validation * n)), n - len(found.tested) - 1)
    large = {kind for kind, count in Counter(kinds).items() if count >= 3}
    parts = [{kinds[k] for k in part} for part in (found.tested, found.validation, found.train)]
    if len(found.tested) >= len(large):
        assert large <= parts[0]
    left = Counter(kinds[k] for k in (*found.validation, *found.train))
    if len(found.validation) >= sum(count >= 2 for count in left.values()):
        assert {kind for kind, count in left.items() if count >= 2} <= parts[1]


def test_four_types_of_five_sessions_are_in_every_part() -> None:
    kinds = ["walk", "fight", "build", "mixed"] * 5
    names = [f"{k:02d}" for k in range(20)]
    for seed in range(10):
        found = hold_out(Path("x"), names, "game", fraction=0.2, seed=seed, kinds=kinds, test_fraction=0.2)
        assert [sorted(kinds[k] for k in part) for part in (found.tested, found.validation)] == [sorted(kinds[:4])] * 2
        assert Counter(kinds[k] for k in found.train) == dict.fromkeys(kinds[:4], 3)


def test_a_drawn_test_is_a_share_of_all_groups_and_named_ones_come_before_it() -> None:
    found = held(test_fraction=0.3)
    assert (len(found.tested), len(found.validation), len(found.train)) == (3, 2, 5)
    assert found.summary("game")["test_games"] == [GAMES[k] for k in found.tested]
    assert held(test_fraction=0.3, test=["game_04"]).tested == [4]
    assert held(test_fraction=0.0) == held()
    with pytest.raises(DataError, match="holds 2 games; expected at least 3, since whole games are held out for valid"):
        hold_out(Path("x"), GAMES[:2], "game", fraction=0.2, seed=0, test_fraction=0.2)


def test_names_say_exactly_what_validates() -> None:
    found = held(validation=["game_09", "game_01", "game_01"], test=["game_00"])
    assert (found.validation, found.tested, found.train) == ([1, 9], [0], [2, 3, 4, 5, 6, 7, 8])


def test_a_long_list_is_counted() -> None:
    names = [f"{k:04d}" for k in range(1000)]
    found = hold_out(Path("games"), names, "game", fraction=0.1, seed=0)
    said = found.summary("game")["validation_games"]
    assert len(said) == 51
    assert said[:50] == [names[k] for k in found.validation[:50]]
    assert said[50] == "and 50 more"


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"validation": ["game_99"]}, r"games: holds no game 'game_99', .* \(did you mean 'game_09'\?\)"),
        ({"test": ["x"]}, "holds no game 'x', which should be held out"),
        ({"validation": ["game_01"], "test": ["game_01"]}, "'game_01' is listed for validation and for test"),
        ({"validation": GAMES}, "every game is held out, expected at least one to train on"),
        ({"test": GAMES[1:]}, r"holds one game only \(game_00\); expected at least two, since whole games"),
        ({"test": GAMES}, "holds no game; expected at least two"),
    ],
)
def test_a_bad_list_is_one_sentence(lists: dict[str, list[str]], said: str) -> None:
    with pytest.raises(DataError, match=said):
        held(**lists)
