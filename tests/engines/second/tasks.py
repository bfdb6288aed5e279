"""What it does beside training: measures its best weights, and lets two users lead it together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Action, Box, Press, Scene, View
from engines.tasks import Table, TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.interactive import InteractiveContext
from engines.tasks.live import play_live
from engines.training.trained import open_run
from tests.engines.second.project import ACTIONS, Agent, Second, Steps


class _Order(msgspec.Struct):
    run: Path
    recording: str = ""
    steps: int = 64


def measure(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """How often each action of the best weights is right, on steps that the run has not seen."""
    agent, seen = _agent(as_struct(arguments, _Order))
    chosen = agent(seen.x)[0].argmax(1)
    rows = []
    for action in range(ACTIONS):
        context.progress(action, ACTIONS, "actions")
        there = seen.action == action
        rows.append((action, int(there.sum()), float((chosen == seen.action)[there].float().mean())))
    context.report({"actions": Table(("action", "steps", "right"), tuple(rows))})


def lead(arguments: Mapping[str, Any], context: InteractiveContext) -> None:
    """Play: what the agent sees drifts by itself, and each user pushes one side of it."""
    play_live(_Led(_agent(as_struct(arguments, _Order))[0]), context)


def _agent(order: _Order) -> tuple[Agent, Steps]:
    trained = open_run(RunDirectory(order.run))
    agent = trained.load_into(Second().build(trained.settings))
    assert isinstance(agent, Agent)
    return agent, Steps(order.steps, 3)


class _State(NamedTuple):
    step: int = 0
    pushes: tuple[float, float] = (0.0, 0.0)
    action: int = 0


class _Led:
    """A `LiveSession`."""

    rate = 30.0
    speeds, speed = (0.5, 1.0), 1.0
    viewers = ("p1", "p2")
    controls = (Action("push", "up", "push", "Push your side"),)
    actions: tuple[Action, ...] = ()

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def begin(self) -> _State:
        return _State()

    def step(self, state: _State, presses: Sequence[Press], viewers: Sequence[str]) -> _State:
        pushed = [sum(press.viewer == viewer for press in presses) for viewer in self.viewers]
        first, second = (push + more for push, more in zip(state.pushes, pushed, strict=True))
        action = int(self._agent(torch.tensor([[first, second, 0.5, 0.0]]))[0].argmax())
        return _State(state.step + 1, (first, second), action)

    def act(self, press: Press, tape: Sequence[_State]) -> None: ...

    def scene(self, state: _State) -> Scene:
        note = f"pushes {state.pushes[0]:g} {state.pushes[1]:g}, action {state.action}"
        return Scene(title="led", note=note, view=View((0, 0), (3, 1), [Box(state.action, 0, 1, 1, "first")]))
