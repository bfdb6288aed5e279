"""What can be typed after `cockpit`. Imports argparse alone: the parser names each command's function as a string."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from cockpit import __version__
from cockpit.cli import codes
from cockpit.cli.options import (
    ASCII_HELP,
    HOST,
    Commands,
    Parser,
    add_command,
    add_run_command,
    ascii_option,
    json_option,
    set_option,
)
from cockpit.cli.run_commands import add_run_commands
from cockpit.core.typed import program

COUNT = "count "
"""Before a unit's name, where `cockpit check` finds how many were given."""
WHOSE_HELP = "the project the data belongs to; default: detected from the data"
ASKED = "_ARGCOMPLETE"
"""Set by a shell that asks what could be typed here."""
TAKE_HOSTS = ("screen:cockpit", "showing:ls", "log:log")
EPILOG = """\
RUN is an id, its last word, a label, a unique part of these, a path, or `last` (the newest training).
Runs live in $COCKPIT_RUNS, else ./runs.
exit codes: 0 done, 1 failed, 2 wrong use, 3 stopped on request, 130 interrupted
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments, with `command` as `module:function` in this package. Exits with 2 for wrong use."""
    parser = Parser(
        prog=program(),
        description="Start, watch and steer training runs. Without a command: open the cockpit.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cockpit {__version__}")
    parser.add_argument("--ascii", action="store_true", help=ASCII_HELP)
    what = "list the runs of another machine too, over ssh, from now on; can be repeated"
    parser.add_argument("--host", **HOST, default=[], dest="hosts", help=what)
    parser.set_defaults(command="screen:cockpit")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", parser_class=Parser)
    names = _add_all(commands)
    if ASKED in os.environ:
        from cockpit.cli.completion import complete

        complete(parser)
    _check_name(argv, names)
    if argv[:1] == ["check"]:
        _add_units(commands.choices["check"])
    arguments = parser.parse_args(argv)
    arguments.hosts = [*arguments.hosts, *getattr(arguments, "hosts_of_command", ())]
    if arguments.hosts and arguments.command not in TAKE_HOSTS:
        parser.error("--host goes with the screen, `ls` and `log`; on the other machine every command works")
    return arguments


def _check_name(argv: Sequence[str], known: Sequence[str]) -> None:
    """Answer a mistyped command with the nearest one; argparse would list them all."""
    if argv and not argv[0].startswith("-") and argv[0] not in known:
        from engines.basics.errors import nearest

        print(f"cockpit: {argv[0]!r} is not a command{nearest(argv[0], known)}; see `cockpit --help`.", file=sys.stderr)
        sys.exit(codes.WRONG_USE)


def _add_all(commands: Commands[Parser]) -> list[str]:
    add_run_commands(commands)
    _add_data(commands)
    _add_tasks(commands)
    _add_logs(commands)
    _add_playing(commands)
    _add_serving(commands)
    _add_machine(commands)
    return list(commands.choices)


def _add_units(check: Parser) -> None:
    """Options for the units in which installed projects count their data, as `--games N`; kept as `COUNT` + unit."""
    from engines.contract.spec import Spec, installed

    for spec in installed().values():
        for unit in spec.counts if isinstance(spec, Spec) else ():
            if f"--{unit}" not in check._option_string_actions:
                what = f"{unit} of training data, for projects such as {spec.name}, instead of --samples"
                check.add_argument(f"--{unit}", type=int, metavar="N", dest=COUNT + unit, help=what)


def _add_data(commands: Commands[Parser]) -> None:
    data = commands.add_parser("data", help="make, parse and describe data", description="Make, parse, describe data.")
    verbs = data.add_subparsers(metavar="VERB", title="verbs", parser_class=Parser, required=True)
    make = add_command(verbs, "make", "data:make", "make demo data")
    make.add_argument("project", metavar="PROJECT", help="an installed project")
    make.add_argument("out", metavar="OUT", help="folder to make")
    make.add_argument("--sessions", type=int, metavar="N", help="recordings to make")
    make.add_argument("--minutes", type=float, metavar="M", help="length of each")
    make.add_argument("--seed", type=int, metavar="N", help="same seed, same data")
    set_option(make, "another argument of the project's task")

    parse_ = add_command(verbs, "parse", "data:parse", "convert recorded logs into a project's data")
    parse_.add_argument("source", metavar="SRC", help="file or folder to read")
    parse_.add_argument("out", metavar="OUT", help="folder to make")
    parse_.add_argument("--project", metavar="PROJECT", help=WHOSE_HELP)
    set_option(parse_, "an argument of the project's task")
    json_option(parse_)

    stats = add_command(verbs, "stats", "data:stats", "describe data: counts, ceiling, baselines")
    stats.add_argument("path", metavar="PATH", help="folder of data")
    stats.add_argument("--project", metavar="PROJECT", help=WHOSE_HELP)
    json_option(stats)


def _add_tasks(commands: Commands[Parser]) -> None:
    task = add_command(commands, "task", "tasks:task", "list a project's tasks, or run one; Ctrl-C stops it")
    task.add_argument("target", metavar="PROJECT|CONFIG|RUN", help="an installed project, a .yaml file, or a run")
    task.add_argument("name", nargs="?", metavar="NAME", help="the task; default: list them")
    set_option(task, "an argument of the task, as in --set out=/data; section.key=value changes the CONFIG")
    json_option(task)
    rollout = add_run_command(
        commands, "rollout", "tasks:rollout", "let a run's model act on its own, where its project supports it"
    )
    set_option(rollout, "an argument of the project's task")
    json_option(rollout)


def _add_playing(commands: Commands[Parser]) -> None:
    play = add_run_command(commands, "play", "play:play", "step through a recording with a run's exported model")
    play.add_argument("--recording", metavar="PATH", help="default: chosen by the project")
    play.add_argument(
        "--as", dest="seat", metavar="SEAT", help="the seat to take in the run's live session, as in --as p2"
    )
    set_option(play, "an argument of the project's task")
    ascii_option(play)


def _add_logs(commands: Commands[Parser]) -> None:
    what = "a log (JSON, CSV, TensorBoard, W&B, MLflow, printed output, …), a run, or a folder of them"
    watch = add_command(
        commands, "watch", "watch:watch", "follow logs of other programs live; quitting only stops watching"
    )
    watch.add_argument("paths", nargs="+", metavar="PATH", help=what)
    watch.add_argument("--text", action="store_true", help="print tables instead of drawing charts")
    watch.add_argument("--once", action="store_true", help="print what there is now and exit")
    ascii_option(watch)
    json_option(watch)

    import_ = add_command(commands, "import", "importing:import_", "make a run from each log of another program")
    import_.add_argument("paths", nargs="+", metavar="LOG", help=what)
    import_.add_argument("--name", default="", metavar="LABEL", help="a label for the runs")


def _add_serving(commands: Commands[Parser]) -> None:
    completion = add_command(
        commands, "completion", "completion:completion", "print or install shell completion of commands, runs and keys"
    )
    completion.add_argument("shell", nargs="?", metavar="SHELL", help="bash, zsh or fish; default: $SHELL")
    completion.add_argument("--install", action="store_true", help="install it, instead of printing it")
    serve = add_command(
        commands, "serve", "serving:serve", "open the cockpit in a browser; prints its address, with a token"
    )
    serve.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on; default: 127.0.0.1"
    )
    serve.add_argument("--port", type=int, default=8000, metavar="N", help="default: 8000; 0: any free port")


def _add_machine(commands: Commands[Parser]) -> None:
    hosts = add_command(
        commands, "hosts", "hosts:hosts", "list the other machines whose runs are shown, and whether they answer"
    )
    hosts.add_argument("--forget", action="append", default=[], metavar="BOX", help="no longer show this one's runs")
    json_option(hosts)
    what = "check GPU, torch, disk, limits and terminal, and print a fix for each problem"
    json_option(add_command(commands, "doctor", "doctor:doctor", what))
