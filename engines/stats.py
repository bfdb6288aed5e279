"""Describes data: `python -P -m engines.stats PROJECT PATH` prints the project's named tables as one JSON object."""

from __future__ import annotations

import argparse
import contextlib
import sys

import msgspec

from engines.basics.errors import UserError
from engines.contract import references
from engines.contract import spec as specs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m engines.stats", description="Describe a project's data.")
    parser.add_argument("project")
    parser.add_argument("path")
    arguments = parser.parse_args()
    try:
        spec = specs.find(arguments.project)
        if spec.stats is None:
            raise UserError(f"The project {spec.name!r} does not describe data.")
        with contextlib.redirect_stdout(sys.stderr):  # a project may print; only the answer goes to stdout
            tables = specs.load_function(spec.stats)(arguments.path)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        print(f"{references.missing(error)}.", file=sys.stderr)
        return 1
    print(msgspec.json.encode(tables, enc_hook=str).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
