"""What a person can do to a run now, and doing it. Doing may wait for a disk: call it from a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cockpit.core.hosts.links import link_of, only_there, require_here
from cockpit.core.states import RESUMABLE, Shown, is_live
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.trust import trust

Action = Literal["pause", "continue", "stop", "checkpoint", "resume", "fork"]


@dataclass(frozen=True)
class Target:
    """The run that a key means, as it stands."""

    run: RunDirectory = field(compare=False)
    id: str
    attempt: int
    """Number of the newest attempt, 0 before the first."""
    state: Shown
    only_stops: bool
    no_resume: str = ""
    """Why it can never be resumed, in a sentence; empty where that depends on its state."""

    def can(self, action: Action) -> bool:
        """Whether `action` makes sense now."""
        if action == "stop":
            return is_live(self.state) and self.attempt > 0
        if self.only_stops:
            return False
        match action:
            case "pause":
                return self.state in ("starting", "running") and self.attempt > 0
            case "continue":
                return self.state == "paused"
            case "checkpoint":
                return self.state in ("running", "paused")
            case "resume":
                return self.state in RESUMABLE and not self.no_resume and link_of(self.run.path) is None
            case "fork":
                return self.attempt > 0 and link_of(self.run.path) is None

    def why_not_fork(self) -> str:
        """A sentence for a run of another machine; empty for one of this."""
        return only_there(self.run.path, "fork")

    def why_not_resume(self) -> str:
        """A sentence; empty where it can be resumed."""
        if self.no_resume or self.can("resume"):
            return self.no_resume
        if self.state in RESUMABLE and (there := only_there(self.run.path, "resume")):
            return there
        is_so = "is still loading" if self.state == "reading" else f"is {self.state}"
        goes_on = "is live and resumes on its own" if is_live(self.state) else is_so
        return f"{self.id} {goes_on}; only a run that has ended can be resumed."

    def order(self, action: Action) -> cmd.Command:
        """The command that asks for `action`; resume and fork are none."""
        match action:
            case "pause":
                return cmd.Pause(attempt=self.attempt)
            case "continue":
                return cmd.Continue(attempt=self.attempt)
            case "stop":
                return cmd.Stop(attempt=self.attempt)
            case "checkpoint":
                return cmd.SaveCheckpoint(attempt=self.attempt)
            case "resume" | "fork":
                raise ValueError(f"a {action} is a new start, not a command")


def resume(run: RunDirectory, overrides: Sequence[str] = (), *, trusted: bool = False) -> list[str]:
    """Go on from the last checkpoint; gives a sentence for each changed setting. Raises `UserError`.

    `trusted`: the user has seen what a run from elsewhere runs.
    """
    require_here(run.path, "resume")
    if trusted:
        trust(run)
    changes, sentences = launch.prepare_resume(run, overrides)
    launch.start(run, changes)
    return sentences
