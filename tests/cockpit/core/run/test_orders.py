"""What became of an order, in words."""

from __future__ import annotations

import pytest

from cockpit.core.run.orders import Order
from engines.contract import commands as cmd
from engines.contract import events as ev

EDIT = cmd.SetLrScale(attempt=2, scale=0.5)
AT_EPOCH = cmd.SetLossWeights(attempt=2, weights={"look": 0.5}, at_epoch=4)
SEEN = ev.CommandAnswer(command=EDIT, state="seen", step=7)
APPLIED = ev.CommandAnswer(command=EDIT, state="applied", step=12_345)
REFUSED = ev.CommandAnswer(command=EDIT, state="refused", step=7, reason="the run is stopping")


@pytest.mark.parametrize(
    ("order", "live_attempt", "outcome"),
    [
        (Order(EDIT, None), 2, "sent"),
        (Order(EDIT, SEEN), 2, "received"),
        (Order(AT_EPOCH, None), 2, "sent"),
        (Order(AT_EPOCH, ev.CommandAnswer(command=AT_EPOCH, state="seen", step=7)), 2, "received, waits for epoch 5"),
        (Order(EDIT, SEEN), 3, "not applied: the run ended first"),  # a resume hears no order to the attempt before
        (Order(EDIT, None), None, "not applied: the run ended first"),
        (Order(EDIT, APPLIED), None, "applied at step 12,345"),
        (Order(EDIT, REFUSED), 2, "refused because the run is stopping"),
        (Order(EDIT, ev.CommandAnswer(command=EDIT, state="refused", step=7)), None, "refused"),
    ],
)
def test_an_outcome_is_told_by_what_is_known_of_it(order: Order, live_attempt: int | None, outcome: str) -> None:
    assert order.outcome_with(live_attempt) == outcome
