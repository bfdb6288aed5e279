"""What a run delivers: trained weights, how to use them, and a script that needs nothing of ours to run them."""

from __future__ import annotations

import ast
import importlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.exporting import alone, as_json, log_files, replace_export
from engines.training.project import TrainingLog
from engines.training.trained import open_reviewed, serialised
from projects.sim.config import SimConfig
from projects.sim.inference import CONFIG, EXAMPLE, WEIGHTS
from projects.sim.labels import LABELS
from projects.sim.llm import TINY
from projects.sim.network import SimNetwork
from projects.sim.report import Source
from projects.sim.thresholds import guaranteed, search_thresholds

SCRIPT, NAMES = "sim_v0_infer.py", "labels.json"
FILES = (SCRIPT, NAMES, CONFIG, WEIGHTS, EXAMPLE)
PARTS = ("labels", "llm", "vision", "network", "inference")
"""Modules that the script is made of, each using those before it."""
RESERVED = {"none", "grid", "efficientnet-lite0", *TINY}
"""Names of models that are no paths, whatever lies in the folder that a run is started in."""
EXAMPLES = 16
"""Windows that the script proves itself on."""


def write_export(
    folder: Path,
    metadata: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    network: SimNetwork,
    source: Source,
    review: Mapping[str, NDArray[Any]],
    cfg: SimConfig,
    log: TrainingLog,
) -> None:
    """Write the export into `folder`, all or nothing. Raises OSError with the older files untouched.

    network: with the same weights. source: windows that the proof is taken from. review: arrays of the best epoch.
    """
    limits = cfg.thresholds
    config = {
        "version": 1,
        **metadata,
        "model": _absolute(metadata["model"]),
        "sees_frames": cfg.data.train is None,
        "thresholds": search_thresholds(review),
        "guaranteed": {
            "threshold": guaranteed(review, limits.recall, limits.certainty), "recall": limits.recall,
            "certainty": limits.certainty,
        },
        "training": {
            "best_epoch": log.best_epoch, "best_score": log.best_score,
            "best_step": next((row.get("step") for row in log.epochs if row["epoch"] == log.best_epoch), None),
        },
    }  # fmt: skip
    names: dict[str, dict[int, str]] = {task: dict(enumerate(classes)) for task, classes in LABELS.items()}
    contents = {
        SCRIPT: script().encode(), NAMES: as_json(names), CONFIG: as_json(config), WEIGHTS: serialised(weights),
        EXAMPLE: _example(network, source),
    }  # fmt: skip
    replace_export(folder, contents, FILES)


def _absolute(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With models that are files or folders by their whole path: the script may be started anywhere."""
    paths = {name: Path(settings[name]).expanduser() for name in ("llm", "vision") if settings[name] not in RESERVED}
    return {**settings, **{name: str(path.absolute()) for name, path in paths.items() if path.exists()}}


def _example(network: SimNetwork, source: Source) -> bytes:
    """Windows and what the engine's model says of them, on the CPU in fp32."""
    chosen = torch.linspace(0, len(source) - 1, min(EXAMPLES, len(source))).long()
    device = next(network.parameters()).device
    batch = {name: values.cpu() for name, values in source.batch(chosen, None).items()}
    with torch.inference_mode():
        output = network.cpu().eval()(batch)
    network.to(device)
    seen = {name: batch[name] for name in ("telemetry", "vis_feats", "frames") if name in batch}
    logits = {f"{task}_logits": output[f"{task}_logits"] for task in LABELS}
    arrays: dict[str, Any] = {name: values.numpy() for name, values in (seen | logits).items()}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def script() -> str:
    """The modules of `PARTS` as one file: what they import from each other is left out, since it lies above."""
    imports: set[str] = set()
    docs, bodies = "", []
    for part in PARTS:
        source = Path(str(importlib.import_module(f"projects.sim.{part}").__file__)).read_text(encoding="utf-8")
        tree, lines = ast.parse(source), source.splitlines()
        docs = ast.get_docstring(tree) or ""
        left_out: set[int] = set()
        for node in tree.body:
            is_doc = node is tree.body[0]
            if is_doc or isinstance(node, ast.Import | ast.ImportFrom):
                left_out |= set(range(node.lineno - 1, node.end_lineno or node.lineno))
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and _is_foreign(node)):
                imports.add(ast.unparse(node))
        bodies.append("\n".join(line for number, line in enumerate(lines) if number not in left_out).strip())
    top = [f'"""{docs}\n"""', "from __future__ import annotations", "\n".join(sorted(imports))]
    return "\n\n".join(top) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def _is_foreign(node: ast.ImportFrom) -> bool:
    return not (node.module or "").startswith("projects.") and node.module != "__future__"


class _Order(msgspec.Struct):
    run: Path
    stage: int | None = None


def export(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """`cockpit export RUN`: the export of a run's best checkpoint, also while it trains. Its data is read again.

    arguments: run (its directory). Raises `UserError` and `DataError`.
    """
    from projects.sim.project import SimProject

    order = as_struct(arguments, _Order)
    run = RunDirectory(order.run)
    if order.stage is not None:
        run = run.at_stage(order.stage)
    with alone(run):
        trained, review = open_reviewed(run, context.check)
        cfg = trained.settings
        project = SimProject()
        data = project.data(cfg, torch.device("cpu"))
        network = trained.load_into(project.model(cfg, data))
        assert isinstance(network, SimNetwork)
        context.progress(1, 2, "steps")
        try:
            write_export(
                run.export, project.metadata(cfg, data), trained.weights, network, project.validation, review.arrays,
                cfg, trained.log,
            )  # fmt: skip
        except OSError as error:
            raise DataError(f"{error.filename or run.export}: cannot be written ({error.strerror or error}).") from None
        log_files(context, run.export, FILES)
        context.progress(2, 2, "steps")
