"""Running a training once more, with all that was done to it, and saying whether it came to the same."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from cockpit.cli import codes
from cockpit.cli.engine import ask_engine
from cockpit.cli.following import start_and_attend
from cockpit.cli.printing import say, show
from cockpit.core.format import count
from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.runs import launch, provenance
from engines.runs.replay import prepare_replay
from engines.runs.store import find_run, find_training


def replay(arguments: Namespace) -> int:
    """The comparison's verdict is the exit code; a run that is a replay already is only compared."""
    from engines.contract.config import load_config

    run = find_training(arguments.run)
    if (original := run.info.replay_of) is not None:
        return _compare(find_run(original), run)
    copy = prepare_replay(run, trusted=arguments.trust)
    for sentence in provenance.changed(provenance.recorded(run), provenance.current(load_config(copy.config))):
        say(sentence)
    if arguments.detach:
        launch.start(copy)
        show(copy.info.id)
        say(f"compare them when it is done: cockpit replay {copy.info.id}")
        return codes.DONE
    code = start_and_attend(copy)
    return _compare(run, copy) if code in (codes.DONE, codes.STOPPED) else code


def _compare(run: RunDirectory, copy: RunDirectory) -> int:
    if copy.newest_attempt() is None:
        raise DataError(f"{copy.info.id} has not started yet.")
    found = ask_engine("engines.compare", [str(run.path), str(copy.path)], doing="comparing steps and weights")
    steps, tensors = found["steps"], found["tensors"]
    if found["first_step"] is None and found["first_epoch"] is None and not found["different"] and len(set(steps)) == 1:
        show(f"{copy.info.id} equals {run.info.id} bit for bit: {count(steps[0])} steps, {tensors} tensors")
        return codes.DONE
    for sentence in (*_differences(found, run.info.id, copy.info.id), *_causes(run, copy)):
        show(sentence)
    return codes.FAILED


def _differences(found: dict[str, Any], name: str, copy: str) -> list[str]:
    sentences = []
    if found["first_step"] is not None:
        sentences.append(f"first differs at step {count(found['first_step'])}, in {', '.join(found['columns'])}")
    if found["first_epoch"] is not None:
        sentences.append(f"first differs at epoch {count(found['first_epoch'])}, in {', '.join(found['values'])}")
    if found["different"]:
        sentences.append(
            f"{len(found['different'])} of {found['tensors']} tensors differ, {found['different'][0]} first"
        )
    ours, theirs = found["steps"]
    if ours != theirs:
        sentences.append(f"{name} has its weights of step {count(ours)}, {copy} of step {count(theirs)}")
    return sentences


def _causes(run: RunDirectory, copy: RunDirectory) -> list[str]:
    """What is known to have changed, or may have."""
    made_with, (*_, now) = provenance.recorded(run), provenance.recorded(copy)
    causes = provenance.changed(made_with, now, doubts=True)
    if causes:
        return causes
    gpu = ", and a GPU may add numbers in another order each time" * (now.facts.get("device", "cpu") != "cpu")
    return [f"nothing recorded has changed since then{gpu}"]
