"""An order to a run and what became of it, in the same words wherever it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from engines.contract.commands import Command
from engines.contract.events import CommandAnswer


@dataclass(frozen=True)
class Order:
    """A command and what became of it; `answer` is None while the engine has not been heard."""

    command: Command
    answer: CommandAnswer | None

    @property
    def refused(self) -> bool:
        return self.answer is not None and self.answer.state == "refused"

    @property
    def outcome(self) -> str:
        """`sent`, `received`, `received, waits for epoch 3`, `applied at step 12`, `refused because …`."""
        if self.answer is None:
            return "sent"
        match self.answer.state:
            case "applied":
                return f"applied at step {self.answer.step:,}"
            case "refused":
                return f"refused because {self.answer.reason}" if self.answer.reason else "refused"
            case "seen":
                epoch = self.command.at_epoch
                return "received" if epoch is None else f"received, waits for epoch {epoch + 1}"

    def outcome_with(self, live_attempt: int | None) -> str:
        """The same, where `live_attempt` is the one alive, if any; of an order that nobody will hear any more, that."""
        waits = self.answer is None or self.answer.state == "seen"
        return "not applied: the run ended first" if waits and self.command.attempt != live_attempt else self.outcome
