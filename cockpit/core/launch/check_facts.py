"""What `engines.check` found out, in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cockpit.core.format import count, percent, rate
from cockpit.core.text import plain
from cockpit.core.times import date_and_clock
from engines.basics.amounts import duration, money, size

MEMORY = ("model", "gradients", "optimizer", "activations", "data", "evaluation")
"""Its parts, in the order they are listed; the last in the place of gradients and activations."""


def facts_of(found: dict[str, Any]) -> dict[str, str]:
    """The answer as names and words, in the order it was found out; `config` and `faults` apart."""
    facts: dict[str, str] = {name: found[name] for name in ("project", "device") if name in found}
    facts |= {f"data {key}": _words(value) for key, value in found.get("data", {}).items()}
    if parameters := found.get("parameters"):
        facts["parameters"] = _parameters(parameters["total"], parameters["trainable"])
    if steps := found.get("steps"):
        facts["steps"] = f"{count(steps['per_epoch'])} per epoch, {count(steps['total'])} in {steps['epochs']} epochs"
    facts |= _stages(found.get("stages", []))
    if memory := found.get("memory"):
        parts = ", ".join(f"{name} {size(memory[name])}" for name in MEMORY)
        facts["memory"] = f"about {size(memory['total'])} of {size(memory['available'])} free ({parts})"
    if ranks := found.get("ranks"):
        each = " or ".join(f"{size(ranks[name])} with {name}" for name in ("ddp", "fsdp2"))
        facts["memory per rank"] = f"about {each}, on {ranks['count']} ranks"
    if (parts := found.get("micro_batches", 1)) > 1:
        facts["micro-batches"] = f"{parts} per batch, so that it fits"
    if precisions := found.get("precisions"):
        facts["precision"] = _precisions(precisions["seconds"], precisions["chosen"])
    if disk := found.get("disk"):
        facts["disk"] = (
            f"about {size(disk['needed'])} of {size(disk['free'])} free at {disk['path']} "
            f"({disk['checkpoints']} checkpoints of {size(disk['checkpoint'])})"
        )
    if tried := found.get("try"):
        facts |= _tried(tried)
    elif (seconds := found.get("evaluation_seconds")) is not None:
        facts["evaluation"] = _seconds(seconds)
    if warnings := found.get("warnings"):
        facts["warning"] = " ".join(warnings)
    if sentences := found.get("on_finish"):
        facts["afterwards"] = "; ".join(sentences)
    if given := found.get("given"):
        facts["given"] = _given(given)
        facts["measured"] = ", ".join(found["measured"]) or "nothing"
    if taken := found.get("time"):
        facts |= _time_and_cost(taken, found.get("cost"))
    return facts


def _parameters(total: int, trainable: int) -> str:
    return f"{count(total)}, " + ("all trainable" if trainable == total else f"{count(trainable)} trainable")


def _precisions(seconds: Mapping[str, float], chosen: str) -> str:
    """`training.amp tf32 is quickest: tf32 0.007 s per step, bf16 0.009 s (chosen)`."""
    order = sorted(seconds, key=lambda name: seconds[name])
    each = [f"{name} {_seconds(seconds[name])}" + " (chosen)" * (name == chosen) for name in order]
    return f"training.amp {order[0]} is quickest: {', '.join(each)} per step"


def _stages(stages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What each stage takes; of a run with one alone, its steps where they were measured."""
    facts = {}
    for stage in stages:
        steps = f"{count(stage['epochs'])} epochs of {count(stage['steps_per_epoch'])} steps"
        if "begin" in stage:
            begin, end = (_seconds(stage[point]["median"]) for point in ("begin", "end"))
            words = f"{begin} per step" if begin == end else f"{begin} per step at the start, {end} at the end"
            facts[f"stage {stage['name']}"] = f"{steps}, {words}, about {size(stage['memory'])} of memory"
        else:
            facts[f"stage {stage['name']}"] = steps
    if len(facts) == 1:
        return {"step": words} if stages and "begin" in stages[0] else {}
    return facts


def _tried(tried: Mapping[str, Any]) -> dict[str, str]:
    """What a try measured."""
    facts = {"tried": f"{count(tried['steps'])} steps"}
    if per_step := tried["seconds_per_step"]:
        speed = rate(1 / per_step["median"], "steps")
        if per_step["low"] is not None:
            slow, fast = (rate(1 / per_step[name], "steps") for name in ("high", "low"))
            speed += f" ({slow} to {fast})"
        facts["speed"] = f"{speed}, {rate(tried['samples_per_second'], 'samples')}"
    if tried["data_wait"] is not None:
        facts["data wait"] = f"{percent(tried['data_wait'])} of a step"
    facts["peak memory"] = f"{size(tried['peak_memory'])} of the {tried['peak_memory_of']}"
    if tried["evaluation_seconds"] is not None:
        facts["evaluation"] = _seconds(tried["evaluation_seconds"])
    if tried["checkpoint"] is not None:
        facts["save"] = f"{size(tried['checkpoint'])} in {_seconds(tried['save_seconds'])}"
    if "resumed_equal" in tried:
        equal = "equal to" if tried["resumed_equal"] else "different from"
        facts["resume"] = f"{equal} what was saved, in {_seconds(tried['resume_seconds'])}"
    return facts


def _given(given: Mapping[str, Any]) -> str:
    """What the user gave in place of measured numbers."""
    known = {"step_seconds": (_seconds, "per step"), "usd_per_hour": (money, "per hour")}
    parts = []
    for name, number in given.items():
        words, what = known.get(name, (count, plain(name)))
        parts.append(f"{words(number)} {what}")
    return ", ".join(parts)


def _time_and_cost(taken: Mapping[str, Any], cost: Mapping[str, Any] | None) -> dict[str, str]:
    """When the run would be done and what it would have cost, if no patience ends it sooner."""
    how = {
        "try": "for all epochs",
        "steps": "a rough estimate from a few steps (--try measures)",
        "given": "from the given seconds per step",
    }[taken["measured"]]
    if taken["low"] is None and taken["measured"] != "given":
        how += f"; {taken['steps']} steps are too few for a range"
    facts = {"time": f"{_range(taken, duration)}, {how}"}
    if taken["measured"] == "try":
        facts["done by"] = date_and_clock(time.time() + taken["likely"])
    if cost:
        facts["cost"] = _range(cost, money)
        if cost["budget"] is not None:
            spent = ", which is too little" if cost["likely"] > cost["budget"] else ""
            facts["cost"] += f" of a budget of {money(cost['budget'])}{spent}"
    return facts


def _range(numbers: Mapping[str, Any], words: Callable[[float], str]) -> str:
    """`1 h (40 m to 2 h)`, or `1 h` where the range is not known."""
    likely = words(numbers["likely"])
    if numbers["low"] is None:
        return likely
    return f"{likely} ({words(numbers['low'])} to {words(numbers['high'])})"


def _seconds(value: float) -> str:
    """`0.22 s`; from ten seconds on as any duration."""
    return f"{value:.2g} s" if value < 10 else duration(value)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
