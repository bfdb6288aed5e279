"""What a resume changes of a run. Its supervisor writes it, once it holds the lock: of two who resume at once only one
does, and what the other one asked for is nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engines.basics.line_writer import append_line
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """Planned while the run had ended, for the attempt to come."""

    attempt: int
    config: str | None = None
    """The new record of the settings; None where it stays as it is."""
    edits: Sequence[cmd.Command] = ()

    def is_late(self, run: RunDirectory) -> bool:
        """Whether somebody else has resumed the run since this was planned."""
        return max(run.attempt_numbers(), default=0) >= self.attempt

    def carry_out(self, run: RunDirectory) -> None:
        """Put it on record, after the attempt: were that missing, the next one would take these edits for its own.

        Raises OSError.
        """
        if self.config is not None:
            run.write_config(self.config)
        if self.edits:
            append_line(run.commands, *map(cmd.encode, self.edits))


decoder: msgspec.json.Decoder[Resumption] = msgspec.json.Decoder(Resumption)
encode = msgspec.json.Encoder().encode
