"""Which runs are listed and in which order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cockpit.core.runs.run_order import ORDERS, choose, matching, ordered
from cockpit.core.runs.summary import RunSummary
from cockpit.core.text_filter import TextFilter
from engines.runs.spending import Span

NOW = 10_000.0


def run(word: str, **facts: Any) -> RunSummary:
    given: dict[str, Any] = {"path": Path("/runs") / word, "id": f"controls-x-{word}", "created": 0.0}
    return RunSummary(**given | {"state": "finished"} | facts)


AMBER = run(
    "amber", created=1.0, state="running", score=0.5, done=3, spans=(Span(NOW - 3600, None, 2.0),), device="cuda:0"
)
BIRCH = run("birch", created=3.0, label="Größer K=60", score=0.7, done=9, spans=(Span(0.0, 3600.0, 9.0),))
CEDAR = run("cedar", created=2.0, state="failed", notes="a [b]strange\x1b[31m one", spans=(Span(0.0, 60.0, 0.0),))
ALL = (AMBER, BIRCH, CEDAR)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "amber birch cedar"),
        ("   ", "amber birch cedar"),
        ("AMBER", "amber"),
        ("controls größer", "birch"),
        ("k=60 finished", "birch"),
        ("kind:training", "amber birch cedar"),
        ("kind:task", ""),
        ("train", ""),
        ("/^kind:/", ""),
        ("k=60 running", ""),
        ("cuda:0", "amber"),
        ("[b]strange one", "cedar"),
        ("/amber|CEDAR/", "amber cedar"),
        ("/^failed$", "cedar"),
        ("/", "amber birch cedar"),
        ("//", "amber birch cedar"),
        ("(", ""),
    ],
)
def test_words_must_all_occur_and_slashes_hold_an_expression(text: str, words: str) -> None:
    chosen = TextFilter.parse(text)
    assert not chosen.problem
    assert " ".join(row.path.name for row in matching(ALL, chosen)) == words


@pytest.mark.behaviour("bad-filter-filters-nothing")
@pytest.mark.parametrize("text", ["/[", "/(a", "/*/", "/a{99999999999}/"])
def test_what_is_no_expression_is_said_and_filters_nothing(text: str) -> None:
    chosen = TextFilter.parse(text)
    assert re.fullmatch(r"Not a regular expression, .+", chosen.problem)
    assert not chosen.active
    assert matching(ALL, chosen) == list(ALL)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("", "amber birch cedar"),  # live on top, then the newest
        ("-newest", "amber birch cedar"),
        ("newest", "amber cedar birch"),  # the oldest first, wherever it is live
        ("nonsense", "amber birch cedar"),
        ("name", "amber birch cedar"),
        ("-name", "cedar birch amber"),
        ("state", "amber birch cedar"),
        ("-state", "cedar birch amber"),
        ("-score", "birch amber cedar"),
        ("score", "amber birch cedar"),  # without a score: last either way
        ("-spent", "birch amber cedar"),  # $9, $2, and a minute without a price
        ("spent", "cedar amber birch"),
        ("-epoch", "birch amber cedar"),
        ("epoch", "amber birch cedar"),
        ("age", "birch cedar amber"),
        ("-age", "amber cedar birch"),
    ],
)
def test_every_order_and_its_reverse(written: str, words: str) -> None:
    for rows in (ALL, ALL[::-1]):
        assert " ".join(row.path.name for row in ordered(rows, written, NOW)) == words


def test_choosing_an_order_again_turns_it_round() -> None:
    for order in ORDERS[1:]:
        first = choose(order.name, "")
        assert first == order.written
        assert choose(order.name, choose(order.name, first)) == first
        assert {first, choose(order.name, first)} == {order.name, f"-{order.name}"}
    assert choose("newest", "") == "newest"
    assert choose("newest", "-score") == "-newest"
