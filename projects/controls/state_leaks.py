"""What each column of the game state gives away of its own frame's controls.

For a column and a control (an event that is on or off on a frame), two frequency tables of the training frames predict
the control on the validation frames: one knows the frame before, the other the column's value on this frame too. The
*share* is what the second takes off the first's mean log loss (bits a frame): 0, the column adds nothing; 1, it says
all that the frame before leaves open. Held out, so that what is learnt by chance is below 0. The frame before is

    (a) the control itself, or
    (b) the control itself and the column's value,

and the larger share counts. With (b) a change of the slot in the hand gives away the choice of a slot, and what has
been so for long (an enemy is near) adds nothing; with (a) a column that runs a frame ahead gives itself away.

A table is the frequency of the event in each context, drawn towards that of the coarser context by `SHRINK` frames;
the coarsest is (on + ½) / (frames + 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.training.project import Table
from projects.controls.features import lagged_state
from projects.controls.layout import (
    BINARY,
    CONTROL_NAMES,
    HOTBAR,
    LEAKING_STATE,
    LOOK,
    LOOK_DEADZONE,
    STATE_NAMES,
)
from projects.controls.masks import Bools, Floats, frame_masks
from projects.controls.metrics import LEAST_SUPPORT
from projects.controls.recordings import Recording

LIMIT = 0.2
"""Share from which on a column is flagged; on the demo recordings clean columns have up to .10, planted leaks .99."""
SHRINK = 4.0
MOST_VALUES = 16
"""A column with more distinct values is cut into so many parts of about equal frequency."""
MOST_FRAMES = 200_000
"""Of training and of validation frames, evenly spread: more add little but time."""
EVENTS = (
    *(CONTROL_NAMES[column] for column in BINARY), "a slot is chosen", *(CONTROL_NAMES[column] for column in HOTBAR),
    "look left", "look right", "look up", "look down",
)  # fmt: skip
Whole = NDArray[np.int64]


class Leak(NamedTuple):
    """What a column adds: the largest share, of which event, and how many bits a frame that is.

    None and "" where no event has `LEAST_SUPPORT` validation frames. recorded: the share if models were shown the
    column as it is recorded, which for the lagged ones is not so.
    """

    column: str
    share: float | None
    about: str
    bits: float | None
    recorded: float | None

    @property
    def flagged(self) -> bool:
        return self.share is not None and self.share > LIMIT


class Seen(NamedTuple):
    """Some frames of one event and one column: (frames,) each.

    on: whether the event is, before: whether it was on the frame before. value, last: the column as whole numbers, on
    the frame and on the one before it.
    """

    on: Bools
    before: Bools
    value: Whole
    last: Whole


class _Column(NamedTuple):
    """A column of the training and of the validation frames as whole numbers: (frames, 2), a frame's and the last."""

    train: Whole
    validation: Whole
    values: int


def state_leaks(train: Sequence[Recording], validation: Sequence[Recording]) -> list[Leak]:
    """Of all 46 columns, as models are shown them."""
    events = gathered(train, frame_events), gathered(validation, frame_events)
    shown = gathered(train, _shown_state), gathered(validation, _shown_state)
    recorded = gathered(train, _recorded_state), gathered(validation, _recorded_state)
    leaks = []
    for place, name in enumerate(STATE_NAMES):
        share, about, bits = _largest(*events, _whole(shown[0][..., place], shown[1][..., place]))
        other = share
        if place in LEAKING_STATE:
            other = _largest(*events, _whole(recorded[0][..., place], recorded[1][..., place]))[0]
        leaks.append(Leak(name, share, about, bits, other))
    return leaks


def frame_events(recording: Recording) -> Bools:
    """(frames, 3, 29): which of `EVENTS` are on, which were on the frame before, and which mean something here."""
    masks, pressed = frame_masks(recording.controls, recording.state), recording.controls > 0.5
    yaw, pitch = recording.controls[:, LOOK].T
    turns = [yaw < -LOOK_DEADZONE, yaw > LOOK_DEADZONE, pitch < -LOOK_DEADZONE, pitch > LOOK_DEADZONE]
    on = np.column_stack([pressed[:, BINARY], masks.hotbar_changed, pressed[:, HOTBAR], *turns])
    before = np.concatenate([np.zeros_like(on[:1]), on[:-1]])
    playing = np.repeat(masks.gameplay[:, None], on.shape[1] - len(BINARY), axis=1)
    return np.stack([on, before, np.concatenate([masks.binary, playing], axis=1)], axis=1)


def _shown_state(recording: Recording) -> Floats:
    return _with_last(lagged_state(recording.state))


def _recorded_state(recording: Recording) -> Floats:
    return _with_last(recording.state)


def _with_last(state: Floats) -> Floats:
    """(frames, 2, 46): the values of a frame and of the one before; the first frame has itself before it."""
    return np.stack([state, np.concatenate([state[:1], state[:-1]])], axis=1)


def gathered(recordings: Sequence[Recording], rows: Callable[[Recording], NDArray[Any]]) -> NDArray[Any]:
    """`rows` of the recordings one after another, of every k-th frame where there are over `MOST_FRAMES`."""
    stride = math.ceil(sum(map(len, recordings)) / MOST_FRAMES)
    return np.concatenate([rows(one)[::stride] for one in recordings])


def _whole(train: Floats, validation: Floats) -> _Column:
    """A number a value, or a part of the training values where there are many. train, validation: (frames, 2)."""
    found = np.unique(train).astype(np.float64)
    edges = (found[1:] + found[:-1]) / 2
    if len(found) > MOST_VALUES:
        edges = np.unique(np.quantile(train.astype(np.float64), np.arange(1, MOST_VALUES) / MOST_VALUES))
    ours, theirs = (np.searchsorted(edges, part, side="right").astype(np.int64) for part in (train, validation))
    return _Column(ours, theirs, len(edges) + 1)


def _largest(train: NDArray[Any], validation: NDArray[Any], column: _Column) -> tuple[float | None, str, float | None]:
    """The largest share over the events with support: it, the name of the event, and bits a frame."""
    best: tuple[float | None, str, float | None] = None, "", None
    for k, name in enumerate(EVENTS):
        ours, theirs = _seen(train[..., k], column.train), _seen(validation[..., k], column.validation)
        if theirs.on.sum() >= LEAST_SUPPORT:
            share, bits = added(ours, theirs, column.values)
            if best[0] is None or share > best[0]:
                best = share, name, bits
    return best


def _seen(event: Bools, column: Whole) -> Seen:
    """The frames that are judged of `event: (frames, 3)` and `column: (frames, 2)`."""
    judged = event[:, 2]
    return Seen(event[judged, 0], event[judged, 1], column[judged, 0], column[judged, 1])


def added(train: Seen, validation: Seen, values: int) -> tuple[float, float]:
    """What a column of so many `values` adds about an event, as a share and in bits a frame."""
    rate = np.full(2, (train.on.sum() + 0.5) / (len(train.on) + 1))
    bare = _frequency(train.on, train.before, rate)
    known = _context(train, values), _context(validation, values)
    coarse = _frequency(train.on, known[0].last, np.repeat(bare, values))
    # drawn once more towards itself, as what knows the column is: one that never changes adds exactly nothing
    pairs = (
        (_frequency(train.on, train.before, bare)[validation.before.astype(int)],
         _frequency(train.on, known[0].value, np.repeat(bare, values))[known[1].value]),
        (_frequency(train.on, known[0].last, coarse)[known[1].last],
         _frequency(train.on, known[0].both, np.repeat(coarse, values))[known[1].both]),
    )  # fmt: skip
    gains = []
    for without, knowing in pairs:
        before, after = _bits(without, validation.on), _bits(knowing, validation.on)
        gains.append(((before - after) / before, before - after))
    return max(gains)


class _Contexts(NamedTuple):
    """Of each frame, the number of its context: event and column value, event and last value, event and both."""

    value: Whole
    last: Whole
    both: Whole


def _context(seen: Seen, values: int) -> _Contexts:
    event = seen.before.astype(np.int64) * values
    return _Contexts(event + seen.value, event + seen.last, (event + seen.last) * values + seen.value)


def _frequency(on: Bools, context: NDArray[Any], towards: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often the event is on in each context, drawn towards a frequency: (contexts,)."""
    context = context.astype(np.int64)
    frames, hits = (np.bincount(some, minlength=len(towards)) for some in (context, context[on]))
    return (hits + SHRINK * towards) / (frames + SHRINK)


def _bits(probability: NDArray[np.float64], on: Bools) -> float:
    """The mean log loss in bits."""
    return float(-np.log2(np.where(on, probability, 1 - probability)).mean())


def leaks_table(leaks: Sequence[Leak]) -> Table:
    """A row a column, the flagged ones first, then by share."""
    ranked = sorted(leaks, key=lambda leak: -(leak.share or 0))
    lagged = [STATE_NAMES[column] for column in LEAKING_STATE]
    return Table(
        columns=("state", "shown", "adds", "about", "bits", "flagged", "as recorded"),
        rows=tuple(
            (leak.column, "lagged" if leak.column in lagged else "as recorded", leak.share, leak.about, leak.bits,
             "LEAK" if leak.flagged else "", leak.recorded)
            for leak in ranked
        ),
        note=f"{flags(leaks)} Adds: the share of what the frame before leaves open of a control (log loss on the "
        "sessions that validate, bits a frame) that the column's value on this frame takes away, 1 being all; of the "
        f"control where that is most, of those with {LEAST_SUPPORT} such frames. As recorded: if it were not lagged.",
    )  # fmt: skip


def flags(leaks: Sequence[Leak]) -> str:
    """Which columns are flagged, as a sentence."""
    found = [leak.column for leak in leaks if leak.flagged]
    if not found:
        return f"No state column gives away its own frame's controls (none adds over {LIMIT:g})."
    return (
        f"{', '.join(found)}: over {LIMIT:g}, so likely an effect of the controls on the same frame; scores "
        "on such data say nothing of the game."
    )
