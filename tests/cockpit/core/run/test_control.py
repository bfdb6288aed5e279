from pathlib import Path

import pytest

from cockpit.core.run.control import Target
from cockpit.core.states import GLYPHS, Shown
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory

ALLOWED: dict[Shown, set[str]] = {
    "queued": {"stop"},
    "starting": {"pause", "stop"},
    "running": {"pause", "stop", "checkpoint"},
    "paused": {"continue", "stop", "checkpoint"},
    "stopping": {"stop"},
    "finished": {"resume"},
    "early-stopped": {"resume"},
    "stopped": {"resume"},
    "out-of-budget": {"resume"},
    "failed": {"resume"},
    "lost": {"resume"},
    "broken": set(),
    "stale": set(),
    "reading": set(),
}


def target(state: Shown, *, attempt: int = 2, only_stops: bool = False) -> Target:
    return Target(RunDirectory(Path("/runs/x")), "x", attempt, state, only_stops)


@pytest.mark.parametrize("state", list(GLYPHS))
def test_what_can_be_done_in_each_state(state: Shown) -> None:
    def can(target: Target) -> set[str]:
        return {action for action in ("pause", "continue", "stop", "checkpoint", "resume") if target.can(action)}

    assert can(target(state)) == ALLOWED[state]
    assert can(target(state, only_stops=True)) == ALLOWED[state] & {"stop"} - {"resume"}
    assert can(target(state, attempt=0)) <= {"checkpoint", "continue", "resume"}
    assert target(state).can("fork")  # of whatever it has kept, also while it trains
    assert not target(state, attempt=0).can("fork")
    assert not target(state, only_stops=True).can("fork")


def test_why_a_run_cannot_be_resumed_is_a_sentence() -> None:
    assert target("finished").why_not_resume() == ""
    assert "only a run that has ended" in target("running").why_not_resume()
    assert "is still loading" in target("reading").why_not_resume()
    sentence = "x is a run of an external program"
    foreign = Target(RunDirectory(Path("/runs/x")), "x", 1, "finished", True, sentence)
    assert not foreign.can("resume")
    assert foreign.why_not_resume() == sentence


def test_orders_are_meant_for_the_newest_attempt() -> None:
    running = target("running", attempt=3)
    orders = [running.order(action) for action in ("pause", "continue", "stop", "checkpoint")]
    assert [type(order) for order in orders] == [cmd.Pause, cmd.Continue, cmd.Stop, cmd.SaveCheckpoint]
    assert {order.attempt for order in orders} == {3}
