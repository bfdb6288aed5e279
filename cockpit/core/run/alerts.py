"""What a person can do about an alert: the keys by the ids of their bindings, and the commands that do the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cockpit.core.text import plain
from cockpit.core.typed import program
from engines.contract import alerts
from engines.contract.events import Alert
from engines.contract.rundir import RunInfo


@dataclass(frozen=True)
class Remedy:
    """`binding` is an id as `cockpit keys` lists it; `command` is typed after `cockpit`, {run} being the run."""

    binding: str
    words: str
    command: str = ""
    of_engine: bool = False
    """Only an engine hears the command; a program that reports itself can but be stopped."""


_STOP = Remedy("run.stop", "stop it", "stop {run}")
_LOWER = Remedy("run.rate", "lower the learning rate", "lr {run} 0.5x", of_engine=True)
_EARLY = Remedy(
    "run.rate", "stop it early (the best is kept) or lower the learning rate", "early-stop {run}", of_engine=True
)
_ROOM = Remedy("go.runs", "delete old runs", "delete OLD --yes")
REMEDIES: dict[str, tuple[Remedy, ...]] = {
    alerts.NONFINITE: (_LOWER, _STOP),
    alerts.GRADIENT: (_LOWER, _STOP),
    alerts.PLATEAU: (_EARLY,),
    alerts.OVERFIT: (_EARLY,),
    alerts.EXPLOIT: (_EARLY,),
    alerts.DATA_WAIT: (Remedy("show.system", "see the machine's load"),),
    alerts.STALL: (Remedy("show.log", "see its log"), Remedy("run.stop", "stop it (twice: force)", "stop {run}")),
    alerts.DISK: (_ROOM,),
    alerts.CHECKPOINT_FAILED: (_ROOM,),
    alerts.FULL_DISK: (
        _ROOM,
        Remedy("run.continue", "try again now", "continue {run}", of_engine=True),
        Remedy("run.stop", "stop it (twice: without saving)", "kill {run}", of_engine=True),
    ),
    alerts.BUDGET: (Remedy("run.rate", "train fewer epochs", "epochs {run} N", of_engine=True), _STOP),
}
"""By the alert's code, the likeliest first."""


def sentence(alert: Alert, key: Callable[[str], str]) -> str:
    """The alert and what to press now: `… · l lower the learning rate · s stop it`.

    `key` gives the key that a binding has now, empty where it has none or cannot be used.
    """
    pressed = [(key(remedy.binding), remedy.words) for remedy in _remedies(alert)]
    return " · ".join([plain(alert.text), *(f"{name} {words}" for name, words in pressed if name)])


def typed(alert: Alert, run: RunInfo) -> str:
    """The alert and what to type: `… (cockpit early-stop RUN)`."""
    heard = dict.fromkeys(_STOP if remedy.of_engine and run.foreign else remedy for remedy in _remedies(alert))
    commands = " or ".join(f"{program()} {remedy.command.format(run=run.id)}" for remedy in heard if remedy.command)
    return f"{alert.text} ({commands})" if commands else alert.text


def _remedies(alert: Alert) -> tuple[Remedy, ...]:
    return () if alert.over else REMEDIES.get(alert.code, ())
