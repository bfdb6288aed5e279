"""What can be typed after `cockpit`. Imports argparse alone: the parser names each command's function as a string."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from cockpit import __version__
from cockpit.cli import codes

COUNT = "count "
"""Before a unit's name, where `cockpit check` finds how many were given."""
ASCII_HELP = "draw with plain characters only"
WHOSE_HELP = "whose data it is; default: found out from the data"
ASKED = "_ARGCOMPLETE"
"""Set by a shell that asks what could be typed here."""
RUN_HELP = "id, its word, a label, a unique part of these, a path, or `last`"
EPILOG = """\
RUN is an id, its last word, a label, a unique part of these, a path, or `last` (the newest training).
Runs live in $COCKPIT_RUNS, else ./runs.
exit codes: 0 done, 1 failed, 2 wrong use, 3 stopped on request, 130 interrupted
"""


class Parser(argparse.ArgumentParser):
    """Takes options and names in any order, and says what is wrong in one line, in the voice of every other error."""

    _sorting = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Options between names too, where argparse would take a list of names as ended: `weights RUN --at epoch a=1`.

        Only of a command without commands below it, since those take all that follows.
        """
        if self._sorting or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._sorting = True  # what follows calls this method for the options, then for the names
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._sorting = False

    def error(self, message: str) -> NoReturn:
        print(f"cockpit: {message}; see `{self.prog} --help`.", file=sys.stderr)
        sys.exit(codes.WRONG_USE)


Commands = argparse._SubParsersAction  # argparse gives its type no public name


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments, with `command` as `module:function` in this package. Exits with 2 for wrong use."""
    parser = Parser(
        prog="cockpit",
        description="Start, watch and steer training runs. Without a command: open the cockpit.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cockpit {__version__}")
    parser.add_argument("--ascii", action="store_true", help=ASCII_HELP)
    parser.set_defaults(command="screen:cockpit")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", parser_class=Parser)
    names = _add_all(commands)
    if ASKED in os.environ:
        from cockpit.cli.completion import complete

        complete(parser)
    _check_name(argv, names)
    if argv[:1] == ["check"]:
        _add_units(commands.choices["check"])
    return parser.parse_args(argv)


def _check_name(argv: Sequence[str], known: Sequence[str]) -> None:
    """Answer a mistyped command with the nearest one; argparse would list them all."""
    if argv and not argv[0].startswith("-") and argv[0] not in known:
        from engines.basics.errors import nearest

        print(f"cockpit: {argv[0]!r} is not a command{nearest(argv[0], known)}; see `cockpit --help`.", file=sys.stderr)
        sys.exit(codes.WRONG_USE)


def _add_all(commands: Commands[Parser]) -> list[str]:
    _add_starting(commands)
    _add_queue(commands)
    _add_steering(commands)
    _add_showing(commands)
    _add_keeping(commands)
    _add_data(commands)
    _add_tasks(commands)
    _add_logs(commands)
    _add_playing(commands)
    _add_serving(commands)
    return list(commands.choices)


def _add(commands: Commands[Parser], name: str, command: str, help: str) -> Parser:
    parser = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".", allow_abbrev=False)
    parser.set_defaults(command=command)
    return parser


def _set_option(parser: Parser, what: str = "change a setting of the config, as in --set training.epochs=4") -> None:
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help=what)


def _stage_option(parser: Any) -> None:
    parser.add_argument("--stage", default="", metavar="NAME|N", help="the best checkpoint of this stage")


def _json_option(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _ascii_option(parser: Parser) -> None:
    """The same option after a command's name; where it is not given there, the one before the name holds."""
    parser.add_argument("--ascii", action="store_true", default=argparse.SUPPRESS, help=ASCII_HELP)


def _run_command(commands: Commands[Parser], name: str, command: str, help: str) -> Parser:
    parser = _add(commands, name, command, help)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    return parser


def _add_starting(commands: Commands[Parser]) -> None:
    demo = _add(commands, "demo", "starting:demo", "make demo data if absent, train the demo config and show it")
    demo.add_argument("project", nargs="?", metavar="PROJECT", help="default: the one with a demo")
    demo.add_argument("--headless", action="store_true", help="no screen: the table on stdout")
    _ascii_option(demo)
    _set_option(demo)

    init = _add(commands, "init", "init:init", "write a commented config of a project")
    init.add_argument("project", nargs="?", metavar="PROJECT", help="an installed project")
    init.add_argument("file", nargs="?", metavar="FILE", help="a new file; default: PROJECT.yaml")

    train = _add(commands, "train", "starting:train", "train a config and show its table; Ctrl-C stops it, saved")
    train.add_argument("config", metavar="CONFIG", help="YAML file")
    train.add_argument("--name", default="", metavar="LABEL", help="your own name for the run")
    train.add_argument("--run-dir", metavar="DIR", help="where the run is kept; default: a new one in the runs folder")
    resume = _run_command(commands, "resume", "starting:resume", "go on with a run from its last checkpoint")
    fork = _run_command(commands, "fork", "starting:fork", "begin a run of its own with a checkpoint of another")
    which = fork.add_mutually_exclusive_group()
    which.add_argument("--epoch", default="last", metavar="N|best|last", help="which checkpoint; default: last")
    _stage_option(which)
    fork.add_argument("--name", default="", metavar="LABEL", help="your own name for the fork")
    for parser in (train, resume, fork):
        _set_option(parser)
        parser.add_argument("--detach", action="store_true", help="print the run id and leave it running")
        parser.add_argument("--queue", action="store_true", help="wait until no other run is on the device")
    replay = _run_command(
        commands, "replay", "replaying:replay", "train a run once more, edits included, and say whether it is the same"
    )
    replay.add_argument("--detach", action="store_true", help="print the new run's id and leave it running")
    sweep = "one queued run for each value; with another --sweep for each combination"
    train.add_argument("--sweep", action="append", default=[], metavar="KEY=A,B", help=sweep)

    check = _add(commands, "check", "checking:check", "check config, data and model; estimate memory, disk, time, cost")
    check.add_argument("config", metavar="CONFIG", help="YAML file")
    check.add_argument("--try", action="store_true", dest="try_", help="measure: real steps, evaluation, save, resume")
    check.add_argument("--try-seconds", type=float, metavar="S", help="how long to step; default: 60")
    check.add_argument("--step-seconds", type=float, metavar="S", help="of a step, instead of measuring it")
    check.add_argument("--usd-per-hour", type=float, metavar="USD", help="price of the machine; default: the config's")
    check.add_argument("--samples", type=int, metavar="N", help="training samples, instead of counting those there are")
    _set_option(check)
    _json_option(check)


def _add_units(check: Parser) -> None:
    """Options for the units in which installed projects count their data, as `--games N`; kept as `COUNT` + unit."""
    from engines.contract.spec import Spec, installed

    for spec in installed().values():
        for unit in spec.counts if isinstance(spec, Spec) else ():
            if f"--{unit}" not in check._option_string_actions:
                what = f"{unit} of training data, of a project like {spec.name}, in place of --samples"
                check.add_argument(f"--{unit}", type=int, metavar="N", dest=COUNT + unit, help=what)


def _add_queue(commands: Commands[Parser]) -> None:
    queue = _add(commands, "queue", "queueing:show_queue", "show the runs that hold a device or wait for it")
    _json_option(queue)
    verbs = queue.add_subparsers(metavar="VERB", title="verbs", parser_class=Parser)
    move = _run_command(verbs, "move", "queueing:move", "put a waiting run elsewhere in its queue")
    move.add_argument(
        "where", choices=("first", "up", "down", "last"), help="to the front, one on, one back, to the end"
    )
    _run_command(verbs, "cancel", "queueing:cancel", "let a run wait no longer, without having started")


def _add_steering(commands: Commands[Parser]) -> None:
    stop = _run_command(commands, "stop", "steering:stop", "save and end a run, and wait until it has ended")
    stop.add_argument("--after", choices=("step", "epoch"), default="step", help="when to stop; default: step")
    _run_command(commands, "pause", "steering:pause", "hold a run before its next step, in memory")
    _run_command(commands, "continue", "steering:continue_", "end a pause")
    _run_command(commands, "kill", "steering:kill", "end a run at once, without saving")
    weights = _run_command(commands, "weights", "steering:weights", "show loss weights, or change them")
    weights.add_argument(
        "weights", nargs="*", default=[], metavar="HEAD=WEIGHT", help="as in NAME=0.25; none: show them all"
    )
    weights.add_argument("--at", choices=("step", "epoch"), default="step", help="the next one; default: step")
    weights.add_argument("--measure", action="store_true", help="measure each head's share of the gradient first")
    _json_option(weights)
    rate = _run_command(commands, "lr", "steering:learning_rate", "scale the whole learning-rate schedule")
    rate.add_argument("scale", metavar="SCALE", help="of the schedule as configured, as in 0.5x; 1x takes it back")
    _run_command(commands, "checkpoint", "steering:checkpoint", "save last.pt now")
    evaluate = _run_command(
        commands, "evaluate", "steering:evaluate", "evaluate a live run now; best and patience stay as they are"
    )
    evaluate.add_argument("--data", metavar="DIR", help="do that with its best on other data: a task of its project")
    _set_option(evaluate, "an argument of that task")
    _json_option(evaluate)
    _run_command(commands, "early-stop", "steering:early_stop", "finish the epoch, keep the best, export and end")
    for name, what in (("epochs", "epochs in all"), ("patience", "epochs without a better score until it ends")):
        number = _run_command(commands, name, f"steering:{name}", f"change a run's {what}")
        number.add_argument("number", type=int, metavar="N", help=what)


def _add_showing(commands: Commands[Parser]) -> None:
    ls = _add(commands, "ls", "showing:ls", "list the runs: live ones, then the newest")
    ls.add_argument("--filter", default="", metavar="TEXT", help="words that all occur, or /regular expression/")
    ls.add_argument("--sort", default="", metavar="ORDER", help="newest, name, state, score, spent, epoch or age")
    _json_option(ls)
    status = _add(commands, "status", "status:status", "count the runs by state, and the money of today and this month")
    status.add_argument("--line", action="store_true", help="the live runs in one line, for a status bar")
    status.add_argument("--width", type=int, default=80, metavar="N", help="of that line, at most; default: 80")
    _ascii_option(status)
    _json_option(status)
    _json_option(_add(commands, "keys", "keys:keys", "list every key, with the id to change it by"))
    facts = _run_command(commands, "show", "showing:show_run", "say everything about a run")
    facts.add_argument("--config-diff", metavar="default|parent|RUN", help="only where its config differs from that")
    _json_option(facts)
    _add_compare(commands)
    tail = _run_command(commands, "tail", "showing:tail", "show a run's table until it ends; Ctrl-C only leaves it")
    tail.add_argument("--json", action="store_true", help="print one JSON document per epoch, each on a line")
    log = _run_command(commands, "log", "log:log", "print what a run's engine printed")
    log.add_argument("-f", "--follow", action="store_true", help="and what it prints from now on, until it ends")
    log.add_argument("-n", "--lines", type=int, metavar="N", help="the last N lines; default: all")
    _add_metrics(commands)
    review = _run_command(commands, "thresholds", "thresholds:thresholds", "review thresholds, change and save them")
    review.add_argument("--optimize", action="store_true", help="take the best threshold of every head")
    _set_option(review, "take this threshold for a head, as in --set NAME=0.4")
    review.add_argument("--diff", action="store_true", help="show only what changes")
    review.add_argument("--save", action="store_true", help="show what changes and save it in the exported config")
    _json_option(review)
    _json_option(_run_command(commands, "advice", "advising:advice", "say what ten more epochs would bring and cost"))
    _json_option(_run_command(commands, "report", "showing:report", "print the tables that a run wrote"))
    export = _run_command(
        commands, "export", "export:export", "write what a run delivers again, from its best checkpoint so far"
    )
    _stage_option(export)
    _set_option(export, "an argument of the project's task")


def _add_compare(commands: Commands[Parser]) -> None:
    together = _add(
        commands, "compare", "comparing:compare_runs", "put runs side by side: best values, changed settings"
    )
    together.add_argument("runs", nargs="*", default=[], metavar="RUN", help=RUN_HELP)
    together.add_argument("--filter", default="", metavar="TEXT", help="all trainings that `ls --filter TEXT` shows")
    together.add_argument("--open", action="store_true", help="on the screen, with their curves")
    together.add_argument(
        "--sort", default="", metavar="COLUMN", help="best first; --sort=-COLUMN: the other way round"
    )
    together.add_argument("--columns", default="", metavar="A,B", help="the values to show: titles or names of metrics")
    together.add_argument("--each", action="store_true", help="a line per run, also where only the seed differs")
    together.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    _json_option(together)


def _add_metrics(commands: Commands[Parser]) -> None:
    metrics = _run_command(commands, "metrics", "metrics:metrics", "list a run's metrics, or print all their values")
    metrics.add_argument("metrics", nargs="*", default=[], metavar="METRIC", help="as listed; default: all")
    which = metrics.add_mutually_exclusive_group()
    which.add_argument("--csv", action="store_true", help="every value: one row per step, one column per metric")
    which.add_argument("--json", action="store_true", help="every value, as one JSON document")
    plot = _run_command(commands, "plot", "plotting:plot", "draw metrics as a chart of plain characters")
    plot.add_argument("metrics", nargs="+", metavar="METRIC", help="as `cockpit metrics RUN` lists them")
    plot.add_argument("--with", action="append", default=[], metavar="RUN", dest="with_", help="of this run too")
    plot.add_argument("--x", choices=("step", "epoch", "time"), default="step", help="the axis; default: step")
    plot.add_argument("--width", type=int, metavar="N", help="columns; default: the terminal's")
    plot.add_argument("--height", type=int, metavar="N", help="lines; default: half the terminal's")
    plot.add_argument("--svg", metavar="FILE", help="write the chart as a picture instead")
    _ascii_option(plot)


def _add_keeping(commands: Commands[Parser]) -> None:
    for name, what in (("label", "give a run your own name; its id stays"), ("note", "write down what a run is about")):
        own = _run_command(commands, name, f"keeping:{name}", what)
        own.add_argument("text", metavar="TEXT", help="in place of what it has; '' takes it away")
    tag = _run_command(commands, "tag", "keeping:tag", "tag a run, to find it by `tag:NAME`; without tags: show them")
    tag.add_argument("tags", nargs="*", default=[], metavar="TAG", help="words to add")
    tag.add_argument("--remove", action="store_true", help="take them off instead; without tags: all of them")
    pinned = _add(commands, "baseline", "keeping:baseline", "pin the run that a project's others are compared with")
    pinned.add_argument("run", nargs="?", metavar="RUN", help="default: show what is pinned")
    pinned.add_argument("--remove", action="store_true", help="pin none for the project of RUN")
    delete = _add(commands, "delete", "keeping:delete", "delete runs that are not alive, after asking")
    delete.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _add_data(commands: Commands[Parser]) -> None:
    data = commands.add_parser("data", help="make, parse and describe data", description="Make, parse, describe data.")
    verbs = data.add_subparsers(metavar="VERB", title="verbs", parser_class=Parser, required=True)
    make = _add(verbs, "make", "data:make", "make demo data")
    make.add_argument("project", metavar="PROJECT", help="an installed project")
    make.add_argument("out", metavar="OUT", help="folder to make")
    make.add_argument("--sessions", type=int, metavar="N", help="recordings to make")
    make.add_argument("--minutes", type=float, metavar="M", help="length of each")
    make.add_argument("--seed", type=int, metavar="N", help="same seed, same data")
    _set_option(make, "any other argument of the project's task")

    parse_ = _add(verbs, "parse", "data:parse", "turn logs from elsewhere into a project's data")
    parse_.add_argument("source", metavar="SRC", help="file or folder to read")
    parse_.add_argument("out", metavar="OUT", help="folder to make")
    parse_.add_argument("--project", metavar="PROJECT", help=WHOSE_HELP)
    _set_option(parse_, "an argument of the project's task")
    _json_option(parse_)

    stats = _add(verbs, "stats", "data:stats", "describe data: counts, ceiling, baselines")
    stats.add_argument("path", metavar="PATH", help="folder of data")
    stats.add_argument("--project", metavar="PROJECT", help=WHOSE_HELP)
    _json_option(stats)


def _add_tasks(commands: Commands[Parser]) -> None:
    task = _add(commands, "task", "tasks:task", "list the other work that a project does, or do it; Ctrl-C stops it")
    task.add_argument("target", metavar="PROJECT|CONFIG|RUN", help="an installed project, a .yaml file, or a run")
    task.add_argument("name", nargs="?", metavar="NAME", help="the task; default: list them")
    _set_option(task, "an argument of the task, as in --set out=/data; section.key=value changes the CONFIG")
    _json_option(task)
    rollout = _run_command(
        commands, "rollout", "tasks:rollout", "let a run's model act by itself, where its project can"
    )
    _set_option(rollout, "an argument of the project's task")
    _json_option(rollout)


def _add_playing(commands: Commands[Parser]) -> None:
    play = _run_command(commands, "play", "play:play", "step through a session with what a run has exported")
    play.add_argument("--recording", metavar="PATH", help="default: what the project chooses")
    play.add_argument("--as", dest="seat", metavar="SEAT", help="join the live session of this run, as in --as p2")
    _set_option(play, "an argument of the project's task")
    _ascii_option(play)


def _add_logs(commands: Commands[Parser]) -> None:
    what = "a log (JSON, CSV, TensorBoard, W&B, MLflow, what a program prints, …), a run, or a folder of such"
    watch = _add(commands, "watch", "watch:watch", "show what others log, as it grows; leaving only stops watching")
    watch.add_argument("paths", nargs="+", metavar="PATH", help=what)
    watch.add_argument("--text", action="store_true", help="print tables where there could be charts")
    watch.add_argument("--once", action="store_true", help="print what there is now, and end")
    _ascii_option(watch)
    _json_option(watch)

    import_ = _add(commands, "import", "importing:import_", "make a run of each log that another program wrote")
    import_.add_argument("paths", nargs="+", metavar="LOG", help=what)
    import_.add_argument("--name", default="", metavar="LABEL", help="your own name for the runs")


def _add_serving(commands: Commands[Parser]) -> None:
    completion = _add(commands, "completion", "completion:completion", "complete commands, runs and keys in the shell")
    completion.add_argument("shell", nargs="?", metavar="SHELL", help="bash, zsh or fish; default: $SHELL")
    completion.add_argument("--install", action="store_true", help="for good, instead of printing it")
    serve = _add(commands, "serve", "serving:serve", "open the cockpit in a browser; prints its address, with a token")
    serve.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen; default: 127.0.0.1")
    serve.add_argument("--port", type=int, default=8000, metavar="N", help="default: 8000; 0: any free one")
