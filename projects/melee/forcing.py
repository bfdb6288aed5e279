"""Self-forcing: a share of each batch's rows is predicted again from the model's own frames.

Pass k reads what pass k - 1 said in the place of the true frames, for all positions of a sequence at once, so k passes
are k steps. The frames go through the same rules as a rollout and carry no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engines.training.draws import Random, Share, randn
from engines.training.project import Loss
from projects.melee.frames import AGE, SHIELD, VELOCITY, Frames, X, Y, join
from projects.melee.losses import Objective, head_counts, head_losses, head_weights
from projects.melee.rules import Prediction, advance
from projects.melee.world import WorldModel

DEEPEST = 3


def depth_at(progress: float, begins: Sequence[float]) -> int:
    """Passes at this share of the run: 1, and one more from each share of `begins` on."""
    return 1 + sum(progress >= begin for begin in begins)


def sequence_losses(
    model: WorldModel, objective: Objective, sequence: Frames, *, depth: int = 1, every: int = 1, noise: float = 0.0,
    share: Share | None = None,
) -> dict[str, Loss]:  # fmt: skip
    """Losses over every position of `sequence` (batch, time), and over `depth` - 1 more passes of every `every`-th row.

    noise: standard deviation of what is added to positions and speeds that the first pass reads, in scaled units.
    share: of the whole batch's rows those in `sequence`; every `every`-th is counted from the whole batch's first.
    """
    losses: dict[str, Loss] = {}
    inputs = sequence.at(slice(None, -1))
    if noise:
        inputs = replace(inputs, state=_noisy(inputs.state, noise, share))
    said: Prediction | None = None
    for k in range(depth):
        if k == 1:
            first_row = -share.start % every if share else 0
            sequence, inputs = sequence.rows(every, first_row), inputs.rows(every, first_row)
            said = said and said.rows(every, first_row)
        if said is not None:
            inputs = _fed_back(model, inputs, said, sequence, k)
        said = model(inputs, sequence.control[:, 1:])
        first = model.skipped + k  # before it no frame has been predicted `k` times
        found = pass_losses(
            objective, said.at(slice(k, None)), inputs.at(slice(first, None)), sequence.at(slice(first, None))
        )
        for name, loss in found.items():
            so_far = losses.get(name)
            losses[name] = Loss(so_far.total + loss.total, so_far.count + loss.count) if so_far else loss
    return losses


def pass_losses(objective: Objective, said: Prediction, last: Frames, truth: Frames) -> dict[str, Loss]:
    """Losses of what was said after `last` (batch, time), for all frames but the newest of `truth`."""
    before, target = truth.at(slice(None, -1)), truth.at(slice(1, None))
    return head_losses(objective, said, last, before, target)


def sequence_counts(
    objective: Objective, sequence: Frames, *, skipped: int, depth: int = 1, every: int = 1,
    share: Share | None = None,
) -> dict[str, Tensor]:  # fmt: skip
    """The counts of `sequence_losses`, without a model."""
    counts: dict[str, Tensor] = {}
    for k in range(depth):
        if k == 1:
            sequence = sequence.rows(every, -share.start % every if share else 0)
        before, target = sequence.at(slice(skipped + k, -1)), sequence.at(slice(skipped + k + 1, None))
        for name, count in head_counts(head_weights(objective, before, target)).items():
            counts[name] = counts[name] + count if name in counts else count
    return counts


def _noisy(state: Tensor, noise: float, random: Random) -> Tensor:
    shaken = torch.cat([state[..., X : Y + 1], state[..., VELOCITY]], dim=-1)
    shaken = shaken + noise * randn(shaken.shape, random, shaken.device, shaken.dtype)
    parts = [state[..., :X], shaken[..., :2], state[..., SHIELD : SHIELD + 1], shaken[..., 2:], state[..., AGE:]]
    return torch.cat(parts, dim=-1)


def _fed_back(model: WorldModel, inputs: Frames, said: Prediction, sequence: Frames, k: int) -> Frames:
    """`inputs` with what was said in the pass before in the place of the frames after the first `skipped` + k."""
    first = model.skipped + k - 1
    led = sequence.control[:, first + 1 : -1]
    predicted = advance(inputs.at(slice(first, -1)), said.at(slice(k - 1, -1)), led, model.first_age)
    return join([inputs.at(slice(None, first + 1)), predicted])
