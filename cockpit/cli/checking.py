"""Checking a config without training."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from cockpit.cli.arguments import COUNT
from cockpit.cli.engine import ask_engine
from cockpit.cli.printing import say, show_json, show_pairs
from cockpit.cli.tasks import Target, carry_out
from cockpit.core.launch.check_facts import facts_of
from engines.basics.errors import UserError


def check(arguments: Namespace) -> int:
    """Prints what was found out before the first fault, and every fault."""
    if arguments.profile:
        return _profile(arguments)
    options = [part for override in arguments.overrides for part in ("--set", override)]
    if (seconds := arguments.try_seconds) is not None and not seconds > 0:
        raise UserError(f"--try-seconds {seconds:g}: expected a number above 0.")
    if arguments.try_ or seconds is not None:
        if arguments.step_seconds is not None:
            raise UserError("--try measures the step time and --step-seconds sets it; give one of them.")
        options += ["--try", *[f"--try-seconds={seconds}"] * (seconds is not None)]
    for name in ("step_seconds", "usd_per_hour", "samples"):
        if (number := getattr(arguments, name)) is not None:
            options.append(f"--{name.replace('_', '-')}={number}")
    for name, number in vars(arguments).items():
        if name.startswith(COUNT) and number is not None:
            options.append(f"--count={name.removeprefix(COUNT)}={number}")
    found = ask_engine(
        "engines.check", [str(Path(arguments.config)), *options], doing="reading data and building the model"
    )
    if arguments.json:
        show_json(found)
    else:
        show_pairs({"config": found["config"], **facts_of(found)})
        for fault in found["faults"]:
            say(fault)
    code: int = found["exit_code"]
    return code


def _profile(arguments: Namespace) -> int:
    """As a run of its own, whose report it prints. Raises `UserError` for options that say something else."""
    others = ("try_", "try_seconds", "step_seconds", "usd_per_hour", "samples")
    if any(getattr(arguments, name) for name in others):
        raise UserError("--profile can only be combined with --set and --json.")
    target = Target.find(arguments.config)
    return carry_out(target, "profile", {}, arguments.overrides, json=arguments.json)
