"""`python -m tests.faults --out docs/reliability.md`: inject every fault and write the page of what was lost."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults import page, suite
from tests.faults.trainings import TRAININGS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--out", type=Path, help="page to write; without it the table is printed")
    parser.add_argument("--work", type=Path, help="working folder: what is done in it is not done again")
    parser.add_argument("--workers", type=int, default=2, help="processes side by side")
    parser.add_argument("--projects", default=",".join(TRAININGS), help="projects, with commas")
    parser.add_argument("--only", default="", help="only faults whose name contains this")
    parser.add_argument("--quick", action="store_true", help="a handful, as ./test does")
    parser.add_argument("--per-kind", type=int, default=0, help="at most so many faults of a kind and project")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    projects = arguments.projects.split(",")
    choice = suite.Choice(arguments.only, arguments.quick, arguments.per_kind)
    if arguments.worker:
        worker, workers = map(int, arguments.worker.split("/"))
        suite.work_on(arguments.work, projects, worker, workers, choice)
        return 0
    work = arguments.work or Path(tempfile.mkdtemp(prefix="faults-"))
    suite.run_workers(work, projects, arguments.workers, choice)
    done = suite.Suite(work, projects)
    planned = {fault.name for fault in done.faults()}
    results = [one for one in done.results() if one.name in planned]
    text = page.page(results, len(planned))
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 1 if any(one.lost for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
