"""Starting trainings, and staying with them until they end."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from cockpit.cli import codes
from cockpit.cli.following import FirstInterrupt, attend, start_and_attend
from cockpit.cli.printing import say, show
from engines.basics.errors import UserError
from engines.contract import on_finish
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.resumption import Resumption
from engines.runs.store import find_training


def train(arguments: Namespace) -> int:
    if arguments.sweep:
        return _sweep(arguments)
    run = launch.prepare_training(
        Path(arguments.config),
        _overrides(arguments),
        label=arguments.name,
        run_dir=Path(arguments.run_dir) if arguments.run_dir else None,
    )
    return _start(run, sentences=on_finish.sentences_of(run), detach=arguments.detach)


def resume(arguments: Namespace) -> int:
    run = find_training(arguments.run)
    changes, sentences = launch.prepare_resume(run, _overrides(arguments), trusted=arguments.trust)
    return _start(run, changes, sentences, detach=arguments.detach)


def fork(arguments: Namespace) -> int:
    from engines.runs.fork import prepare_fork
    from engines.runs.stages import best_of_stage

    parent = find_training(arguments.run)
    wanted = best_of_stage(parent, arguments.stage)[1].name if arguments.stage else arguments.epoch
    run, sentences = prepare_fork(
        parent, _overrides(arguments), checkpoint=wanted, label=arguments.name, trusted=arguments.trust
    )
    return _start(run, sentences=sentences, detach=arguments.detach)


def demo(arguments: Namespace) -> int:
    from cockpit.core.launch.demo import Demo

    demo = Demo(arguments.project, arguments.overrides)
    if not arguments.headless:
        from cockpit.cli.screen import open_app

        return open_app(demo, ascii_only=arguments.ascii)
    with FirstInterrupt() as interrupt:
        if (data := demo.data_run()) is not None:
            say(f"making demo data in {demo.data_path}")
            code = attend(data, data.attempt_numbers()[-1], interrupt)
            if code != codes.DONE:
                return code
        run = demo.start()
        for sentence in on_finish.sentences_of(run):
            say(sentence)
        return attend(run, run.attempt_numbers()[-1], interrupt)


def _overrides(arguments: Namespace) -> list[str]:
    return [*arguments.overrides, *["launch.queue=true"] * arguments.queue]


def _sweep(arguments: Namespace) -> int:
    """Starts every run of the sweep, to be run one after another; on a terminal shows them side by side."""
    from cockpit.cli.screen import has_terminal, open_app
    from cockpit.core.launch.sweep import prepare_sweep

    if arguments.run_dir:
        raise UserError("--run-dir is one directory, and each run of a sweep needs its own; omit it.")
    runs = prepare_sweep(Path(arguments.config), arguments.overrides, arguments.sweep, name=arguments.name)
    for sentence in on_finish.sentences_of(runs[0]):
        say(sentence)
    for run in runs:
        launch.start(run)
        show(f"{run.info.id}  {run.info.label}")
    if has_terminal() and sys.stdout.isatty() and not arguments.detach:
        return open_app(compare=runs)
    if len(runs) > 1:
        say(f"`cockpit compare {' '.join(run.info.id for run in runs)} --open` shows them side by side")
    return codes.DONE


def _start(run: RunDirectory, resume: Resumption | None = None, sentences: Sequence[str] = (), *, detach: bool) -> int:
    """`sentences` are said once it is sure that nobody else has resumed the run."""
    if not detach:
        return start_and_attend(run, resume, sentences)
    launch.start(run, resume)
    for sentence in sentences:
        say(sentence)
    show(run.info.id)
    return codes.DONE
