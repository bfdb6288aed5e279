"""What `engines.check` found out, in words."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from cockpit.core.format import count, percent, rate
from cockpit.core.times import date_and_clock
from engines.basics.amounts import duration, money, size


def facts_of(found: dict[str, Any]) -> dict[str, str]:
    """The answer as names and words, in the order it was found out; `config` and `faults` apart."""
    facts: dict[str, str] = {name: found[name] for name in ("project", "device") if name in found}
    facts |= {f"data {key}": _words(value) for key, value in found.get("data", {}).items()}
    if parameters := found.get("parameters"):
        facts["parameters"] = f"{count(parameters['total'])}, {count(parameters['trainable'])} trained"
    if steps := found.get("steps"):
        facts["steps"] = f"{count(steps['per_epoch'])} an epoch, {count(steps['total'])} in {steps['epochs']} epochs"
    if memory := found.get("memory"):
        parts = ", ".join(
            f"{name} {size(memory[name])}" for name in ("model", "gradients", "optimizer", "activations", "data")
        )
        facts["memory"] = f"about {size(memory['total'])} of {size(memory['available'])} free ({parts})"
    if disk := found.get("disk"):
        facts["disk"] = (
            f"about {size(disk['needed'])} of {size(disk['free'])} free at {disk['path']} "
            f"({disk['checkpoints']} checkpoints of {size(disk['checkpoint'])})"
        )
    if tried := found.get("try"):
        facts |= _tried(tried)
    if warnings := found.get("warnings"):
        facts["warning"] = " ".join(warnings)
    if command := found.get("on_finish"):
        facts["on finish"] = f"{command}, when nothing else runs here"
    if taken := found.get("time"):
        facts |= _time_and_cost(taken, found.get("cost"))
    return facts


def _tried(tried: Mapping[str, Any]) -> dict[str, str]:
    """What a try measured."""
    facts = {"tried": f"{count(tried['steps'])} steps"}
    if per_step := tried["seconds_per_step"]:
        speed, slow, fast = (rate(1 / per_step[name], "steps") for name in ("mean", "high", "low"))
        facts["speed"] = f"{speed} ({slow} to {fast}), {rate(tried['samples_per_second'], 'samples')}"
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


def _time_and_cost(taken: Mapping[str, Any], cost: Mapping[str, Any] | None) -> dict[str, str]:
    """When the run would be done and what it would have cost, if no patience ends it sooner."""
    tried = taken["measured"] == "try"
    how = "for all epochs" if tried else "a rough estimate from a few steps (--try measures)"
    facts = {"time": f"{duration(taken['likely'])} ({duration(taken['low'])} to {duration(taken['high'])}), {how}"}
    if tried:
        facts["done by"] = date_and_clock(time.time() + taken["likely"])
    if cost:
        facts["cost"] = f"{money(cost['likely'])} ({money(cost['low'])} to {money(cost['high'])})"
        if cost["budget"] is not None:
            spent = ", which will be spent before the end" if cost["likely"] > cost["budget"] else ""
            facts["cost"] += f" of a budget of {money(cost['budget'])}{spent}"
    return facts


def _seconds(value: float) -> str:
    """`0.22 s`; from ten seconds on as any duration."""
    return f"{value:.2g} s" if value < 10 else duration(value)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
