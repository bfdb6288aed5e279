"""The melee project as the training engine sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from engines.basics.errors import DataError
from engines.training.grouped_order import GroupedOrder
from engines.training.holdout import hold_out
from engines.training.order import Order
from engines.training.project import Batch, Context, Evaluation, Loss, Project, Result, Split, TrainingLog
from engines.training.samples import Ranges
from projects.melee.config import MeleeConfig
from projects.melee.encoding import width
from projects.melee.evaluation import FIRST_START, Chosen, MeleeEvaluation, fixed_starts
from projects.melee.export import layout, write_export
from projects.melee.forcing import DEEPEST, depth_at, sequence_counts, sequence_losses
from projects.melee.frames import VOCABULARY, Frames
from projects.melee.games import GameWindows, complete_games
from projects.melee.losses import Objective
from projects.melee.mamba import Mamba2, scan_path, use_kernels
from projects.melee.scores import HORIZONS
from projects.melee.store import Placed, Store
from projects.melee.world import MambaTrunk, WorldModel, skipped_frames

WARM_UP = 32
"""Frames that a carried state has seen before a rollout begins."""
USUAL_FRAMES = 8200
"""Of a game between two people, on average over 28 tournament and practice games."""
AGED_GAMES = 200
"""Games that the first ages of the actions are counted in."""
BETAS = (0.9, 0.99)
"""Of AdamW: with a few thousand steps the usual .999 remembers the first ones too long."""


class Melee(Project[MeleeConfig]):
    """The next frame of a game from the frames before and both controllers. `data` comes first."""

    _train: GameWindows
    validation: GameWindows
    """The games that validate; `data` settles it."""
    _device: torch.device

    def data(self, cfg: MeleeConfig, device: torch.device) -> Split:
        self._device = device
        path = Path(cfg.data.path)
        store = Store(path)
        games, lacking = complete_games(store)
        names = [placed.game.name for placed in games]
        held = hold_out(
            path, names, "game", fraction=cfg.data.val_fraction, seed=cfg.data.split_seed,
            validation=cfg.data.validation, test=cfg.data.test,
        )  # fmt: skip

        def windows(indices: Sequence[int]) -> GameWindows:
            return GameWindows(store, [games[k] for k in indices], row_length(cfg), cfg.data.projectiles, device)

        self._train, self.validation = windows(held.train), windows(held.validation)
        self._check_lengths(cfg, path)
        summary = held.summary("game") | {"windows": len(self._train)}
        if lacking:
            left = "; ".join(f"{count} without {fields}" for fields, count in lacking.items())
            summary["left_out"] = f"{sum(lacking.values())} games that lack what a model reads: {left}"
        if cfg.model.architecture == "mamba":
            with torch.device("meta"):
                mixer = Mamba2(cfg.model.d_model)
            summary["scan"] = scan_path(mixer.in_proj.out_features, device)[1]
        validation = Chosen(self.validation, cfg.rollouts.windows)
        return Split(self._train, validation, summary, read_ahead=GameWindows.read_ahead, by_rows=True)

    def other_games(self, cfg: MeleeConfig, folder: Path, device: torch.device) -> Split:
        """Every whole game of the store in `folder`, in the place of those that validate. Raises `DataError`."""
        store = Store(folder)
        games, _ = complete_games(store)
        self.validation = GameWindows(store, games, row_length(cfg), cfg.data.projectiles, device)
        self._check_lengths(cfg, folder)
        return Split(self.validation, Chosen(self.validation, cfg.rollouts.windows))

    def _check_lengths(self, cfg: MeleeConfig, path: Path) -> None:
        if not len(self._starts(cfg, 1)[0]):
            raise DataError(
                f"{path}: no game that validates is long enough for a rollout of {max(HORIZONS)} frames after the "
                f"first {FIRST_START}; parse longer games."
            )

    def build(self, cfg: MeleeConfig) -> WorldModel:
        items, kinds = width(cfg.data.projectiles)
        given = cfg.model.model_dump()
        return WorldModel(**given, K=cfg.data.K, embed_age=cfg.data.state_age_as_embed, items=items, kinds=kinds)

    def model(self, cfg: MeleeConfig, data: Split) -> nn.Module:
        model = self.build(cfg)
        model.first_age.copy_(first_ages(self._train.store, self._train.games[:AGED_GAMES]))
        use_kernels(model, self._device)
        return model

    def metadata(self, cfg: MeleeConfig, data: Split) -> Mapping[str, Any]:
        """The layout that the weights were trained on, and which games were not trained on."""
        validation = [placed.game.name for placed in self.validation.games]
        return {"layout": layout(), "validation_games": validation, "test_games": cfg.data.test}

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        trunk = cast(WorldModel, model).trunk
        return [*(trunk.stack.mixers if isinstance(trunk, MambaTrunk) else ()), *trunk.plain]

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        cfg: MeleeConfig = ctx.cfg
        forcing, noise = cfg.objective.self_forcing, cfg.objective.context_noise
        losses = sequence_losses(
            cast(WorldModel, model), _objective(cfg), Frames(**batch),
            depth=depth_at(ctx.progress, forcing.begins), every=forcing.every, noise=noise, share=ctx.share,
        )  # fmt: skip
        return {name: loss for name, loss in losses.items() if name in ctx.heads}

    def counts(self, batch: Batch, ctx: Context) -> Mapping[str, Tensor]:
        cfg: MeleeConfig = ctx.cfg
        forcing = cfg.objective.self_forcing
        counts = sequence_counts(
            _objective(cfg), Frames(**batch), skipped=skipped_frames(cfg.data.K, carry=_carries(cfg)),
            depth=depth_at(ctx.progress, forcing.begins), every=forcing.every, share=ctx.share,
        )  # fmt: skip
        return {name: count for name, count in counts.items() if name in ctx.heads}

    def evaluation(self, cfg: MeleeConfig, data: Split) -> Evaluation:
        past, games = past_frames(cfg), self.validation
        which, rows = self._starts(cfg, -(-cfg.rollouts.starts // len(games.games)))
        some = np.unique(np.linspace(0, len(which) - 1, min(cfg.rollouts.starts, len(which))).round().astype(int))
        return MeleeEvaluation(_objective(cfg), true_games(games, which[some], rows[some], past), past)

    def _starts(self, cfg: MeleeConfig, each: int) -> tuple[np.ndarray, ...]:
        """Where the rollouts of an evaluation begin: games, and rows there."""
        lengths = np.array([placed.game.frames for placed in self.validation.games])
        return fixed_starts(lengths, each, max(HORIZONS), seed=0, past=past_frames(cfg))

    def order(self, cfg: MeleeConfig, data: Split, samples: Ranges) -> Order:
        """Shuffled whole where it fits into a group of blocks, else what is near on the disk stays near in time."""
        return GroupedOrder(samples, cfg.training.batch_size, cfg.training.seed, soon=self._train.will_read)

    def optimizer(self, groups: list[dict[str, Any]], cfg: MeleeConfig) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, lr=cfg.training.lr, betas=BETAS, fused=True)

    def export(
        self, cfg: MeleeConfig, folder: Path, model: nn.Module, data: Split, result: Result, log: TrainingLog
    ) -> None:
        write_export(folder, cfg, model.state_dict(), log)

    def load_trainable_state(self, model: nn.Module, state: dict[str, Tensor]) -> None:
        """A checkpoint of the original layout may lack heads: those fields are carried forward, and it says so."""
        if absent := cast(WorldModel, model).load(state):
            print(f"the checkpoint has no heads for {', '.join(absent)}: they are carried forward", flush=True)


def samples_in_games(cfg: MeleeConfig, games: int) -> int:
    """Training samples in so many games as long as those of the config's store; without one, as usual ones."""
    try:
        stored = Store(Path(cfg.data.path)).games
    except DataError:
        stored = []
    frames = sum(placed.game.frames for placed in stored) / len(stored) if stored else USUAL_FRAMES
    return round(games * max(0, frames - row_length(cfg) + 1))


def row_length(cfg: MeleeConfig) -> int:
    """Frames of a training row: inputs, and one more to predict; windows need more for each pass of self-forcing."""
    return cfg.data.K + 1 if _carries(cfg) else cfg.data.K + DEEPEST


def past_frames(cfg: MeleeConfig) -> int:
    """True frames that a rollout begins with."""
    return max(cfg.data.K, WARM_UP) if _carries(cfg) else cfg.data.K


def true_games(
    games: GameWindows, which: np.ndarray, rows: np.ndarray, past: int, horizon: int = max(HORIZONS)
) -> Frames:
    """The frames around the starts `rows: (starts,)` of the games `which`: (starts, past + horizon)."""
    return games.frames(which, rows - past + 1, past + horizon)


def first_ages(store: Store, games: Sequence[Placed]) -> Tensor:
    """The median age that each action begins with, 0 where none begins: (400,)."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for placed in games:
        first = placed.game.first_row
        players = store.frames(placed.shard)[first : first + placed.game.frames]["players"]
        action = players["action"]
        begins = action[1:] != action[:-1]
        found.append((action[1:][begins], players["state_age"][1:][begins]))
    actions, ages = (np.concatenate(part) for part in zip(*found, strict=True))
    first_age = torch.zeros(VOCABULARY["action"])
    for action in np.unique(actions[actions < len(first_age)]):
        first_age[int(action)] = float(np.median(ages[actions == action]))
    return first_age


def _carries(cfg: MeleeConfig) -> bool:
    return cfg.model.carry and cfg.model.architecture == "mamba"


def _objective(cfg: MeleeConfig) -> Objective:
    objective = cfg.objective
    return Objective(objective.regression, objective.unimix, objective.change_weight)
