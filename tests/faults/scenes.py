"""Faults that take more than a call that fails: small disks, other users, data that goes, two who start at once."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engines.basics.errors import UserError
from engines.contract.events import Phase
from engines.runs import launch
from engines.runs.state import RunReader
from tests.faults.harm import Patient, process_state, wait_for
from tests.faults.injected import Injection, Point
from tests.support.command import called

Job = Callable[[], dict[str, Any]]
Carry = Callable[[Patient], None]
DISK_BYTES = 96 << 20
NOBODY = 65534
_NEW_NAMESPACES = 0x00020000 | 0x10000000  # of mounts and of users
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


# -- where it happens ------------------------------------------------------------------------------------------------


def here(job: Job, folder: Path) -> dict[str, Any]:
    return job()


def _in_child(job: Job, enter: Callable[[], None]) -> dict[str, Any]:
    """What `job` gives in a forked process that has called `enter`."""
    ends, gives = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        try:
            os.close(ends)
            enter()
            answer = job()
        except BaseException as error:
            answer = {"lost": [f"{type(error).__name__}: {error}"], "injected": False}
        with os.fdopen(gives, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(gives)
    with os.fdopen(ends) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return dict(json.loads(said)) if said else {"lost": ["the process of the fault died"], "injected": False}


def own_disk(job: Job, folder: Path) -> dict[str, Any]:
    """In a process with mounts of its own, where the runs lie on a small disk."""

    def enter() -> None:
        user, group = os.getuid(), os.getgid()
        _checked(_libc.unshare(_NEW_NAMESPACES))
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path(f"/proc/self/{name}").write_text(text)
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
        _mount("tmpfs", str(folder / "runs"), "tmpfs", 0, f"size={DISK_BYTES},mode=700")

    (folder / "runs").mkdir()
    return _in_child(job, enter)


def own_user(job: Job, folder: Path) -> dict[str, Any]:
    """As a user whom permissions bind: root becomes nobody."""
    if os.geteuid() != 0:
        return job()

    def enter() -> None:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        os.environ["XDG_CONFIG_HOME"] = str(folder / "choices")  # with a key of this user's own

    os.chown(folder, NOBODY, NOBODY)
    subprocess.run(["chmod", "-R", "a+rX", *(folder.parents[1] / name for name in ("data", "references"))], check=True)
    return _in_child(job, enter)


def _checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = [text.encode() if text else None for text in (source, target, kind)]
    _checked(_libc.mount(*encoded, ctypes.c_ulong(flags), data.encode()))


# -- disks -----------------------------------------------------------------------------------------------------------


def full(point: Point) -> Carry:
    """The disk is filled at a call and freed once the run waits for that."""

    def carry_out(patient: Patient) -> None:
        patient.prepare()
        patient.start([Injection("fill", call=point.number)])
        wait_for("the run to wait or to end", lambda: patient.waits or patient.is_over())
        patient.filler.unlink(missing_ok=True)
        patient.wait_end()
        patient.look((*patient.ended, "failed"), "space")
        patient.to_the_end()

    return carry_out


def full_and_left(point: Point) -> Carry:
    """A run that waits on a full disk is asked to leave, and resumed when there is space."""

    def carry_out(patient: Patient) -> None:
        patient.prepare()
        patient.start([Injection("fill", call=point.number)])
        wait_for("the run to wait or to end", lambda: patient.waits or patient.is_over())
        for pid in patient.pids()[:1]:
            os.kill(pid, signal.SIGTERM)
        patient.wait_end()
        patient.look(("stopped", "failed", *patient.ended), "space")
        patient.filler.unlink(missing_ok=True)
        patient.to_the_end()

    return carry_out


def read_only(point: Point) -> Carry:
    """The disk is read-only when the run is to be resumed; then no more."""

    def carry_out(patient: Patient) -> None:
        patient.prepare()
        patient.attempt([Injection("kill", call=point.number)], ("failed",), resume=False)
        _mount(None, str(patient.runs), None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY)
        plan, _ = launch.prepare_resume(patient.run)
        patient.verdict.expect(not patient.start((), plan), "it was resumed on a disk that is read-only")
        patient.verdict.truth(patient.run, ("failed",))
        _mount(None, str(patient.runs), None, _MS_REMOUNT | _MS_BIND)
        patient.to_the_end()

    return carry_out


def forbidden(point: Point, target: str) -> Carry:
    """Nothing may be made in a folder of the run from a call on, until the run has ended."""

    def carry_out(patient: Patient) -> None:
        patient.prepare()
        patient.start([Injection("forbid", call=point.number, path=target)])
        patient.wait_end()
        (patient.run.path / target).chmod(0o700)
        patient.look(("failed", "lost", *patient.ended))
        patient.to_the_end()

    return carry_out


# -- what else goes --------------------------------------------------------------------------------------------------


def vanished(point: Point) -> Carry:
    """The data is gone after a kill: a resume says so, and goes on once it is there again."""

    def carry_out(patient: Patient) -> None:
        shutil.copytree(patient.training.data(patient.data), patient.folder / "data" / patient.training.project)
        patient.data = patient.folder / "data"
        patient.prepare()
        patient.attempt([Injection("kill", call=point.number)], ("failed",), resume=False)
        there = patient.training.data(patient.data)
        there.rename(away := there.with_suffix(".away"))
        try:
            patient.attempt((), ("failed",), there.name, resume=True)
        except UserError as error:
            patient.verdict.expect(str(there) in str(error), f"{str(error)!r} does not say what is missing")
        away.rename(there)
        patient.to_the_end()

    return carry_out


def rebooted(point: Point) -> Carry:
    """Both processes are gone, their ids belong to a stranger, and the machine has another boot id."""

    def carry_out(patient: Patient) -> None:
        patient.prepare()
        patient.attempt([Injection("kill", call=point.number, victims="both")], ("lost",), resume=False)
        stranger = subprocess.Popen(["sleep", "1000"])
        try:
            for number in patient.run.attempt_numbers():
                attempt = patient.run.attempt(number)
                attempt.boot_id = "00000000-0000-4000-8000-000000000000"
                attempt.supervisor.pid = stranger.pid
                if attempt.engine is not None:
                    attempt.engine.pid = stranger.pid
                patient.run.write_attempt(attempt)
            patient.verdict.truth(patient.run, ("lost",))
            for command in ("stop", "kill"):
                called(command, str(patient.run.path))
            patient.verdict.expect(process_state(stranger.pid) != "", "a stranger with the process id was killed")
        finally:
            stranger.kill()
            stranger.wait()
        patient.to_the_end()

    return carry_out


# -- two at once -----------------------------------------------------------------------------------------------------


def two_starts(patient: Patient) -> None:
    """A second start while the first engine lives."""
    patient.prepare()
    patient.start()
    patient.struck = not patient.is_over()
    patient.verdict.expect(not patient.start(), "two supervisors took one run")
    patient.wait_end()
    patient.look(patient.ended)
    patient.to_the_end()


def two_resumes(point: Point) -> Carry:
    """Two commands resume a run at the same moment: one of them does."""

    def carry_out(patient: Patient) -> None:
        patient.prepare()
        patient.attempt([Injection("kill", call=point.number)], ("failed",), resume=False)
        plans = [launch.prepare_resume(patient.run)[0] for _ in range(2)]
        starters = []
        for plan in plans:
            pid = os.fork()
            if not pid:
                os._exit(int(patient.start((), plan)))
            starters.append(pid)
        began = sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in starters)
        patient.verdict.expect(began == 1, f"{began} of two resumes began")
        patient.wait_end()
        patient.look(patient.ended)
        patient.to_the_end()

    return carry_out


def from_outside(victim: str, moment: str) -> Carry:
    """Processes started as the command starts them, killed when the run says that it is in a phase."""

    def carry_out(patient: Patient) -> None:
        patient.prepare()
        patient.forks = False
        patient.start()
        reader = RunReader(patient.run)

        def is_there() -> bool:
            seen = any(isinstance(event, Phase) and event.phase == moment for event in reader.poll())
            return patient.is_over() or (seen and len(patient.pids()) == 2)

        wait_for(f"the phase {moment}", is_there)
        supervisor, engine = [*patient.pids(), 0, 0][:2]
        if engine:
            patient.struck = True
            hit = {"engine": [engine], "supervisor": [supervisor], "both": [supervisor, engine], "group": []}[victim]
            for pid in hit:
                os.kill(pid, signal.SIGKILL)
            if victim == "group":
                os.killpg(engine, signal.SIGKILL)
        patient.wait_end()
        patient.look(("lost" if victim in ("supervisor", "both") else "failed", *patient.ended))
        patient.forks = True
        patient.to_the_end()

    return carry_out
