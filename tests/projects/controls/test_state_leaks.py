"""Leaks are found in any state column, by the same numbers that counting frame by frame gives."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.controls.demo.names import USE
from projects.controls.demo.session import make_session
from projects.controls.layout import HOTBAR_SLOT, LEAKING_STATE, SCREEN_OPEN, STATE_NAMES
from projects.controls.recordings import Recording, write_recording
from projects.controls.state_leaks import EVENTS, LIMIT, Leak, Seen, added, frame_events, leaks_table, state_leaks
from projects.controls.stats import tables
from tests.projects.controls.sessions import random_session

BLOCKING = STATE_NAMES.index("is_blocking")
Frames = list[tuple[bool, bool, int, int]]
"""Of each frame: the event, the event before, the column, the column before."""


def counted(train: Frames, validation: Frames) -> tuple[float, float]:
    """The share and the bits, a frame and a dictionary entry at a time."""

    def bits(pick: tuple[int, ...], coarser: list[tuple[int, ...]]) -> float:
        """Of what knows the parts `pick` of a frame, drawn towards what knows the coarser ones before it."""
        total = 0.0
        for frame in validation:
            chance = (sum(one[0] for one in train) + 0.5) / (len(train) + 1)
            for parts in (*coarser, pick):
                like = [one for one in train if all(one[part] == frame[part] for part in parts)]
                chance = (sum(one[0] for one in like) + 4 * chance) / (len(like) + 4)
            total -= math.log2(chance if frame[0] else 1 - chance)
        return total / len(validation)

    own, last = (1,), (1, 3)
    pairs = [
        (bits(own, [own]), bits((1, 2), [own])),
        (bits(last, [own, last]), bits((1, 3, 2), [own, last])),
    ]
    return max(((before - after) / before, before - after) for before, after in pairs)


def seen(frames: Frames) -> Seen:
    on, before, value, last = (np.array(part) for part in zip(*frames, strict=True))
    return Seen(on.astype(bool), before.astype(bool), value.astype(np.int64), last.astype(np.int64))


@st.composite
def frames(draw: st.DrawFn, values: int) -> Frames:
    size = draw(st.integers(3, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    on, column = rng.random(size + 1) < 0.4, rng.integers(0, values, size + 1)
    if draw(st.booleans()):
        column[on] = values - 1
    return [(bool(on[k]), bool(on[k - 1]), int(column[k]), int(column[k - 1])) for k in range(1, size + 1)]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), values=st.integers(1, 5))
def test_what_a_column_adds_equals_a_count_frame_by_frame(data: st.DataObject, values: int) -> None:
    train, validation = data.draw(frames(values)), data.draw(frames(values))
    assert added(seen(train), seen(validation), values) == pytest.approx(counted(train, validation), abs=1e-9)
    if values == 1:
        assert added(seen(train), seen(validation), values) == (0, 0), "a constant column adds exactly nothing"


def test_whole_recordings_equal_a_count_frame_by_frame() -> None:
    """Of a column with few values and one with many, about every event that has support."""
    train, validation = [random_session(f"s{k}", 80, k) for k in range(2)], [random_session("v", 200, 9)]
    for one in (*train, *validation):
        one.state[:, BLOCKING] = np.round(one.state[:, BLOCKING]).clip(-1, 1)
    leaks = {leak.column: leak for leak in state_leaks(train, validation)}
    health = np.concatenate([one.state[:, 11] for one in train])
    before = np.concatenate([np.r_[one.state[:1, 11], one.state[:-1, 11]] for one in train])
    edges = np.quantile(np.stack([health, before]).astype(float), np.arange(1, 16) / 16)
    for name, place in (("is_blocking", BLOCKING), ("health", 11)):
        best: list[tuple[float, str, float]] = []
        for k, event in enumerate(EVENTS):
            parts = []
            for some in (train, validation):
                rows: Frames = []
                for one in some:
                    on, _, judged = frame_events(one)[..., k].T
                    values = one.state[:, place].astype(float)
                    numbers = [
                        int(v) + 1 if place == BLOCKING else sum(bool(v >= edge) for edge in edges) for v in values
                    ]
                    rows += [
                        (bool(on[n]), bool(n and on[n - 1]), numbers[n], numbers[max(n - 1, 0)])
                        for n in range(len(one)) if judged[n]
                    ]  # fmt: skip
                parts.append(rows)
            if sum(row[0] for row in parts[1]) >= 20:
                share, bits = counted(*parts)
                best.append((share, event, bits))
        share, event, bits = max(best)
        assert leaks[name].about == event
        assert leaks[name].share == pytest.approx(share, abs=1e-9)
        assert leaks[name].bits == pytest.approx(bits, abs=1e-9)


def test_events_are_what_their_names_say() -> None:
    session = random_session("a", 80, 3)
    on, before, judged = (part.T for part in frame_events(session).transpose(1, 0, 2))
    rows = dict(zip(EVENTS, on, strict=True))
    assert np.array_equal(rows["use_item"], session.controls[:, USE] > 0.5)
    assert np.array_equal(rows["a slot is chosen"], (session.controls[:, 14:23] > 0.5).any(axis=1))
    assert np.array_equal(rows["look left"], session.controls[:, 9] < -0.08)
    assert np.array_equal(rows["look down"], session.controls[:, 10] > 0.08)
    assert np.array_equal(before[:, 1:], on[:, :-1])
    assert not before[:, 0].any()
    open_screen = session.state[:, SCREEN_OPEN] > 0
    assert np.array_equal(judged[EVENTS.index("inv_left_click")], open_screen)
    assert np.array_equal(judged[EVENTS.index("hotbar_3")], ~open_screen)
    assert judged[EVENTS.index("open_inventory")].all()


@pytest.fixture(scope="module")
def demo() -> tuple[list[Recording], list[Recording]]:
    """Eight sessions that train and four that validate, of two minutes each."""
    sessions = [make_session(5, number, 2.0).recording for number in range(12)]
    return sessions[:8], sessions[8:]


def by_name(leaks: list[Leak]) -> dict[str, Leak]:
    return {leak.column: leak for leak in leaks}


def with_column(recordings: list[Recording], place: int, values: list[np.ndarray]) -> list[Recording]:
    changed = []
    for one, column in zip(recordings, values, strict=True):
        state = one.state.copy()
        state[:, place] = column
        changed.append(replace(one, state=state))
    return changed


def test_no_demo_column_is_flagged_and_the_lagged_ones_would_be(demo: tuple[list[Recording], list[Recording]]) -> None:
    leaks = by_name(state_leaks(*demo))
    assert list(leaks) == list(STATE_NAMES)
    assert [name for name, leak in leaks.items() if leak.flagged] == []
    for place in LEAKING_STATE:
        leak = leaks[STATE_NAMES[place]]
        assert leak.recorded is not None
        assert leak.recorded > (0.9 if place != HOTBAR_SLOT else LIMIT)
        assert (leak.share or 0) < 0.1
    assert "none adds over 0.2" in leaks_table(list(leaks.values())).note


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_planted_leak_is_flagged(demo: tuple[list[Recording], list[Recording]], ahead: int) -> None:
    """`is_blocking` shows use_item of the same frame, or of the next one: the recorder is a frame late."""
    planted = [
        with_column(part, BLOCKING, [np.append(one.controls[ahead:, USE], np.zeros(ahead)) for one in part])
        for part in demo
    ]
    leaks = state_leaks(*planted)
    assert [leak.column for leak in leaks if leak.flagged] == ["is_blocking"]
    leak = by_name(leaks)["is_blocking"]
    assert leak.about == "use_item"
    assert (leak.share or 0) > (0.6 if ahead else 0.9)
    table = leaks_table(leaks)
    assert table.rows[0][0] == "is_blocking"
    assert table.rows[0][table.columns.index("flagged")] == "LEAK"
    assert table.note.startswith("is_blocking: over 0.2")


def test_a_lagged_column_that_runs_ahead_is_flagged(demo: tuple[list[Recording], list[Recording]]) -> None:
    """Lagging by a frame does not help where the recorder writes the next frame's value."""
    place = STATE_NAMES.index("is_using_item")
    planted = [with_column(part, place, [np.append(one.controls[1:, USE], 0) for one in part]) for part in demo]
    assert [leak.column for leak in state_leaks(*planted) if leak.flagged] == ["is_using_item"]


def test_without_support_nothing_is_said() -> None:
    leaks = state_leaks([random_session("a", 60, 0)], [random_session("b", 12, 1)])
    assert {(leak.share, leak.about, leak.flagged) for leak in leaks} == {(None, "", False)}


def test_data_stats_flag_it(tmp_path: Path) -> None:
    sessions = [random_session(f"s{k}", 420, k) for k in range(3)]
    for one in with_column(sessions, BLOCKING, [one.controls[:, USE] for one in sessions]):
        write_recording(tmp_path / f"{one.name}.npz", one)
    table = tables(str(tmp_path))["state columns"]
    assert {row[0]: row[5] for row in table.rows if row[5]} == {"is_blocking": "LEAK"}
    assert Counter(row[1] for row in table.rows) == {"as recorded": 42, "lagged": 4}
