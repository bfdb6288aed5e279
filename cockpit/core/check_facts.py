"""What `engines.check` found out, in words."""

from __future__ import annotations

from typing import Any

from cockpit.core.format import count, size


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
    return facts


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
