"""What commands are made of: the parser, and the options that several of them take."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from cockpit.cli import codes

ASCII_HELP = "draw with ASCII characters only"
HOST: dict[str, Any] = {"action": "append", "metavar": "USER@BOX[:RUNS]"}
RUN_HELP = "an id, its last word, a label, a unique part of these, a path, or `last`"


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


def add_command(commands: Commands[Parser], name: str, command: str, help: str) -> Parser:
    parser = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".", allow_abbrev=False)
    parser.set_defaults(command=command)
    return parser


def set_option(parser: Parser, what: str = "change a setting of the config, as in --set training.epochs=4") -> None:
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help=what)


def stage_option(parser: Any) -> None:
    parser.add_argument("--stage", default="", metavar="NAME|N", help="the best checkpoint of this stage")


def trust_option(parser: Parser) -> None:
    parser.add_argument(
        "--trust",
        action="store_true",
        help="start a run that was made elsewhere; without it, what that would run is printed",
    )


def json_option(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def ascii_option(parser: Parser) -> None:
    """The same option after a command's name; where it is not given there, the one before the name holds."""
    parser.add_argument("--ascii", action="store_true", default=argparse.SUPPRESS, help=ASCII_HELP)


def host_option(parser: Parser, what: str) -> None:
    """Apart from those before the command, which argparse would replace."""
    parser.add_argument("--host", **HOST, default=[], dest="hosts_of_command", help=what)


def add_run_command(commands: Commands[Parser], name: str, command: str, help: str) -> Parser:
    parser = add_command(commands, name, command, help)
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    return parser
