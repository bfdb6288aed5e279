"""The SIM project as the training engine sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.basics.errors import DataError, UserError
from engines.training.precision import cpu_has_bf16
from engines.training.project import Batch, Context, Loss, Project, Result, Split, Table, TrainingLog
from projects.sim.config import SimConfig
from projects.sim.drives import Drive, drive_paths, read_drive
from projects.sim.evaluation import SimEvaluation, SimResult
from projects.sim.export import write_export
from projects.sim.features import FeatureStore
from projects.sim.items import PICTURES, ItemSource, read_items
from projects.sim.labels import LABELS, TELEMETRY
from projects.sim.losses import ClassWeights, loss_counts, sim_losses
from projects.sim.network import SimNetwork, build
from projects.sim.opened import said_of_models
from projects.sim.report import report_tables
from projects.sim.split import split_windows, support, usable
from projects.sim.vision import open_vision
from projects.sim.windows import FrameRows, WindowSource

SAMPLED = 256
"""Training windows whose frames say mean and deviation of features that are not cached."""
SimSource = WindowSource | ItemSource


class SimProject(Project[SimConfig]):
    """Frames and telemetry to risk, reason and action. `data` comes first; it settles class weights and statistics."""

    train: SimSource
    validation: SimSource
    _groups: NDArray[np.int64]
    _weights: ClassWeights
    _confidence: bool

    def data(self, cfg: SimConfig, device: torch.device) -> Split:
        if cfg.model.llm_dtype == "bf16" and device.type == "cpu" and not cpu_has_bf16():
            raise UserError("model.llm_dtype bf16 would take a hundred times as long on this processor; use fp32.")
        if cfg.data.train is None:
            how = self._read_drives(cfg, device)
        else:
            self.train, self.validation = read_items(cfg, device)
            self._groups, how = np.arange(len(self.validation)), "validated on samples of their own"
        self._confidence = cfg.model.confidence
        self._weights = ClassWeights.of(self.train.labels, cfg.data.class_weights, cfg.data.class_weight_cap)
        parts = {"train": self.train, "validation": self.validation}
        counts = {name: support(source.labels.cpu().numpy()) for name, source in parts.items()}
        summary: dict[str, Any] = {"split": how, **{f"{name}_windows": len(source) for name, source in parts.items()}}
        for name, tasks in counts.items():
            said = {
                task: ", ".join(f"{of} {count}" for of, count in classes.items()) for task, classes in tasks.items()
            }
            summary |= {f"{name} {task}": words for task, words in said.items()}
        if lacking := _lacking(counts["train"]):
            summary["note"] = f"No training window is {', '.join(lacking)}: these classes cannot be learned."
        return Split(self.train, self.validation, summary, by_rows=True)

    def _read_drives(self, cfg: SimConfig, device: torch.device) -> str:
        drives, rows = self._rows(cfg, Path(cfg.data.path), device)
        windows = split_windows(drives, cfg.model.frames, cfg.data)
        self.train = WindowSource(rows, windows.train, cfg.model.frames)
        self.validation = WindowSource(rows, windows.validation, cfg.model.frames)
        self._groups = windows.groups
        return windows.how

    def other_drives(self, cfg: SimConfig, folder: Path, device: torch.device) -> Split:
        """Every window of the drives in `folder`, in the place of those that validate; `data` comes first.

        Raises `DataError` where none has a label, and where they have frames and those of the training have not.
        """
        drives, rows = self._rows(cfg, folder, device)
        starts = np.cumsum([0, *map(len, drives[:-1])])
        ends = [usable(drive, cfg.model.frames) + start for drive, start in zip(drives, starts, strict=True)]
        other = WindowSource(rows, np.concatenate(ends), cfg.model.frames)
        if not len(other):
            raise DataError(f"{folder}: no window of {cfg.model.frames} frames has a label; record more.")
        names = [set(source.batch(torch.arange(1), None)) & set(PICTURES) for source in (self.train, other)]
        if names[0] != names[1]:
            shown = ["frames" if name else "no frames" for name in names]
            raise DataError(f"{folder}: its drives have {shown[1]}, but the run was trained on drives with {shown[0]}.")
        self.validation, self._groups = other, np.repeat(np.arange(len(drives)), [len(some) for some in ends])
        return Split(self.train, self.validation)

    def _rows(self, cfg: SimConfig, folder: Path, device: torch.device) -> tuple[list[Drive], FrameRows]:
        """The drives in `folder` and their frames end to end, encoded where the config says so."""
        paths = drive_paths(folder)
        drives = [read_drive(path) for path in paths]
        features = None
        with_frames = [drive.name for drive in drives if drive.frames is not None]
        if with_frames and len(with_frames) < len(drives):
            raise DataError(
                f"{folder}: {len(with_frames)} of {len(drives)} drives have frames ({with_frames[0]} …); "
                "expected all or none in one folder."
            )
        if with_frames and cfg.model.cached:
            with said_of_models():
                store = FeatureStore(open_vision(cfg.model.vision), device)
            features = [
                store.features(drive, path, lambda done, total: self.data_progress(done, total, "frames encoded"))
                for drive, path in zip(drives, paths, strict=True)
            ]
        return drives, FrameRows.of(drives, features, device)

    def model(self, cfg: SimConfig, data: Split) -> nn.Module:
        with said_of_models():
            batch = self.train.batch(torch.arange(1), None)
            network = build(network_settings(cfg, batch))
            features = self.train.features
            if features is None and "frames" in batch:
                sampled = np.random.default_rng(0).permutation(len(self.train))[:SAMPLED]
                features = network._features(self.train.batch(torch.from_numpy(sampled), None)).flatten(0, 1)
            network.set_statistics(self.train.telemetry, features)
            return network

    def metadata(self, cfg: SimConfig, data: Split) -> Mapping[str, Any]:
        """What a checkpoint says beside its weights."""
        settings = network_settings(cfg, self.train.batch(torch.arange(1), None))
        return {
            "model": settings,
            "labels": {task: list(names) for task, names in LABELS.items()},
            "telemetry": list(TELEMETRY),
        }

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        network = cast(SimNetwork, model)
        return [] if network.llm is None else network.llm.stack

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        losses = sim_losses(model(batch), batch, self._weights)
        return {name: loss for name, loss in losses.items() if name in ctx.heads}

    def counts(self, batch: Batch, ctx: Context) -> Mapping[str, Tensor]:
        counts = loss_counts(batch, self._weights, self._confidence)
        return {name: count for name, count in counts.items() if name in ctx.heads}

    def validation_batch(self, cfg: SimConfig) -> int:
        """As many as in training where frames are encoded in each step: these take the memory."""
        return super().validation_batch(cfg) if cfg.model.cached else cfg.training.batch_size

    def param_groups(self, model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
        """Of what trains alone: decay for the matrices, none for the task token and biases."""
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        matrices = [parameter for parameter in trained if parameter.ndim >= 2]
        others = [parameter for parameter in trained if parameter.ndim < 2]
        return [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]

    def trainable_state(self, model: nn.Module) -> dict[str, Tensor]:
        """Without the frozen models, with the statistics."""
        return {name: value for name, value in model.state_dict().items() if not name.startswith(("llm.", "vision."))}

    def load_trainable_state(self, model: nn.Module, state: dict[str, Tensor]) -> None:
        missing = set(self.trainable_state(model)) ^ set(state)
        if missing:
            raise RuntimeError(f"the checkpoint and the model do not have the same parts: {', '.join(sorted(missing))}")
        model.load_state_dict(state, strict=False)

    def evaluation(self, cfg: SimConfig, data: Split) -> SimEvaluation:
        return SimEvaluation(self._weights, self._groups, cfg.thresholds.best_by)

    def report(self, cfg: SimConfig, data: Split, model: nn.Module, result: Result) -> Mapping[str, Table]:
        """The run beside its baselines and leak rows, what its thresholds guarantee, and the time of an answer."""
        assert isinstance(result, SimResult)
        assert isinstance(model, SimNetwork)
        return report_tables(cfg, self.train, self.validation, model, result, self._weights, self.report_progress)

    def export(
        self, cfg: SimConfig, folder: Path, model: nn.Module, data: Split, result: Result, log: TrainingLog
    ) -> None:
        assert isinstance(model, SimNetwork)
        write_export(
            folder,
            self.metadata(cfg, data),
            self.trainable_state(model),
            model,
            self.validation,
            result.review,
            cfg,
            log,
        )


def network_settings(cfg: SimConfig, batch: Batch) -> dict[str, Any]:
    """What `network.build` makes the model of, the width of the features that of the data. Raises `DataError`."""
    settings = cfg.model.model_dump()
    if "vis_feats" in batch:
        found, frames = batch["vis_feats"].shape[2], batch["vis_feats"].shape[1]
        settings["cached"] = True
    elif "frames" in batch:
        frames = batch["frames"].shape[1]
        found = int(open_vision(cfg.model.vision).dv)
        settings["cached"] = False
    else:
        return {**settings, "dv": 0}
    if settings["dv"] not in (None, found):
        raise DataError(f"model.dv is {settings['dv']}, but the features are {found} wide; set model.dv to {found}.")
    if frames != cfg.model.frames:
        raise DataError(
            f"model.frames (F) is {cfg.model.frames}, but the samples have {frames} frames; set it to that."
        )
    return {**settings, "dv": found}


def _lacking(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    return [f"{task} {name}" for task, names in counts.items() for name, count in names.items() if not count]
