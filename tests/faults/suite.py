"""Carries the faults out, some processes side by side; what is done is kept, and taken up again after a break."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from engines.contract.rundir import RunDirectory
from engines.supervisor.processes import become_subreaper
from tests.faults import forked, injected
from tests.faults.faults import Calls, Fault, all_faults, spread
from tests.faults.harm import Hung, Patient
from tests.faults.trainings import ROOT, TRAININGS


@dataclass(frozen=True)
class Result:
    """What became of one fault."""

    name: str
    kind: str
    project: str
    injected: bool
    lost: list[str]
    time: float = 0.0
    """When it was carried out, in Unix seconds: the newest result counts."""


class Suite:
    """All faults of some projects, in a working folder."""

    def __init__(self, work: Path, projects: Iterable[str] = TRAININGS, *, reports: bool = True) -> None:
        """`reports`: whether there are faults in the report and the export, too."""
        self._reports = reports
        self.work = work.absolute()
        self.projects = list(projects)
        for name in ("data", "cache", "queue", "faults", "references"):
            (self.work / name).mkdir(parents=True, exist_ok=True)
            (self.work / name).chmod(0o777)
        self.work.chmod(0o755)

    # -- what nothing happens to -------------------------------------------------------------------------------------

    def reference(self, project: str) -> RunDirectory:
        """The run that nothing happened to; made once."""
        folder = self.work / "references" / project
        run = RunDirectory(folder / "runs" / "run")
        if not (folder / "done").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            forked.modules_of_engines = folder / "modules"
            patient = Patient(TRAININGS[project], self.work / "data", folder, run)
            patient.reports = self._reports
            patient.prepare()
            patient.start()
            patient.wait_end()
            if not patient.is_done:
                raise RuntimeError(f"{project} does not train: {run.stdout.read_text()[-2000:]}")
            forked.modules_of_engines = None
            (folder / "done").touch()
        for name in (folder / "modules").read_text().split():
            with suppress(Exception):  # what an engine imports on the way, imported once for all
                importlib.import_module(name)
        return run

    def calls(self, project: str) -> Calls:
        trace = self.work / "references" / project / "trace"
        return Calls(injected.points(trace / "engine.1"), injected.points(trace / "supervisor.1"))

    def faults(self) -> list[Fault]:
        """Needs the references."""
        return all_faults({project: self.calls(project) for project in self.projects})

    # -- carrying out ------------------------------------------------------------------------------------------------

    def results(self) -> list[Result]:
        """What is done, of every process that did something."""
        found: dict[str, Result] = {}
        for file in sorted(self.work.glob("results.*.jsonl")):
            for line in file.read_text().splitlines():
                with suppress(ValueError):
                    result = Result(**json.loads(line))
                    if result.name not in found or found[result.name].time <= result.time:
                        found[result.name] = result
        return list(found.values())

    def carry_out(self, faults: Iterable[Fault], worker: int) -> None:
        """Each of them in a folder of its own, which is left where something was lost."""
        with open(self.work / f"results.{worker}.jsonl", "a", encoding="utf-8") as file:
            for fault in faults:
                result = self.one(fault, worker)
                file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
                file.flush()
                word = "LOST" if result.lost else "ok" if result.injected else "not reached"
                print(f"{word:12} {fault.name}", *result.lost, sep="\n    ", flush=True)

    def one(self, fault: Fault, worker: int) -> Result:
        """Carry out one fault."""
        folder = self.work / "faults" / f"{worker}-{abs(hash_of(fault.name)):08x}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        reference = self.reference(fault.project)

        def job() -> dict[str, Any]:
            patient = Patient(TRAININGS[fault.project], self.work / "data", folder, reference)
            patient.reports = fault.reports
            try:
                fault.carry_out(patient)
            except Hung as error:
                patient.verdict.lost.append(str(error))
            except Exception as error:
                patient.verdict.lost.append(f"{type(error).__name__}: {error}")
            return {"lost": patient.verdict.lost, "injected": patient.struck or patient.find_hit() is not None}

        answer = fault.place(job, folder)
        if not answer["lost"]:
            shutil.rmtree(folder, ignore_errors=True)
        hit, lost = bool(answer["injected"]), list(answer["lost"])
        return Result(fault.name, fault.kind, fault.project, hit, lost, time.time())


def hash_of(name: str) -> int:
    return zlib.crc32(name.encode())


def environment(work: Path) -> dict[str, str]:
    """Of the processes that carry out faults: nothing of the user's, this tree."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(work / "cache"),
        "XDG_CONFIG_HOME": str(work / "choices"),
        "XDG_STATE_HOME": str(work / "seen"),
        "COCKPIT_QUEUE": str(work / "queue"),
        "COCKPIT_RUNS": str(work / "runs"),
    }


QUICK = (
    "engine killed inside a write",
    "supervisor killed",
    "SIGTERM to the supervisor",
    "disk full for 1 write",
    "every write refused from one on: Input/output error",
)
"""What `./test` injects."""


def shuffled(faults: list[Fault]) -> list[Fault]:
    """In a fixed order in which the first ones lie anywhere in a run."""
    return sorted(faults, key=lambda fault: hash_of(fault.name))


@dataclass(frozen=True)
class Choice:
    """Which faults are carried out: one of each kind, then another one of each."""

    only: str = ""
    """Those whose name contains this."""
    quick: bool = False
    """One each of a handful of kinds, none of which goes on to a report."""
    per_kind: int = 0
    """At most so many of a kind and project; 0: all."""

    def of(self, faults: Iterable[Fault]) -> list[Fault]:
        chosen: dict[tuple[str, str], list[Fault]] = {}
        for fault in faults:
            if self.only in fault.name and (not self.quick or (fault.kind in QUICK and not fault.reports)):
                chosen.setdefault((fault.kind, fault.project), []).append(fault)
        most = 1 if self.quick else self.per_kind
        kinds = [spread(mine, most or len(mine)) for mine in chosen.values()]
        turns = zip_longest(*(shuffled(mine) for mine in kinds))
        return [fault for turn in turns for fault in turn if fault is not None]


def work_on(work: Path, projects: list[str], worker: int, workers: int, choice: Choice) -> None:
    """The part of one process."""
    become_subreaper()
    suite = Suite(work, projects, reports=not choice.quick)
    for project in projects:
        suite.reference(project)
    done = {result.name for result in suite.results() if not result.lost}
    if not workers:
        return
    left = [fault for fault in choice.of(suite.faults()) if fault.name not in done]
    suite.carry_out(left[worker::workers], worker)


def run_workers(work: Path, projects: list[str], workers: int, choice: Choice) -> None:
    """References first, then all faults in so many processes."""
    arguments = [sys.executable, "-P", "-m", "tests.faults", "--work", str(work), "--projects", ",".join(projects)]
    if choice.quick:
        arguments.append("--quick")
    env = environment(work.absolute())
    subprocess.run([*arguments, "--worker", "0/0"], env=env, check=True)
    parts = [
        subprocess.Popen(
            [*arguments, "--only", choice.only, "--per-kind", str(choice.per_kind), "--worker", f"{k}/{workers}"],
            env=env,
        )
        for k in range(workers)
    ]
    for part in parts:
        part.wait()
