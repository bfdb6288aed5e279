"""What `--set` says becomes a struct, or one sentence says what is wrong with it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from engines.basics.errors import UserError
from engines.tasks.arguments import as_struct


class Rollout(msgspec.Struct):
    out: Path
    starts: Annotated[int, Meta(ge=1, le=1000000)] = 300
    rate: Annotated[float, Meta(gt=0)] = 20.0
    sessions: Annotated[int, Meta(ge=2, description="one to train on and one to validate")] = 8
    share: Annotated[float, Meta(gt=0, lt=1)] | None = None
    horizons: list[int] = msgspec.field(default_factory=lambda: [1, 5])
    names: tuple[str, ...] = ()
    fresh: bool = False
    kind: Literal["first", "last"] | None = None
    title: str = ""

    def __post_init__(self) -> None:
        if max(self.horizons) > self.starts:
            raise ValueError(f"horizons go up to {max(self.horizons)}, starts are {self.starts}")


def test_values_become_what_the_struct_says() -> None:
    given = {
        "out": "~/x",
        "rate": 5,
        "horizons": "1,5, 10",
        "names": "one",
        "fresh": True,
        "kind": "last",
        "share": 0.5,
    }
    order = as_struct(given, Rollout)
    assert order == Rollout(
        Path.home() / "x", rate=5.0, horizons=[1, 5, 10], names=("one",), fresh=True, kind="last", share=0.5
    )
    assert isinstance(order.rate, float)


def test_what_is_absent_has_its_default_and_a_single_value_is_a_list() -> None:
    assert as_struct({"out": "x"}, Rollout) == Rollout(Path("x"))
    assert as_struct({"out": "x", "horizons": 7}, Rollout).horizons == [7]
    assert as_struct({"out": "x", "horizons": [7, 8]}, Rollout).horizons == [7, 8]
    assert as_struct({"out": "x", "kind": None, "share": None}, Rollout).kind is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"start": 3}, r"start is no argument \(did you mean 'starts'\?\); expected out, starts, .* or title"),
        ({"starts": 2.5}, "starts is 2.5, expected a whole number from 1 to 1000000"),
        ({"starts": "many"}, "starts is 'many', expected a whole number"),
        ({"starts": True}, "starts is true, expected a whole number"),
        ({"starts": 0}, "starts is 0, expected a whole number from 1 to 1000000"),
        ({"starts": None}, "starts is empty, expected a whole number"),
        ({"rate": 0}, "rate is 0, expected a number above 0"),
        ({"rate": math.nan}, "rate is nan, expected a number above 0"),
        ({"rate": math.inf}, "rate is inf, expected a number above 0"),
        ({"share": 1}, "share is 1, expected a number above 0 and below 1"),
        ({"sessions": 1}, "sessions is 1, expected a whole number of at least 2: one to train on and one to validate"),
        ({"horizons": "1,x"}, "horizons is '1,x', expected a whole number, or several separated by commas"),
        ({"horizons": [1, None]}, r"horizons is \[1, None\], expected a whole number, or several"),
        ({"fresh": "yes"}, "fresh is 'yes', expected true or false"),
        ({"kind": "fist"}, r"kind is 'fist', expected first or last \(did you mean 'first'\?\)"),
        ({"title": 7}, "title is 7, expected text, written as '\"7\"'"),
        ({"title": "\x1b]0;x" * 40, "out": 3}, "out is 3, expected a path"),
        ({"out": ""}, "out is '', expected a path"),
        ({"horizons": "400"}, "horizons go up to 400, starts are 300"),
    ],
)
def test_a_bad_one_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        as_struct({"out": "x", **given}, Rollout)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_what_has_no_default_must_be_there() -> None:
    with pytest.raises(UserError, match="out is missing, expected a path"):
        as_struct({}, Rollout)


def test_nothing_of_a_value_reaches_the_terminal_raw() -> None:
    with pytest.raises(UserError) as caught:
        as_struct({"out": "x", "kind": "\x1b]0;title\x07" * 20}, Rollout)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 200
