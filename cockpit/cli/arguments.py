"""What can be typed after `cockpit`. Imports argparse alone: the parser names each command's function as a string."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from cockpit import __version__
from cockpit.cli import codes
from cockpit.core.typed import program

COUNT = "count "
"""Before a unit's name, where `cockpit check` finds how many were given."""
ASCII_HELP = "draw with ASCII characters only"
WHOSE_HELP = "the project the data belongs to; default: detected from the data"
ASKED = "_ARGCOMPLETE"
"""Set by a shell that asks what could be typed here."""
HOST: dict[str, Any] = {"action": "append", "metavar": "USER@BOX[:RUNS]"}
TAKE_HOSTS = ("screen:cockpit", "showing:ls", "log:log")
RUN_HELP = "an id, its last word, a label, a unique part of these, a path, or `last`"
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
    _add_starting(commands)
    _add_check(commands)
    _add_queue(commands)
    _add_steering(commands)
    _add_showing(commands)
    _add_keeping(commands)
    _add_data(commands)
    _add_tasks(commands)
    _add_logs(commands)
    _add_playing(commands)
    _add_serving(commands)
    _add_machine(commands)
    return list(commands.choices)


def _add(commands: Commands[Parser], name: str, command: str, help: str) -> Parser:
    parser = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".", allow_abbrev=False)
    parser.set_defaults(command=command)
    return parser


def _set_option(parser: Parser, what: str = "change a setting of the config, as in --set training.epochs=4") -> None:
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help=what)


def _stage_option(parser: Any) -> None:
    parser.add_argument("--stage", default="", metavar="NAME|N", help="the best checkpoint of this stage")


def _trust_option(parser: Parser) -> None:
    parser.add_argument(
        "--trust",
        action="store_true",
        help="start a run that was made elsewhere; without it, what that would run is printed",
    )


def _json_option(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _ascii_option(parser: Parser) -> None:
    """The same option after a command's name; where it is not given there, the one before the name holds."""
    parser.add_argument("--ascii", action="store_true", default=argparse.SUPPRESS, help=ASCII_HELP)


def _host_option(parser: Parser, what: str) -> None:
    """Apart from those before the command, which argparse would replace."""
    parser.add_argument("--host", **HOST, default=[], dest="hosts_of_command", help=what)


def _run_command(commands: Commands[Parser], name: str, command: str, help: str) -> Parser:
    parser = _add(commands, name, command, help)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    return parser


def _add_starting(commands: Commands[Parser]) -> None:
    demo = _add(commands, "demo", "starting:demo", "make demo data if there is none, train the demo config and show it")
    demo.add_argument("project", nargs="?", metavar="PROJECT", help="default: the one with a demo")
    demo.add_argument("--headless", action="store_true", help="no screen: print the table to stdout")
    _ascii_option(demo)
    _set_option(demo)

    init = _add(commands, "init", "init:init", "write a commented config of a project")
    init.add_argument("project", nargs="?", metavar="PROJECT", help="an installed project")
    init.add_argument("file", nargs="?", metavar="FILE", help="a new file; default: PROJECT.yaml")

    train = _add(commands, "train", "starting:train", "train a config and show its table; Ctrl-C saves and stops it")
    train.add_argument("config", metavar="CONFIG", help="YAML file")
    train.add_argument("--name", default="", metavar="LABEL", help="a label for the run")
    train.add_argument("--run-dir", metavar="DIR", help="the run's directory; default: a new one in the runs folder")
    resume = _run_command(commands, "resume", "starting:resume", "resume a run from its last checkpoint")
    fork = _run_command(commands, "fork", "starting:fork", "start a new run from a checkpoint of another")
    which = fork.add_mutually_exclusive_group()
    which.add_argument("--epoch", default="last", metavar="N|best|last", help="which checkpoint; default: last")
    _stage_option(which)
    fork.add_argument("--name", default="", metavar="LABEL", help="a label for the fork")
    for parser in (train, resume, fork):
        _set_option(parser)
        parser.add_argument("--detach", action="store_true", help="print the run id and return; the run keeps running")
        parser.add_argument("--queue", action="store_true", help="wait until no other run is on the device")
    for parser in (resume, fork):
        _trust_option(parser)
    replay = _run_command(
        commands,
        "replay",
        "replaying:replay",
        "train a run again, edits included, and check that the result is the same",
    )
    replay.add_argument(
        "--detach", action="store_true", help="print the new run's id and return; the run keeps running"
    )
    _trust_option(replay)
    sweep = "one queued run for each value; with another --sweep for each combination"
    train.add_argument("--sweep", action="append", default=[], metavar="KEY=A,B", help=sweep)


def _add_check(commands: Commands[Parser]) -> None:
    check = _add(
        commands, "check", "checking:check", "check config, data and model; estimate memory, disk, time and cost"
    )
    check.add_argument("config", metavar="CONFIG", help="YAML file")
    check.add_argument(
        "--try",
        action="store_true",
        dest="try_",
        help="run real steps, an evaluation, a save and a resume, and measure them",
    )
    check.add_argument("--try-seconds", type=float, metavar="S", help="how long to run steps; default: 60")
    check.add_argument(
        "--profile",
        action="store_true",
        help="instead, show what the time of a step is spent on, and write a trace for Perfetto",
    )
    check.add_argument("--step-seconds", type=float, metavar="S", help="duration of a step, instead of measuring it")
    check.add_argument("--usd-per-hour", type=float, metavar="USD", help="price of the machine; default: the config's")
    check.add_argument("--samples", type=int, metavar="N", help="number of training samples, instead of counting them")
    _set_option(check)
    _json_option(check)


def _add_units(check: Parser) -> None:
    """Options for the units in which installed projects count their data, as `--games N`; kept as `COUNT` + unit."""
    from engines.contract.spec import Spec, installed

    for spec in installed().values():
        for unit in spec.counts if isinstance(spec, Spec) else ():
            if f"--{unit}" not in check._option_string_actions:
                what = f"{unit} of training data, for projects such as {spec.name}, instead of --samples"
                check.add_argument(f"--{unit}", type=int, metavar="N", dest=COUNT + unit, help=what)


def _add_queue(commands: Commands[Parser]) -> None:
    queue = _add(commands, "queue", "queueing:show_queue", "show the runs that hold a device or wait for it")
    _json_option(queue)
    verbs = queue.add_subparsers(metavar="VERB", title="verbs", parser_class=Parser)
    move = _run_command(verbs, "move", "queueing:move", "move a waiting run in its queue")
    move.add_argument(
        "where", choices=("first", "up", "down", "last"), help="to the front, one up, one down, to the end"
    )
    _run_command(verbs, "cancel", "queueing:cancel", "take a waiting run out of its queue")


def _add_steering(commands: Commands[Parser]) -> None:
    stop = _add(commands, "stop", "steering:stop", "save and stop a run, and wait until it has stopped")
    stop.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    stop.add_argument("--all", action="store_true", help="every live run at once")
    stop.add_argument("--after", choices=("step", "epoch"), default="step", help="when to stop; default: step")
    _run_command(commands, "pause", "steering:pause", "pause a run before its next step; it stays in memory")
    _run_command(commands, "continue", "steering:continue_", "continue a paused run")
    _run_command(commands, "kill", "steering:kill", "stop a run at once, without saving")
    weights = _run_command(commands, "weights", "steering:weights", "show loss weights, or change them")
    weights.add_argument(
        "weights", nargs="*", default=[], metavar="HEAD=WEIGHT", help="as in NAME=0.25; without any: show them all"
    )
    weights.add_argument(
        "--at",
        choices=("step", "epoch"),
        default="step",
        help="when to apply it: at the next step or epoch; default: step",
    )
    weights.add_argument("--measure", action="store_true", help="first measure each head's share of the gradient")
    _json_option(weights)
    rate = _run_command(commands, "lr", "steering:learning_rate", "scale the whole learning-rate schedule")
    rate.add_argument("scale", metavar="SCALE", help="factor on the configured schedule, as in 0.5x; 1x restores it")
    _run_command(commands, "checkpoint", "steering:checkpoint", "save a checkpoint (last.pt) now")
    evaluate = _run_command(
        commands, "evaluate", "steering:evaluate", "evaluate a live run now; best and patience do not change"
    )
    evaluate.add_argument("--data", metavar="DIR", help="evaluate its best checkpoint on other data instead")
    _set_option(evaluate, "an argument of that task")
    _json_option(evaluate)
    _run_command(commands, "early-stop", "steering:early_stop", "finish the epoch, keep the best, export and stop")
    for name, what in (
        ("epochs", "total number of epochs"),
        ("patience", "epochs without a better score before the run stops"),
    ):
        number = _run_command(commands, name, f"steering:{name}", f"change a run's {what}")
        number.add_argument("number", type=int, metavar="N", help=what)


def _add_showing(commands: Commands[Parser]) -> None:
    ls = _add(commands, "ls", "showing:ls", "list the runs: live ones first, then the newest")
    ls.add_argument("--filter", default="", metavar="TEXT", help="words that must all occur, or /regular expression/")
    ls.add_argument("--sort", default="", metavar="ORDER", help="newest, name, state, score, spent, epoch or age")
    _host_option(ls, "list its runs too, over ssh; can be repeated")
    _json_option(ls)
    status = _add(
        commands, "status", "status:status", "count the runs by state, and show what today and this month have cost"
    )
    status.add_argument("--line", action="store_true", help="the live runs in one line, for a status bar")
    status.add_argument("--width", type=int, default=80, metavar="N", help="longest line, in characters; default: 80")
    _ascii_option(status)
    _json_option(status)
    _json_option(_add(commands, "keys", "keys:keys", "list every key, with the id used to change it"))
    facts = _run_command(commands, "show", "showing:show_run", "show everything about a run")
    facts.add_argument(
        "--config-diff", metavar="default|parent|RUN", help="show only where its config differs from this"
    )
    _json_option(facts)
    _add_compare(commands)
    tail = _run_command(
        commands, "tail", "showing:tail", "follow a run's table until it ends; Ctrl-C leaves the run running"
    )
    tail.add_argument("--json", action="store_true", help="print one JSON document per epoch, one per line")
    log = _run_command(commands, "log", "log:log", "print a run's log")
    log.add_argument("-f", "--follow", action="store_true", help="keep following it until the run ends")
    log.add_argument("-n", "--lines", type=int, metavar="N", help="only the last N lines; default: all")
    _host_option(log, "of a run there, over ssh")
    _add_metrics(commands)
    review = _run_command(commands, "thresholds", "thresholds:thresholds", "review, change and save thresholds")
    review.add_argument("--optimize", action="store_true", help="set every head to its best threshold")
    _set_option(review, "set a head's threshold, as in --set NAME=0.4")
    review.add_argument("--diff", action="store_true", help="show only what changes")
    review.add_argument("--save", action="store_true", help="show what changes and save it to the exported config")
    _json_option(review)
    _json_option(
        _run_command(commands, "advice", "advising:advice", "estimate what ten more epochs would gain and cost")
    )
    _json_option(_run_command(commands, "report", "showing:report", "print the tables of a run's report"))
    export = _run_command(commands, "export", "export:export", "export a run again, from its best checkpoint so far")
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
    metrics = _run_command(commands, "metrics", "metrics:metrics", "list a run's metrics, or print every value")
    metrics.add_argument("metrics", nargs="*", default=[], metavar="METRIC", help="names as listed; default: all")
    which = metrics.add_mutually_exclusive_group()
    which.add_argument("--csv", action="store_true", help="print every value: one row per step, one column per metric")
    which.add_argument("--json", action="store_true", help="print every value as one JSON document")
    plot = _run_command(commands, "plot", "plotting:plot", "draw metrics as a chart in plain text")
    plot.add_argument("metrics", nargs="+", metavar="METRIC", help="as `cockpit metrics RUN` lists them")
    plot.add_argument(
        "--with", action="append", default=[], metavar="RUN", dest="with_", help="also draw this run's metrics"
    )
    plot.add_argument(
        "--x", choices=("step", "epoch", "time", "clock"), default="step", help="the horizontal axis; default: step"
    )
    plot.add_argument("--width", type=int, metavar="N", help="columns; default: the terminal's")
    plot.add_argument("--height", type=int, metavar="N", help="lines; default: half the terminal's")
    plot.add_argument("--svg", metavar="FILE", help="write the chart to an SVG file instead")
    _ascii_option(plot)


def _add_keeping(commands: Commands[Parser]) -> None:
    for name, what in (("label", "give a run a label; its id does not change"), ("note", "write notes on a run")):
        own = _run_command(commands, name, f"keeping:{name}", what)
        own.add_argument("text", metavar="TEXT", help="replaces what it has; '' removes it")
    tag = _run_command(commands, "tag", "keeping:tag", "tag a run, to find it by `tag:NAME`; without tags: show them")
    tag.add_argument("tags", nargs="*", default=[], metavar="TAG", help="words to add")
    tag.add_argument("--remove", action="store_true", help="remove them instead; without tags: all of them")
    pinned = _add(commands, "baseline", "keeping:baseline", "pin the run that a project's others are compared with")
    pinned.add_argument("run", nargs="?", metavar="RUN", help="default: show what is pinned")
    pinned.add_argument("--remove", action="store_true", help="pin none for the project of RUN")
    prune = _add(
        commands, "prune", "pruning:prune", "show which checkpoints of ended runs could go; --yes removes them"
    )
    prune.add_argument("runs", nargs="*", default=[], metavar="RUN", help="default: all runs that have ended")
    prune.add_argument(
        "--keep-best", type=int, default=1, metavar="N", help="keep the N best epochs of each stage; default: 1"
    )
    prune.add_argument(
        "--keep-every", type=int, default=0, metavar="M", help="also keep every M-th epoch; default: 0, none"
    )
    prune.add_argument(
        "--last", action="store_true", help="also remove last.pt of finished runs, which then cannot be resumed"
    )
    prune.add_argument("--yes", action="store_true", help="remove them")
    _json_option(prune)
    bundle = _run_command(commands, "bundle", "bundling:bundle", "pack a run into one file, and print how to copy it")
    bundle.add_argument("--out", metavar="FILE", help="default: the run's id, in the current folder")
    bundle.add_argument("--last", action="store_true", help="include last.pt, to resume exactly where the run ended")
    bundle.add_argument("--force", action="store_true", help="replace an existing file")
    unbundle = _add(commands, "unbundle", "bundling:unbundle", "turn a file that `bundle` wrote into a run")
    unbundle.add_argument(
        "file", metavar="FILE", help="what `bundle` wrote, here or elsewhere; nothing in it runs until you resume it"
    )
    delete = _add(commands, "delete", "keeping:delete", "delete runs that are not live, after asking")
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
    _set_option(make, "another argument of the project's task")

    parse_ = _add(verbs, "parse", "data:parse", "convert recorded logs into a project's data")
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
    task = _add(commands, "task", "tasks:task", "list a project's tasks, or run one; Ctrl-C stops it")
    task.add_argument("target", metavar="PROJECT|CONFIG|RUN", help="an installed project, a .yaml file, or a run")
    task.add_argument("name", nargs="?", metavar="NAME", help="the task; default: list them")
    _set_option(task, "an argument of the task, as in --set out=/data; section.key=value changes the CONFIG")
    _json_option(task)
    rollout = _run_command(
        commands, "rollout", "tasks:rollout", "let a run's model act on its own, where its project supports it"
    )
    _set_option(rollout, "an argument of the project's task")
    _json_option(rollout)


def _add_playing(commands: Commands[Parser]) -> None:
    play = _run_command(commands, "play", "play:play", "step through a recording with a run's exported model")
    play.add_argument("--recording", metavar="PATH", help="default: chosen by the project")
    play.add_argument(
        "--as", dest="seat", metavar="SEAT", help="the seat to take in the run's live session, as in --as p2"
    )
    _set_option(play, "an argument of the project's task")
    _ascii_option(play)


def _add_logs(commands: Commands[Parser]) -> None:
    what = "a log (JSON, CSV, TensorBoard, W&B, MLflow, printed output, …), a run, or a folder of them"
    watch = _add(commands, "watch", "watch:watch", "follow logs of other programs live; quitting only stops watching")
    watch.add_argument("paths", nargs="+", metavar="PATH", help=what)
    watch.add_argument("--text", action="store_true", help="print tables instead of drawing charts")
    watch.add_argument("--once", action="store_true", help="print what there is now and exit")
    _ascii_option(watch)
    _json_option(watch)

    import_ = _add(commands, "import", "importing:import_", "make a run from each log of another program")
    import_.add_argument("paths", nargs="+", metavar="LOG", help=what)
    import_.add_argument("--name", default="", metavar="LABEL", help="a label for the runs")


def _add_serving(commands: Commands[Parser]) -> None:
    completion = _add(
        commands, "completion", "completion:completion", "print or install shell completion of commands, runs and keys"
    )
    completion.add_argument("shell", nargs="?", metavar="SHELL", help="bash, zsh or fish; default: $SHELL")
    completion.add_argument("--install", action="store_true", help="install it, instead of printing it")
    serve = _add(commands, "serve", "serving:serve", "open the cockpit in a browser; prints its address, with a token")
    serve.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on; default: 127.0.0.1"
    )
    serve.add_argument("--port", type=int, default=8000, metavar="N", help="default: 8000; 0: any free port")


def _add_machine(commands: Commands[Parser]) -> None:
    hosts = _add(
        commands, "hosts", "hosts:hosts", "list the other machines whose runs are shown, and whether they answer"
    )
    hosts.add_argument("--forget", action="append", default=[], metavar="BOX", help="no longer show this one's runs")
    _json_option(hosts)
    what = "check GPU, torch, disk, limits and terminal, and print a fix for each problem"
    _json_option(_add(commands, "doctor", "doctor:doctor", what))
