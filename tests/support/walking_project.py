"""A project with tasks of every kind, installed for a test as a distribution would be. It trains nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engines.contract.spec import GROUP

SPEC = """
from engines.contract.spec import Head, Spec, Task

SPEC = Spec(
    name="walk",
    title="A walk",
    config="walk.config:WalkConfig",
    project="walk.project:Walk",
    columns=(),
    heads=(Head(name="balance", title="Balance"),),
    aliases={"pace.batch": "training.batch_size"},
    reads="walk.data:why_not",
    stats="walk.data:stats",
    tasks={
        "count": Task("walk.tasks:count", "add numbers up"),
        "wait": Task("walk.tasks:wait", "wait for a stop"),
        "fall": Task("walk.tasks:fall", "fail after a while"),
        "cache": Task("walk.tasks:cache", "keep the steps of a config", needs="config"),
        "rollout": Task("walk.tasks:of_run", "walk by itself", needs="run"),
        "evaluate": Task("walk.tasks:of_run", "walk elsewhere", needs="run"),
        "parse": Task("walk.tasks:count", "read steps"),
        "make": Task("walk.tasks:count", "make steps"),
    },
    demo="walk_demo.yaml",
)
"""
CONFIG = """
from engines.contract.settings import Data, RunConfig, Section

class Weights(Section):
    balance: float = 1.0

class WalkConfig(RunConfig):
    data: Data
    model: Section = Section()
    loss_weights: Weights = Weights()
"""
TASKS = """
from engines.basics.errors import DataError
from engines.tasks import Table

def count(arguments, context):
    total = arguments.get("to", 4)
    for number in range(total):
        context.progress(number, total, "numbers")
    sums = Table(("n", "sum", "share"), ((total, total * (total - 1) // 2, float("nan")),), "added up")
    context.report({"sums": sums})

def wait(arguments, context):
    context.log("waiting")
    while True:
        context.progress(0, 1, "stops")

def fall(arguments, context):
    context.report({"before": Table(("steps",), ((3,),))})
    raise DataError("the floor ends at step 4")

def cache(arguments, context):
    config, more = arguments["config"], [f"{k}={v}" for k, v in arguments.items() if k != "config"]
    rows = (("path", config["data"]["path"]), ("batch", config["training"]["batch_size"]), ("more", " ".join(more)))
    context.report({"config": Table(("key", "value"), rows)})

def of_run(arguments, context):
    context.report({"given": Table(("name", "value"), tuple((k, str(v)) for k, v in sorted(arguments.items())))})
"""
DATA = """
from pathlib import Path

def why_not(path):
    return "" if list(Path(path).glob("*.walk")) or Path(path).suffix == ".walk" else "no .walk files"

def stats(path):
    return {"steps": {"columns": ["file"], "rows": [[one.name] for one in sorted(Path(path).glob("*.walk"))]}}
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project in `folder`, for this process and those it starts. Gives a config of it."""
    package = folder / "walk"
    package.mkdir(parents=True)
    for name, text in {"__init__": "", "spec": SPEC, "config": CONFIG, "tasks": TASKS, "data": DATA}.items():
        (package / f"{name}.py").write_text(text)
    info = folder / "walk-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: walk\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nwalk = walk.spec:SPEC\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", "")))))
    config = folder / "walk.yaml"
    config.write_text("project: walk\ndata: {path: steps}\npace: {batch: 16}\n")
    return config
