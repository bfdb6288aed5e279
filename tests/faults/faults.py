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
OTHERS = ("melee", "agent", "sim")


@dataclass(frozen=True)
class Fault:
    """One fault: `carry_out` hurts the run and brings it to its end."""

    kind: str
    """The row of the table it counts in."""
    project: str
    at: str
    carry_out: Callable[[Patient], None]
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


def hurt(
    *injections: Injection, expected: tuple[str, ...], words: str = "", held: float = 0.0
) -> Callable[[Patient], None]:
    """Start, be hurt in the first attempt (and in later ones, where an injection says so), resume, compare."""

    def carry_out(patient: Patient) -> None:
        patient.held = held
        patient.prepare()
        for number in range(1, max(one.attempt for one in injections) + 1):
            if number > 1 and patient.state == "finished":
                break
            mine = [one for one in injections if one.attempt == number]
            patient.attempt(mine, (*expected, "finished"), words, resume=number > 1)
        patient.to_the_end()

    return carry_out


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
    engine = inside_writes(calls.engine)
    for point in spread(engine, 110 if project == "controls" else 20):
        kill = Injection("kill", call=point.number)
        yield Fault(
            "engine killed before a write, sync or rename",
            project,
            str(point),
            hurt(kill, expected=("failed",), words="SIGKILL"),
        )
    writes = [point for point in engine if point.name == "write"]
    for point in spread(writes, 50 if project == "controls" else 8):
        torn = Injection("torn", call=point.number)
        yield Fault(
            "engine killed inside a write", project, str(point), hurt(torn, expected=("failed",), words="SIGKILL")
        )
    answers = [point for point in calls.engine if (point.name, point.path) == ("fsync", "events.jsonl")]
    for point in answers:
        for what, call in (
            ("before it is written", point.number - 1),
            ("before it is on disk", point.number),
            ("after it", point.number + 1),
        ):
            kill = Injection("kill", call=call)
            yield Fault(
                "engine killed at the answer to a command",
                project,
                f"{what}, {point}",
                hurt(kill, expected=("failed",)),
            )
    victims = {
        "parent": "supervisor killed",
        "both": "supervisor and engine killed",
        "group": "engine's process group killed",
    }
    for victim, kind in victims.items():
        for point in spread(engine, 12 if project == "controls" else 4):
            kill = Injection("kill", call=point.number, victims=victim)
            expected = ("failed",) if victim == "group" else ("lost",)
            yield Fault(kind, project, str(point), hurt(kill, expected=expected))
    for seed in range(12 if project == "controls" else 3):
        chance = random.Random(seed)
        twice = [
            Injection(
                "kill", call=chance.choice(engine).number, attempt=n, victims=chance.choice(["self", "parent", "both"])
            )
            for n in (1, 2, 3)
        ]
        at = ", ".join(f"{one.victims} at call {one.call}" for one in twice)
        yield Fault("killed in three attempts in a row", project, at, hurt(*twice, expected=("failed", "lost")))


def _stages(project: str, calls: Calls) -> Iterator[Fault]:
    """In each of the agent's three stages; its epochs are two a stage."""
    for stage in range(3):
        inside = [point for point in calls.engine if point.epochs // 2 == stage]
        for point in spread(inside, 4):
            for victim in ("self", "both"):
                kill = Injection("kill", call=point.number, victims=victim)
                yield Fault(
                    f"killed in stage {stage + 1} of 3",
                    project,
                    f"{victim}, {point}",
                    hurt(kill, expected=("failed", "lost")),
                )


def _supervisor(calls: Calls) -> Iterator[Fault]:
    for point in calls.supervisor:
        kill = Injection("kill", who="supervisor", call=point.number)
        yield Fault(
            "supervisor killed before a write, sync or rename", "controls", str(point), hurt(kill, expected=("lost",))
        )
        if point.name == "write":
            torn = replace(kill, what="torn")
            yield Fault("supervisor killed inside a write", "controls", str(point), hurt(torn, expected=("lost",)))
        for error in (errno.ENOSPC, errno.EIO):
            refuse = Injection("refuse", who="supervisor", call=point.number, error=error)
            yield Fault(
                f"a write of the supervisor refused: {os.strerror(error)}",
                "controls",
                str(point),
                hurt(refuse, expected=("failed", "lost")),
            )


def _signals(project: str, calls: Calls) -> Iterator[Fault]:
    points = spread(calls.engine, 6 if project == "controls" else 2)
    asked = (
        ("SIGTERM to the supervisor", "parent", signal.SIGTERM, ("stopped",)),
        ("SIGTERM to the engine", "self", signal.SIGTERM, ("stopped",)),
        ("SIGINT to the supervisor", "parent", signal.SIGINT, ("stopped",)),
        ("SIGHUP to the supervisor", "parent", signal.SIGHUP, ()),
        ("SIGHUP to the engine", "self", signal.SIGHUP, ("failed",)),
        ("SIGQUIT to the supervisor", "parent", signal.SIGQUIT, ("stopped",)),
    )
    for kind, victim, number, expected in asked:
        for point in points:
            one = Injection("signal", call=point.number, victims=victim, signal=number)
            yield Fault(kind, project, str(point), hurt(one, expected=expected))
    for kind, victim, held in (("engine", "self", 1.0), ("supervisor", "parent", 3.0)):
        for point in spread(calls.engine, 3 if project == "controls" else 1):
            one = Injection("print", call=point.number, victims=victim, signal=signal.SIGSTOP)
            yield Fault(
                f"10 MB printed and the {kind} stopped for a while",
                project,
                str(point),
                hurt(one, expected=(), held=held),
            )
    if project == "controls":
        one = Injection("print", call=calls.engine[len(calls.engine) // 2].number, signal=signal.SIGSTOP)
        yield Fault(
            "10 MB printed and the engine stopped for a minute", project, "halfway", hurt(one, expected=(), held=60.0)
        )


def _refusals(project: str, calls: Calls) -> Iterator[Fault]:
    engine = inside_writes(calls.engine)
    count = 10 if project == "controls" else 3
    for times in (1, 2):
        for point in spread(engine, count):
            full = Injection("refuse", call=point.number, times=times)
            words = os.strerror(errno.ENOSPC)
            yield Fault(
                f"disk full for {times} write{'s' * (times > 1)}", project, str(point), hurt(full, expected=("failed",))
            )
    for error in (errno.EROFS, errno.EIO, errno.EACCES):
        for point in spread(engine, count // 2 or 1):
            words = os.strerror(error)
            one = Injection("refuse", call=point.number, error=error, times=-1)
            yield Fault(
                f"every write refused from one on: {words}",
                project,
                str(point),
                hurt(one, expected=("failed",), words=words),
            )


def _clocks(project: str, calls: Calls) -> Iterator[Fault]:
    for who, points in (("engine", calls.engine), ("supervisor", calls.supervisor)):
        for seconds, way in ((DAY, "forward"), (-DAY, "back")):
            for point in spread(points, 4 if project == "controls" else 1):
                jump = Injection("clock", who=who, call=point.number, seconds=seconds)
                yield Fault(f"clock set {way} by a day", project, f"{who}, {point}", hurt(jump, expected=()))


def _scenes(project: str, calls: Calls) -> Iterator[Fault]:
    """What takes more than an injection."""
    middle = spread(inside_writes(calls.engine), 6 if project == "controls" else 2)
    for point in middle:
        yield Fault(
            "a small disk full, freed while the run waits", project, str(point), scenes.full(point), scenes.own_disk
        )
        yield Fault(
            "a disk full, left by SIGTERM, freed, resumed",
            project,
            str(point),
            scenes.full_and_left(point),
            scenes.own_disk,
        )
        yield Fault(
            "disk remounted read-only between attempts", project, str(point), scenes.read_only(point), scenes.own_disk
        )
        yield Fault("data gone after a kill", project, str(point), scenes.vanished(point))
        yield Fault(
            "machine started anew: another boot id, process ids taken by others",
            project,
            str(point),
            scenes.rebooted(point),
        )
        for target in ("checkpoints", "attempts", "."):
            yield Fault(
                "permissions of a folder taken away, as another user",
                project,
                f"{target}, {point}",
                scenes.forbidden(point, target),
                scenes.own_user,
            )
    for number in range(4 if project == "controls" else 1):
        yield Fault("two engines for one directory", project, f"start {number + 1}", scenes.two_starts)
        yield Fault(
            "two resumes at once", project, f"resume {number + 1}", scenes.two_resumes(middle[number % len(middle)])
        )
    for victim in ("engine", "supervisor", "both", "group"):
        for moment in ("loading", "training", "saving"):
            if project == "controls" or moment == "training":
                yield Fault(
                    "killed from outside, started as by the command",
                    project,
                    f"{victim}, {moment}",
                    scenes.from_outside(victim, moment),
                )


def all_faults(calls: Mapping[str, Calls]) -> list[Fault]:
    """Every fault of the projects whose calls are given, in a fixed order."""
    found: list[Fault] = []
    for project in (name for name in TRAININGS if name in calls):
        mine = calls[project]
        found += [*_kills(project, mine), *_signals(project, mine), *_refusals(project, mine), *_clocks(project, mine)]
        found += _scenes(project, mine)
        if project == "agent":
            found += _stages(project, mine)
        if project == "controls":
            found += _supervisor(mine)
    return list({fault.name: fault for fault in found}.values())
