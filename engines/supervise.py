"""The parent of every engine process: `python -P -m engines.supervise RUN_DIR [--resume]`, what a resume changes on
stdin.

Session leader and child subreaper. Holds the run's lock, starts the engine with stdio to files, waits, and writes how
it ended also after SIGKILL or OOM; leaves nothing behind. SIGTERM and SIGINT are passed on (save and leave), SIGQUIT
kills the engine at once, SIGHUP is nothing to it.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from engines.basics import files, yaml12
from engines.basics.errors import UserError
from engines.basics.jsonl import last_lines
from engines.basics.lock import RunLock
from engines.basics.reading import read_text
from engines.contract import events as ev
from engines.contract import on_finish as on_finish_of
from engines.contract import spec as specs
from engines.contract.rundir import Attempt, End, RunDirectory
from engines.contract.spec import Spec
from engines.host.facts import boot_id
from engines.runs import provenance, resumption
from engines.runs.resumption import Resumption
from engines.runs.state import RunReader, describe_end
from engines.supervisor import notify, on_finish, processes
from engines.supervisor.budget import Budget
from engines.supervisor.recorder import Recorder
from engines.supervisor.waiting import Places
from engines.supervisor.watchdog import Watchdog

HEARD = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
ORPHAN_GRACE = 5.0
TORCHRUN = "engines.training.torchrun"
BUDGET_GRACE = 600.0
"""Seconds for a run to save when its budget is spent, or when it hangs: it would cost for ever."""
WORTH_A_NOTICE = ("failed", "out-of-budget")
RESERVE_BYTES = 1 << 16
FRESH_SECONDS = 6 * 3600.0
"""How often a running place is touched: tidiers of /tmp take what is days old."""


def _read_config(run: RunDirectory, resume: Resumption | None) -> Any:
    """The resolved config, None where it is damaged: the engine says what is wrong with it, with file and line."""
    try:
        changed = resume.config if resume is not None else None
        return yaml12.read(read_text(run.config) if changed is None else changed)[0]
    except (OSError, ValueError):
        return None


def _no_room(run: RunDirectory, error: OSError) -> str:
    return f"{run.path} cannot be written: {error.strerror}; free some space, then resume"


class Supervisor:
    """One attempt at a run, from taking the lock to recording the end."""

    def __init__(self, run: RunDirectory, resume: Resumption | None = None) -> None:
        self.run = run
        self._resume = resume
        self.lock = RunLock(run.lock)
        self._reserve = run.attempts / ".reserve.tmp"
        self._asked_to_stop = self._killed = self._over_budget = self._started_again = False
        self._stalled = ""
        """What the watchdog said of a run that is stopped because it hangs."""
        config = _read_config(run, resume)
        price = yaml12.amount(config, "cost", "usd_per_hour")
        self.budget = Budget(run, yaml12.amount(config, "cost", "budget_usd"), price)
        self.places = Places(run, config, HEARD)
        self._commands = on_finish_of.commands_in(config)
        self._idle_minutes = on_finish_of.idle_minutes(config)
        self._several = any(yaml12.find(config, "launch", key) not in (None, 1) for key in ("devices", "nodes"))
        self._restarts = int(yaml12.amount(config, "launch", "restarts"))

    def supervise(self) -> int:
        """Run the engine to its end and give the exit code to leave with. Raises `UserError` when the run is taken."""
        self._take_run()
        processes.become_subreaper()
        signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
        files.remove_stale_temporaries(self.run.attempts)
        seconds_left = self.budget.seconds_left
        trouble = self.places.take() if seconds_left != 0 else ""
        attempt = self._new_attempt(trouble)  # from here on the launcher goes on, and may start the next in the queue
        end = attempt.ended = attempt.ended or self._change_settings() or self._live(attempt, seconds_left)
        self._record_end(attempt)
        while self._starts_again(attempt, end):
            try:
                attempt = self._new_attempt("")
            except OSError:  # the disk is full, and the end is on record
                break
            end = attempt.ended = self._live(attempt, self.budget.seconds_left)
            self._record_end(attempt)
        self._post_end(end)
        if self._commands:
            self._go_on_after(attempt)
        return end.exit_code if end.exit_code is not None else 1

    def _go_on_after(self, attempt: Attempt) -> None:
        """What the config wants of the machine when the run is over."""
        self._let_go()
        afterwards = on_finish.Afterwards(self.run, attempt, self._commands)
        unseen = self.places.queue or self._started_again
        due = on_finish.due(self.run, attempt, self._commands, unseen=unseen, stalled=bool(self._stalled))
        if due and afterwards.carry_out(due):
            return
        if on_finish_of.ON_IDLE in self._commands:
            afterwards.when_idle(self._idle_minutes, HEARD)

    def _live(self, attempt: Attempt, seconds_left: float | None) -> End:
        if seconds_left == 0:
            return End(reason="out-of-budget", time=time.time(), exit_code=3, error=self.budget.sentence)
        return self._await_turn(attempt) or self._carry_out(attempt, seconds_left)

    def _starts_again(self, attempt: Attempt, end: End) -> bool:
        """Whether a run whose engine failed is to go on from its last checkpoint by itself; counts how often."""
        failed = end.reason == "failed" and attempt.engine is not None
        asked = self._asked_to_stop or self._killed
        if not failed or asked or not self._restarts or not self.run.last.is_file():
            return False
        self._restarts -= 1
        self._started_again = True
        return True

    def _take_run(self) -> None:
        """Be the only one who works on the run. Raises `UserError`."""
        name = self.run.path.name
        self.run.refuse_links()
        taken = not self.lock.acquire()
        if self._resume is not None and (taken or self._resume.is_late(self.run)):
            raise UserError(
                f"{name} was resumed by another command meanwhile, so this resume was dropped: "
                f"`cockpit tail {name}` watches it.",
                exit_code=1,
            )
        if taken:
            raise UserError(
                f"{self.run.path} already has a live engine; follow it with `cockpit tail {name}` "
                f"or stop it with `cockpit stop {name}`.",
                exit_code=1,
            )

    def _change_settings(self) -> End | None:
        """What a resume changes; the end where it cannot be put on record."""
        try:
            if self._resume is not None:
                self._resume.carry_out(self.run)
        except OSError as error:
            return End(reason="failed", time=time.time(), error=_no_room(self.run, error))
        return None

    def _await_turn(self, attempt: Attempt) -> End | None:
        """Wait where that is asked for; the end, if it never comes to its turn."""
        if not attempt.queued:
            return None
        if (end := self.places.await_turn(attempt.number)) is not None:
            return end
        attempt.queued, attempt.started = False, time.time()
        attempt.versions, attempt.git = provenance.versions(), provenance.git_hash()
        with contextlib.suppress(OSError):  # on a full disk the engine's mark, or the end, will say it
            self.run.write_attempt(attempt)
        return None

    def _carry_out(self, attempt: Attempt, seconds_left: float | None) -> End:
        """Start the engine, wait for it, leave nothing of it behind."""
        oom_before = processes.oom_kills()
        try:
            engine = self._start_engine(attempt)
        except OSError as error:
            return End(reason="failed", time=time.time(), error=f"the engine could not be started: {error}")
        attempt.engine = processes.mark(engine.pid)
        with contextlib.suppress(OSError):  # a full disk: the engine finds it out for itself, and says so better
            self.run.write_attempt(attempt)
        beside = self._beside(attempt, engine.pid)
        for thread in beside:
            thread.start()
        status = self._wait(engine.pid, seconds_left)
        for thread in beside:
            thread.stop()
        processes.end_descendants(ORPHAN_GRACE)
        return self._end(attempt.number, os.waitstatus_to_exitcode(status), processes.oom_kills() > oom_before)

    def _beside(self, attempt: Attempt, engine: int) -> list[Recorder | Watchdog]:
        """What looks at the machine, and at a training."""
        recorder = Recorder(self.run.system, attempt.number, engine)
        if self.run.info.kind != "training":
            return [recorder]
        budget, price = self.budget.usd, self.budget.usd_per_hour
        before = self.budget.spent_before() if budget else 0.0

        def spent() -> float:
            return before + (time.time() - attempt.started) / 3600 * price

        known = specs.installed().get(self.run.info.project)
        proxies = known.proxies if isinstance(known, Spec) else {}
        watchdog = Watchdog(
            self.run, attempt.number, budget=budget, usd_per_hour=price, spent=spent, proxies=proxies,
            on_stall=self._stop_stalled if on_finish_of.ON_STALL in self._commands else None,
        )  # fmt: skip
        return [recorder, watchdog]

    def _stop_stalled(self, text: str) -> None:
        """Called by the watchdog, from its thread."""
        self._stalled = text
        os.kill(os.getpid(), signal.SIGTERM)

    def _record_end(self, attempt: Attempt) -> None:
        """Write the end; on a full disk into the space that was kept for it, and where somebody deleted the records."""
        try:
            files.make_directory(self.run.attempts)
            self.run.write_attempt(attempt)
        except OSError as error:
            self._reserve.unlink(missing_ok=True)
            if attempt.ended is not None and attempt.ended.reason == "failed":
                attempt.ended.error = _no_room(self.run, error)
            self.run.write_attempt(attempt)
        self._reserve.unlink(missing_ok=True)

    def _let_go(self) -> None:
        """Let the next one have its turn, and whoever resumes this run have it."""
        self.lock.release()
        self.places.release()

    def _post_end(self, end: End) -> None:
        if end.reason in WORTH_A_NOTICE and notify.is_wanted():
            self.lock.release()  # whoever resumes it need not wait for the address
            notify.post(self.run.info, end.reason, "error", f"{end.reason}: {describe_end(end)}", end.last_step)

    def _new_attempt(self, trouble: str) -> Attempt:
        """The attempt, on record; it has failed already where `trouble` keeps it from waiting for its turn."""
        attempt = Attempt(
            number=max(self.run.attempt_numbers(), default=0) + 1,
            started=time.time(),
            queued=self.places.queue and self.run.info.kind == "training",
            supervisor=processes.mark(os.getpid()),
            boot_id=boot_id(),
            host=platform.node(),
            device=self.places.device,
            usd_per_hour=self.budget.usd_per_hour,
            versions=provenance.versions(),
            git=provenance.git_hash(),
        )
        attempt.command = [
            sys.executable, "-P", "-m", TORCHRUN if self._several else self.run.info.engine,
            "--run-dir", str(self.run.path), "--attempt", str(attempt.number),
        ]  # fmt: skip
        if attempt.queued and trouble:
            attempt.ended = End(reason="failed", time=attempt.started, error=trouble)
        self.run.write_attempt(attempt)
        with contextlib.suppress(OSError):
            files.replace_bytes(self._reserve, bytes(RESERVE_BYTES))
        return attempt

    def _start_engine(self, attempt: Attempt) -> subprocess.Popen[bytes]:
        with open(self.run.stdout, "ab", opener=lambda path, flags: os.open(path, flags, files.FILE_MODE)) as log:
            return subprocess.Popen(
                attempt.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                env={**processes.ENVIRONMENT, **os.environ},
                preexec_fn=processes.die_with_parent(os.getpid()),  # noqa: PLW1509  (one thread)
            )

    def _wait(self, engine: int, seconds_left: float | None) -> int:
        """Wait for the engine, passing signals on, and give its wait status."""
        deadline = math.inf if seconds_left is None else time.monotonic() + seconds_left
        while True:
            ended = processes.reap()
            if engine in ended:
                return ended[engine]
            answer = signal.sigtimedwait(HEARD, min(max(0.0, deadline - time.monotonic()), FRESH_SECONDS))
            heard = answer.si_signo if answer is not None else None
            if answer is None:
                self.places.keep_fresh()
            if time.monotonic() >= deadline:
                heard = signal.SIGQUIT if self._over_budget or self._stalled else signal.SIGTERM
                deadline, self._over_budget = time.monotonic() + BUDGET_GRACE, not self._stalled
            elif self._stalled:
                deadline = min(deadline, time.monotonic() + BUDGET_GRACE)
            if heard in (signal.SIGTERM, signal.SIGINT):
                self._asked_to_stop = True
                os.kill(processes.rank_zero(engine) if self._several else engine, signal.SIGTERM)
            elif heard == signal.SIGQUIT:
                self._killed = True
                os.killpg(engine, signal.SIGKILL)

    def _end(self, attempt: int, code: int, oom: bool) -> End:
        """How it ended: by the engine's own word if it left one, else by what the kernel says."""
        mine = [event for event in RunReader(self.run).poll() if event.attempt == attempt]
        word = next((event for event in reversed(mine) if isinstance(event, ev.Ended)), None)
        steps = [event.step for event in mine if isinstance(event, ev.Epoch | ev.Phase | ev.Checkpoint | ev.Ended)]
        end = End(
            reason="failed", time=time.time(), exit_code=code if code >= 0 else None, last_step=max(steps, default=0)
        )
        if code < 0:
            end.signal = signal.Signals(-code).name
            end.oom_kill = oom and -code == signal.SIGKILL
        if self._killed:
            end.reason, end.error = "stopped", "killed on request; progress since the last checkpoint is lost"
        elif word is not None and code >= 0:
            end.reason, end.error = word.reason, word.detail
        elif self._asked_to_stop and code == -signal.SIGTERM:
            end.reason, end.error = "stopped", "ended before it received the request to save"
        elif not end.signal:
            end.error = " ".join(last_lines(self.run.stdout, 1))
        if self._over_budget and end.reason == "stopped":
            unsaved = "; killed, progress since the last checkpoint is lost" if self._killed else ""
            end.reason, end.error = "out-of-budget", self.budget.sentence + unsaved
        if self._stalled and (self._killed or end.reason == "stopped"):
            unsaved = "killed, progress since the last checkpoint is lost" if self._killed else "saved and stopped"
            end.reason, end.error = "failed", f"{self._stalled}; {unsaved}, as cost.on_stall asks"
        return end


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--resume"]):
        print("Usage: python -P -m engines.supervise RUN_DIR [--resume]", file=sys.stderr)
        return 2
    if os.getsid(0) != os.getpid() and os.getpgrp() != os.getpid():
        os.setsid()
    try:
        resume = resumption.decoder.decode(sys.stdin.buffer.read()) if sys.argv[2:] else None
        return Supervisor(RunDirectory(Path(sys.argv[1])), resume).supervise()
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{sys.argv[1]} cannot be used as a run directory: {error}.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
