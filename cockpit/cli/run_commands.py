"""The commands for runs: to check, start, queue, steer, show, compare and keep them."""

from __future__ import annotations

from cockpit.cli.options import (
    RUN_HELP,
    Commands,
    Parser,
    add_command,
    add_run_command,
    ascii_option,
    host_option,
    json_option,
    set_option,
    stage_option,
    trust_option,
)


def add_run_commands(commands: Commands[Parser]) -> None:
    """In the order in which the help lists them."""
    _add_starting(commands)
    _add_check(commands)
    _add_queue(commands)
    _add_steering(commands)
    _add_showing(commands)
    _add_keeping(commands)


def _add_starting(commands: Commands[Parser]) -> None:
    demo = add_command(
        commands, "demo", "starting:demo", "make demo data if there is none, train the demo config and show it"
    )
    demo.add_argument("project", nargs="?", metavar="PROJECT", help="default: the one with a demo")
    demo.add_argument("--headless", action="store_true", help="no screen: print the table to stdout")
    ascii_option(demo)
    set_option(demo)

    init = add_command(commands, "init", "init:init", "write a commented config of a project")
    init.add_argument("project", nargs="?", metavar="PROJECT", help="an installed project")
    init.add_argument("file", nargs="?", metavar="FILE", help="a new file; default: PROJECT.yaml")

    train = add_command(
        commands, "train", "starting:train", "train a config and show its table; Ctrl-C saves and stops it"
    )
    train.add_argument("config", metavar="CONFIG", help="YAML file")
    train.add_argument("--name", default="", metavar="LABEL", help="a label for the run")
    train.add_argument("--run-dir", metavar="DIR", help="the run's directory; default: a new one in the runs folder")
    resume = add_run_command(commands, "resume", "starting:resume", "resume a run from its last checkpoint")
    fork = add_run_command(commands, "fork", "starting:fork", "start a new run from a checkpoint of another")
    which = fork.add_mutually_exclusive_group()
    which.add_argument("--epoch", default="last", metavar="N|best|last", help="which checkpoint; default: last")
    stage_option(which)
    fork.add_argument("--name", default="", metavar="LABEL", help="a label for the fork")
    for parser in (train, resume, fork):
        set_option(parser)
        parser.add_argument("--detach", action="store_true", help="print the run id and return; the run keeps running")
        parser.add_argument("--queue", action="store_true", help="wait until no other run is on the device")
    for parser in (resume, fork):
        trust_option(parser)
    replay = add_run_command(
        commands,
        "replay",
        "replaying:replay",
        "train a run again, edits included, and check that the result is the same",
    )
    replay.add_argument(
        "--detach", action="store_true", help="print the new run's id and return; the run keeps running"
    )
    trust_option(replay)
    sweep = "one queued run for each value; with another --sweep for each combination"
    train.add_argument("--sweep", action="append", default=[], metavar="KEY=A,B", help=sweep)


def _add_check(commands: Commands[Parser]) -> None:
    check = add_command(
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
    set_option(check)
    json_option(check)


def _add_queue(commands: Commands[Parser]) -> None:
    queue = add_command(commands, "queue", "queueing:show_queue", "show the runs that hold a device or wait for it")
    json_option(queue)
    verbs = queue.add_subparsers(metavar="VERB", title="verbs", parser_class=Parser)
    move = add_run_command(verbs, "move", "queueing:move", "move a waiting run in its queue")
    move.add_argument(
        "where", choices=("first", "up", "down", "last"), help="to the front, one up, one down, to the end"
    )
    add_run_command(verbs, "cancel", "queueing:cancel", "take a waiting run out of its queue")


def _add_steering(commands: Commands[Parser]) -> None:
    stop = add_command(commands, "stop", "steering:stop", "save and stop a run, and wait until it has stopped")
    stop.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    stop.add_argument("--all", action="store_true", help="every live run at once")
    stop.add_argument("--after", choices=("step", "epoch"), default="step", help="when to stop; default: step")
    add_run_command(commands, "pause", "steering:pause", "pause a run before its next step; it stays in memory")
    add_run_command(commands, "continue", "steering:continue_", "continue a paused run")
    add_run_command(commands, "kill", "steering:kill", "stop a run at once, without saving")
    weights = add_run_command(commands, "weights", "steering:weights", "show loss weights, or change them")
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
    json_option(weights)
    rate = add_run_command(commands, "lr", "steering:learning_rate", "scale the whole learning-rate schedule")
    rate.add_argument("scale", metavar="SCALE", help="factor on the configured schedule, as in 0.5x; 1x restores it")
    add_run_command(commands, "checkpoint", "steering:checkpoint", "save a checkpoint (last.pt) now")
    evaluate = add_run_command(
        commands, "evaluate", "steering:evaluate", "evaluate a live run now; best and patience do not change"
    )
    evaluate.add_argument("--data", metavar="DIR", help="evaluate its best checkpoint on other data instead")
    set_option(evaluate, "an argument of that task")
    json_option(evaluate)
    add_run_command(commands, "early-stop", "steering:early_stop", "finish the epoch, keep the best, export and stop")
    for name, what in (
        ("epochs", "total number of epochs"),
        ("patience", "epochs without a better score before the run stops"),
    ):
        number = add_run_command(commands, name, f"steering:{name}", f"change a run's {what}")
        number.add_argument("number", type=int, metavar="N", help=what)


def _add_showing(commands: Commands[Parser]) -> None:
    ls = add_command(commands, "ls", "showing:ls", "list the runs: live ones first, then the newest")
    ls.add_argument("--filter", default="", metavar="TEXT", help="words that must all occur, or /regular expression/")
    ls.add_argument("--sort", default="", metavar="ORDER", help="newest, name, state, score, spent, epoch or age")
    host_option(ls, "list its runs too, over ssh; can be repeated")
    json_option(ls)
    status = add_command(
        commands, "status", "status:status", "count the runs by state, and show what today and this month have cost"
    )
    status.add_argument("--line", action="store_true", help="the live runs in one line, for a status bar")
    status.add_argument("--width", type=int, default=80, metavar="N", help="longest line, in characters; default: 80")
    ascii_option(status)
    json_option(status)
    json_option(add_command(commands, "keys", "keys:keys", "list every key, with the id used to change it"))
    facts = add_run_command(commands, "show", "showing:show_run", "show everything about a run")
    facts.add_argument(
        "--config-diff", metavar="default|parent|RUN", help="show only where its config differs from this"
    )
    json_option(facts)
    _add_compare(commands)
    tail = add_run_command(
        commands, "tail", "showing:tail", "follow a run's table until it ends; Ctrl-C leaves the run running"
    )
    tail.add_argument("--json", action="store_true", help="print one JSON document per epoch, one per line")
    log = add_run_command(commands, "log", "log:log", "print a run's log")
    log.add_argument("-f", "--follow", action="store_true", help="keep following it until the run ends")
    log.add_argument("-n", "--lines", type=int, metavar="N", help="only the last N lines; default: all")
    host_option(log, "of a run there, over ssh")
    _add_metrics(commands)
    review = add_run_command(commands, "thresholds", "thresholds:thresholds", "review, change and save thresholds")
    review.add_argument("--optimize", action="store_true", help="set every head to its best threshold")
    set_option(review, "set a head's threshold, as in --set NAME=0.4")
    review.add_argument("--diff", action="store_true", help="show only what changes")
    review.add_argument("--save", action="store_true", help="show what changes and save it to the exported config")
    json_option(review)
    json_option(
        add_run_command(commands, "advice", "advising:advice", "estimate what ten more epochs would gain and cost")
    )
    json_option(add_run_command(commands, "report", "showing:report", "print the tables of a run's report"))
    export = add_run_command(commands, "export", "export:export", "export a run again, from its best checkpoint so far")
    stage_option(export)
    set_option(export, "an argument of the project's task")


def _add_compare(commands: Commands[Parser]) -> None:
    together = add_command(
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
    json_option(together)


def _add_metrics(commands: Commands[Parser]) -> None:
    metrics = add_run_command(commands, "metrics", "metrics:metrics", "list a run's metrics, or print every value")
    metrics.add_argument("metrics", nargs="*", default=[], metavar="METRIC", help="names as listed; default: all")
    which = metrics.add_mutually_exclusive_group()
    which.add_argument("--csv", action="store_true", help="print every value: one row per step, one column per metric")
    which.add_argument("--json", action="store_true", help="print every value as one JSON document")
    plot = add_run_command(commands, "plot", "plotting:plot", "draw metrics as a chart in plain text")
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
    ascii_option(plot)


def _add_keeping(commands: Commands[Parser]) -> None:
    for name, what in (("label", "give a run a label; its id does not change"), ("note", "write notes on a run")):
        own = add_run_command(commands, name, f"keeping:{name}", what)
        own.add_argument("text", metavar="TEXT", help="replaces what it has; '' removes it")
    tag = add_run_command(
        commands, "tag", "keeping:tag", "tag a run, to find it by `tag:NAME`; without tags: show them"
    )
    tag.add_argument("tags", nargs="*", default=[], metavar="TAG", help="words to add")
    tag.add_argument("--remove", action="store_true", help="remove them instead; without tags: all of them")
    pinned = add_command(
        commands, "baseline", "keeping:baseline", "pin the run that a project's others are compared with"
    )
    pinned.add_argument("run", nargs="?", metavar="RUN", help="default: show what is pinned")
    pinned.add_argument("--remove", action="store_true", help="pin none for the project of RUN")
    prune = add_command(
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
    json_option(prune)
    bundle = add_run_command(
        commands, "bundle", "bundling:bundle", "pack a run into one file, and print how to copy it"
    )
    bundle.add_argument("--out", metavar="FILE", help="default: the run's id, in the current folder")
    bundle.add_argument("--last", action="store_true", help="include last.pt, to resume exactly where the run ended")
    bundle.add_argument("--force", action="store_true", help="replace an existing file")
    unbundle = add_command(commands, "unbundle", "bundling:unbundle", "turn a file that `bundle` wrote into a run")
    unbundle.add_argument(
        "file", metavar="FILE", help="what `bundle` wrote, here or elsewhere; nothing in it runs until you resume it"
    )
    delete = add_command(commands, "delete", "keeping:delete", "delete runs that are not live, after asking")
    delete.add_argument("runs", nargs="+", metavar="RUN", help=RUN_HELP)
    delete.add_argument("--yes", action="store_true", help="do not ask")
