"""The controls project as the training engine sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.basics.errors import UserError, nearest
from engines.training.project import Batch, Context, Loss, Project, Result, Split, Table, TrainingLog
from projects.controls.batches import WindowSource
from projects.controls.config import ControlsConfig
from projects.controls.editions import NEWEST, scoring
from projects.controls.evaluation import ControlsEvaluation, ControlsResult, sending_arrays
from projects.controls.export import write_export
from projects.controls.layout import BINARY, CONTROL_NAMES, WINDOW
from projects.controls.losses import Errors, PosWeights, head_losses, loss_masks, off_controls, pos_weights
from projects.controls.model import ControlTransformer
from projects.controls.report import never_pressed
from projects.controls.run_report import RunReport
from projects.controls.split import Parts, read_parts
from projects.controls.tuning import configured, tuned_through


class ControlsProject(Project[ControlsConfig]):
    """Body pose and game state to 28 controls. `data` comes first; it settles class weights and normalisation."""

    edition = NEWEST
    graph_safe = True
    _train: WindowSource
    _validation: WindowSource
    _weights: PosWeights
    _errors = Errors()
    _types: list[str]
    _names: list[str]

    def data(self, cfg: ControlsConfig, device: torch.device) -> Split:
        parts = read_parts(cfg.data, self.edition)
        train, validation = parts.train, parts.validation
        self._train = WindowSource(train, device, cfg.data.history_dropout, cfg.data.augmentation)
        self._validation = WindowSource(validation, device, cfg.data.history_dropout)
        self._weights = pos_weights(self._train, cfg.data.pos_weight, cfg.data.pos_weight_cap)
        self._errors = Errors(**cfg.loss.model_dump())
        self._types = [recording.session_type for recording in train]
        self._names = [recording.name for recording in validation]
        return Split(self._train, self._validation, _summary(parts, self._train, self._weights), by_rows=True)

    def build(self, cfg: ControlsConfig) -> ControlTransformer:
        return ControlTransformer(**cfg.model.model_dump())

    def model(self, cfg: ControlsConfig, data: Split) -> nn.Module:
        model = self.build(cfg)
        model.normalise(*self._train.feature_statistics(), self._train.whitening() if cfg.model.whiten else None)
        return model

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        outputs = model(batch["features"], batch["mask"])
        losses = head_losses(outputs, batch, self._weights, off_controls(ctx), self._errors)
        return {name: loss for name, loss in losses.items() if name in ctx.heads}

    def counts(self, batch: Batch, ctx: Context) -> Mapping[str, Tensor]:
        return {
            name: mask.sum()
            for name, mask in loss_masks(batch, off_controls(ctx), self._errors.look_rest).items()
            if name in ctx.heads
        }

    def select(self, cfg: ControlsConfig, data: Split, data_filter: str) -> NDArray[np.int64]:
        """The windows of training sessions whose type is `data_filter`."""
        if data_filter not in self._types:
            known = sorted(set(self._types))
            raise UserError(
                f"training.stages: no training session has the type {data_filter!r}{nearest(data_filter, known)}; "
                f"expected one of {', '.join(known)}."
            )
        of_type = np.array([name == data_filter for name in self._types])
        return np.flatnonzero(of_type[self._train.sessions])

    def optimizer(self, groups: list[dict[str, Any]], cfg: ControlsConfig) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, lr=cfg.training.lr, betas=(0.9, cfg.training.beta2), fused=True)

    def evaluation(self, cfg: ControlsConfig, data: Split) -> ControlsEvaluation:
        validation = self._validation
        sending = sending_arrays(validation.times, validation.fps, tuned_through(cfg))
        by = scoring(cfg, self.edition)
        return ControlsEvaluation(self._weights, configured(cfg), validation.sessions, sending, by, self._errors)

    def report(self, cfg: ControlsConfig, data: Split, model: nn.Module, result: Result) -> Mapping[str, Table]:
        """The run beside its baselines, and what its numbers are worth."""
        if not isinstance(result, ControlsResult):
            raise TypeError(f"expected the result of a controls evaluation, not a {type(result).__name__}")
        report = RunReport(
            cfg, model, self._validation, result, self._names, self._weights, self.edition, self.report_progress
        )
        return report.tables()

    def export(
        self, cfg: ControlsConfig, folder: Path, model: nn.Module, data: Split, result: Result, log: TrainingLog
    ) -> None:
        write_export(folder, cfg, model.state_dict(), review=result.review, values=result.values, log=log)


def _summary(parts: Parts, source: WindowSource, weights: PosWeights) -> dict[str, Any]:
    everything = (*parts.train, *parts.validation, *parts.test)
    targets, masks = source.labels()
    pressed = {CONTROL_NAMES[c]: int(count) for c, count in zip(BINARY, (targets[:, BINARY] > 0.5).sum(0), strict=True)}
    summary: dict[str, Any] = {
        "train_sessions": len(parts.train),
        "validation_sessions": [recording.name for recording in parts.validation],
        "session_types": dict(sorted(Counter(r.session_type for r in everything).items())),
        "synthesised_pose": sum(r.synthesised_pose for r in everything),
        "train_windows": len(source),
        "frames_per_second": source.fps,
        "pressed": pressed,
        "share": {name: round(float(mask.float().mean()), 4) for name, mask in masks.items()},
    }
    if parts.test:
        summary["test_sessions"] = [recording.name for recording in parts.test]
    if parts.shortened:
        summary["gaps"] = (
            f"{WINDOW} frames beside held-out pieces of a sitting are left out of {parts.shortened} pieces"
        )
    if weights.unsupported:
        summary["note"] = never_pressed(weights.unsupported)
    return summary
