"""Which faults there are: what happens, to whom, and at which call of which training."""

from __future__ import annotations

import errno
import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tests.faults import scenes
from tests.faults.harm import Patient
from tests.faults.injected import Injection, Point
from tests.faults.trainings import TRAININGS

Item = TypeVar("Item")
DAY = 86_400.0
VICTIMS = ("self", "both")
EVENTS, STEPS = "events.jsonl", "metrics/steps/00001.f64"
SAVED = ("write", EVENTS, b'"type":"checkpoint"')
SIGNALS = (
    ("SIGTERM to the supervisor", "parent", signal.SIGTERM, ("stopped",)),
    ("SIGTERM to the engine", "self", signal.SIGTERM, ("stopped",)),
    ("SIGINT to the supervisor", "parent", signal.SIGINT, ("stopped",)),
    ("SIGHUP to the supervisor", "parent", signal.SIGHUP, ()),
    ("SIGHUP to the engine", "self", signal.SIGHUP, ("failed",)),
    ("SIGQUIT to the supervisor", "parent", signal.SIGQUIT, ("stopped",)),
)
"""What it is called, whom the engine sends it to, which, and the states that it may lead to."""


@dataclass(frozen=True)
class Fault:
    """One fault: `carry_out` hurts the run and brings it to its end."""

    kind: str
    """The row of the table it counts in."""
    project: str
    at: str
    carry_out: Callable[[Patient], None]
    reports: bool = False
    """Whether the run goes on to its report and export: where the fault comes in them."""
    place: Callable[[scenes.Job, Path], dict[str, Any]] = scenes.here
    """Where it is carried out: in this process, or in one with a disk or a user of its own."""

    @property
    def name(self) -> str:
        return f"{self.kind} · {self.project} · {self.at}"


@dataclass(frozen=True)
class Calls:
    """The calls of a training that nothing happened to."""

    engine: Sequence[Point]
    supervisor: Sequence[Point]

    @property
    def trained(self) -> int:
        """The first call after the last save: what comes then is the report and the export."""
        return 2 + max(point.number for point in self.engine if point.path.startswith("checkpoints"))

    @property
    def training(self) -> list[Point]:
        """The calls of the engine before that."""
        return [point for point in self.engine if point.number < self.trained]


@dataclass(frozen=True)
class Hurt:
    """Start, be hurt in the first attempt (and in later ones, where an injection says so), resume, compare."""

    injections: tuple[Injection, ...]
    expected: tuple[str, ...]
    """States that a hurt attempt may leave, beside the end of one that was not."""
    words: str = ""
    """What the detail of a failure says."""
    held: float = 0.0

    def __call__(self, patient: Patient) -> None:
        patient.held = self.held
        patient.prepare()
        for number in range(1, max(one.attempt for one in self.injections) + 1):
            if number > 1 and patient.is_done:
                break
            mine = [one for one in self.injections if one.attempt == number]
            patient.attempt(mine, (*self.expected, *patient.ended), self.words, resume=number > 1)
        patient.to_the_end()


def hurt(*injections: Injection, expected: tuple[str, ...], words: str = "", held: float = 0.0) -> Hurt:
    """What carries these out."""
    return Hurt(injections, expected, words, held)


def spread(points: Sequence[Item], count: int) -> list[Item]:
    """`count` of them, evenly."""
    if len(points) <= count:
        return list(points)
    return [points[round((k + 0.5) * len(points) / count - 0.5)] for k in range(count)]


def inside_writes(points: Sequence[Point]) -> list[Point]:
    """Every call but the many writes of one file: of those the first, the middle one and the last."""
    chosen: list[Point] = []
    block: list[Point] = []
    for point in [*points, Point(-1, "", "")]:
        if block and (point.name, point.path) != ("write", block[0].path):
            chosen += sorted({block[0], block[len(block) // 2], block[-1]}, key=lambda one: one.number)
            block = []
        if point.name == "write":
            block.append(point)
        elif point.number >= 0:
            chosen.append(point)
    return chosen


def _kills(project: str, calls: Calls) -> Iterator[Fault]:
    """The engine killed before calls, and in the middle of writes."""
    many = project == "controls"
    engine = inside_writes(calls.engine)
    for point in spread(engine, 110 if many else 20):
        kill = hurt(Injection("kill", call=point.number), expected=("failed",), words="SIGKILL")
        yield Fault("engine killed before a write, sync or rename", project, str(point), kill)
    for point in spread([point for point in engine if point.name == "write"], 50 if many else 8):
        torn = hurt(Injection("torn", call=point.number), expected=("failed",), words="SIGKILL")
        yield Fault("engine killed inside a write", project, str(point), torn)
    for point in calls.engine:
        if (point.name, point.path) != ("fsync", "events.jsonl"):  # only answers wait for the disk
            continue
        for call, what in enumerate(("before it is written", "before it is on disk", "after it"), point.number - 1):
            kill = hurt(Injection("kill", call=call), expected=("failed",))
            yield Fault("engine killed at the answer to a command", project, f"{what}, {point}", kill)
    for victims, kind, state in (
        ("parent", "supervisor killed", "lost"),
        ("both", "supervisor and engine killed", "lost"),
        ("group", "engine's process group killed", "failed"),
    ):
        for point in spread(engine, 12 if many else 4):
            kill = hurt(Injection("kill", call=point.number, victims=victims), expected=(state,))
            yield Fault(kind, project, str(point), kill)
    for seed in range(12 if many else 3):
        chance = random.Random(seed)
        kills = [
            Injection("kill", call=chance.choice(engine).number, attempt=number, victims=chance.choice(VICTIMS))
            for number in (1, 2, 3)
        ]
        at = ", ".join(f"{one.victims} at call {one.call}" for one in kills)
        yield Fault("killed in three attempts in a row", project, at, hurt(*kills, expected=("failed", "lost")))


def _stages(project: str, calls: Calls) -> Iterator[Fault]:
    """In each of the agent's three stages; its epochs are two a stage."""
    for stage in range(3):
        for point in spread([point for point in calls.training if point.epochs // 2 == stage], 4):
            for victims in VICTIMS:
                kill = hurt(Injection("kill", call=point.number, victims=victims), expected=("failed", "lost"))
                yield Fault(f"killed in stage {stage + 1} of 3", project, f"{victims}, {point}", kill)


def _supervisor(calls: Calls) -> Iterator[Fault]:
    for point in calls.supervisor:
        kill = Injection("kill", who="supervisor", call=point.number)
        name = "supervisor killed before a write, sync or rename"
        yield Fault(name, "controls", str(point), hurt(kill, expected=("lost",)))
        if point.name == "write":
            torn = hurt(replace(kill, what="torn"), expected=("lost",))
            yield Fault("supervisor killed inside a write", "controls", str(point), torn)
        for error in (errno.ENOSPC, errno.EIO):
            name = f"a write of the supervisor refused: {os.strerror(error)}"
            refuse = hurt(replace(kill, what="refuse", error=error), expected=("failed", "lost"))
            yield Fault(name, "controls", str(point), refuse)


def _saves(project: str) -> Iterator[Fault]:
    """The engine killed at each point of a save in the background."""
    last, best = "checkpoints/.last.pt.tmp", "checkpoints/.best.pt.tmp"
    for moment, at, calls in (
        ("its snapshot made", ("open", last, b""), (0, 4)),
        ("a half of it written", ("write", last, b""), (20, 230)),
        ("all of it written", ("fsync", last, b""), (1, 5)),
        ("before it is named last.pt", ("replace", "checkpoints/last.pt", b""), (0, 3)),
        ("last.pt before it is best.pt", ("link", best, b""), (0,)),
        ("before it is named best.pt", ("replace", "checkpoints/best.pt", b""), (0,)),
        ("named, before the events say it", SAVED, (0, 2, 5)),
    ):
        for call in calls:
            what = "torn" if at[0] == "write" and not at[2] else "kill"
            kill = hurt(Injection(what, at=at, call=call), expected=("failed",), words="SIGKILL")
            yield Fault("engine killed in a save in the background", project, f"{moment}, {call + 1}", kill)


def _ranks(project: str) -> Iterator[Fault]:
    """Each of two ranks killed: the first at a call of its own, the second when the first comes to that call."""
    for moment, at, call in (
        ("inside a step", ("write", STEPS, b""), 1),
        ("inside a save", ("replace", "checkpoints/last.pt", b""), 1),
        ("saved, before the events say it", SAVED, 3),
        ("in an evaluation", ("write", EVENTS, b'"phase":"evaluating"'), 0),
        ("at the answer to a command", ("fsync", EVENTS, b""), 1),
    ):
        for rank, victims in enumerate(("self", "rank 1")):
            kill = Injection("kill", at=at, call=call, victims=victims)
            name = "one of two ranks killed, under torchrun"
            yield Fault(name, project, f"rank {rank}, {moment}", hurt(kill, expected=("failed",), words="SIGKILL"))


def _signals(project: str, calls: Calls) -> Iterator[Fault]:
    many = project == "controls"
    for kind, victims, number, expected in SIGNALS:
        for point in spread(calls.engine, 6 if many else 2):
            one = Injection("signal", call=point.number, victims=victims, signal=number)
            yield Fault(kind, project, str(point), hurt(one, expected=expected))
    for who, victims, held in (("engine", "self", 1.0), ("supervisor", "parent", 3.0)):
        for point in spread(calls.training, 3 if many else 1):
            one = Injection("print", call=point.number, victims=victims, signal=signal.SIGSTOP)
            stopped = hurt(one, expected=(), held=held)
            yield Fault(f"10 MB printed and the {who} stopped for a while", project, str(point), stopped)
    if many:
        middle = calls.training[len(calls.training) // 2]
        one = Injection("print", call=middle.number, signal=signal.SIGSTOP)
        name = "10 MB printed and the engine stopped for a minute"
        yield Fault(name, project, str(middle), hurt(one, expected=(), held=60.0))


def _refusals(project: str, calls: Calls) -> Iterator[Fault]:
    engine = inside_writes(calls.engine)
    count = 10 if project == "controls" else 3
    for times, name in ((1, "disk full for 1 write"), (2, "disk full for 2 writes")):
        for point in spread(engine, count):
            full = hurt(Injection("refuse", call=point.number, times=times), expected=("failed",))
            yield Fault(name, project, str(point), full)
    for error in (errno.EROFS, errno.EIO, errno.EACCES):
        words = os.strerror(error)
        for point in spread(engine, count // 2):
            one = Injection("refuse", call=point.number, error=error, times=-1)
            refuse = hurt(one, expected=("failed",), words=words)
            yield Fault(f"every write refused from one on: {words}", project, str(point), refuse)


def _clocks(project: str, calls: Calls) -> Iterator[Fault]:
    for who, points in (("engine", calls.training), ("supervisor", calls.supervisor)):
        for seconds, way in ((DAY, "forward"), (-DAY, "back")):
            for point in spread(points, 4 if project == "controls" else 1):
                jump = hurt(Injection("clock", who=who, call=point.number, seconds=seconds), expected=())
                yield Fault(f"clock set {way} by a day", project, f"{who}, {point}", jump)


def _scenes(project: str, calls: Calls) -> Iterator[Fault]:
    """What takes more than an injection."""
    many = project == "controls"
    middle = spread(inside_writes(calls.training), 6 if many else 2)
    disk = scenes.own_disk
    for point in middle:
        for kind, carry, place in (
            ("a small disk full, freed while the run waits", scenes.full(point), disk),
            ("a disk full, left by SIGTERM, freed, resumed", scenes.full_and_left(point), disk),
            ("disk remounted read-only between attempts", scenes.read_only(point), disk),
            ("data gone after a kill", scenes.vanished(point), scenes.here),
            ("machine rebooted: other boot id, process ids taken by others", scenes.rebooted(point), scenes.here),
        ):
            yield Fault(kind, project, str(point), carry, place=place)
        for target in ("checkpoints", "attempts", "."):
            kind, carry = "permissions of a folder taken away, as another user", scenes.forbidden(point, target)
            yield Fault(kind, project, f"{target}, {point}", carry, place=scenes.own_user)
    for number in range(4 if many else 1):
        yield Fault("two engines for one directory", project, f"start {number + 1}", scenes.two_starts)
        carry = scenes.two_resumes(middle[number])
        yield Fault("two resumes at once", project, f"resume {number + 1}", carry)
    for victim in ("engine", "supervisor", "both", "group"):
        for moment in ("loading", "training", "saving") if many else ("training",):
            carry, kind = scenes.from_outside(victim, moment), "killed from outside, started as by the command"
            yield Fault(kind, project, f"{victim}, {moment}", carry)


def all_faults(calls: Mapping[str, Calls]) -> list[Fault]:
    """Every fault of the projects whose calls are given, in a fixed order."""
    found: list[Fault] = []
    for project in (name for name in TRAININGS if name in calls):
        mine = calls[project]
        if TRAININGS[project].ranks > 1:
            found += _ranks(project)
            continue
        found += [*_kills(project, mine), *_signals(project, mine), *_refusals(project, mine), *_clocks(project, mine)]
        found += _scenes(project, mine)
        if project == "agent":
            found += _stages(project, mine)
        if project == "controls":
            found += [*_supervisor(mine), *_saves(project)]
    return list({fault.name: replace(fault, reports=_reports(fault, calls[fault.project])) for fault in found}.values())


def _reports(fault: Fault, calls: Calls) -> bool:
    """Whether something happens to it only after its training."""
    hits = fault.carry_out.injections if isinstance(fault.carry_out, Hurt) else ()
    return any(one.who == "engine" and one.attempt == 1 and not one.at and one.call >= calls.trained for one in hits)
