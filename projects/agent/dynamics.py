"""The world model: a transformer over the tokens of frames, which cleans the latents of noised frames.

Frame t is made of latent patches, one token for the action that *produced* it, one for its noise level and step size,
and registers. An agent token per frame begins as the task and the frame's action, reads all tokens and is read by none.
Noise level 1 is clean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from projects.agent.attention import (
    PERIOD,
    Attention,
    CrossAttention,
    Past,
    RMSNorm,
    Rotation,
    SwiGLU,
    TimeAttention,
    When,
)  # fmt: skip

MOVEMENTS = 19
"""18 directions of 20 degrees, and none."""
ABILITIES = 8
TOKEN_STD = 1.0
"""As large as what the latents become: with .02 cells are hard to tell apart, and cloning took twice the steps."""


@dataclass(frozen=True)
class Actions:
    """The actions that produced frames: of whole sequences, or of one frame without its time.

    movement: (batch, time) int64, 0 to 18, -1 where it alone is unknown. abilities: (batch, time, 8) float. known:
    (batch, time) bool; an unknown action is the learned base alone.
    """

    movement: Tensor
    abilities: Tensor
    known: Tensor

    def at(self, where: slice | int) -> Actions:
        """Those of some frames; a number takes the time away."""
        return Actions(self.movement[:, where], self.abilities[:, where], self.known[:, where])

    def rows(self, rows: Tensor) -> Actions:
        """Those of some sequences."""
        return Actions(self.movement[rows], self.abilities[rows], self.known[rows])


class ActionToken(nn.Module):
    """The sum of a learned base and the embedded components of an action."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.base = nn.Parameter(torch.randn(width) * TOKEN_STD)
        self.movement = nn.Embedding(MOVEMENTS, width)
        self.abilities = nn.Embedding(2 * ABILITIES, width)
        nn.init.normal_(self.movement.weight, std=TOKEN_STD)
        nn.init.normal_(self.abilities.weight, std=TOKEN_STD / math.sqrt(ABILITIES))

    def forward(self, actions: Actions) -> Tensor:
        """Tokens (…, width) of actions (…)."""
        off, on = self.abilities.weight.view(2, ABILITIES, -1).unbind()
        moved = self.movement(actions.movement.clamp(min=0)) * (actions.movement >= 0)[..., None]
        token = moved + off.sum(0) + actions.abilities @ (on - off)
        return torch.where(actions.known[..., None], token, 0.0) + self.base


class Layer(nn.Module):
    """`x + attention(norm(x))`, then `x + SwiGLU(norm(x))`."""

    def __init__(self, width: int, attention: Attention) -> None:
        super().__init__()
        self.norm, self.attention = RMSNorm(width), attention
        self.mlp_norm, self.mlp = RMSNorm(width), SwiGLU(width)

    def forward(self, x: Tensor, when: When, past: Past | None) -> Tensor:
        """Tokens (batch, time, tokens, width)."""
        x = x + self.attention(self.norm(x), when, past)
        return x + cast(Tensor, self.mlp(self.mlp_norm(x)))


class AgentBlock(nn.Module):
    """The agent token attends to its frame, then to itself in earlier frames, then passes SwiGLU."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.norm, self.tokens_norm = RMSNorm(width), RMSNorm(width)
        self.cross = CrossAttention(width, heads, groups)
        self.time = Layer(width, TimeAttention(width, heads, groups))

    def forward(self, agent: Tensor, tokens: Tensor, when: When, past: Past | None) -> Tensor:
        """Agent tokens (batch, time, 1, width) after they have read `tokens` (batch, time, tokens, width)."""
        agent = agent + self.cross(self.norm(agent), self.tokens_norm(tokens))
        return cast(Tensor, self.time(agent, when, past))


class AgentToken(nn.Module):
    """A learned task embedding, and the blocks by which it reads the frame, each after one layer of the transformer.

    It begins as the task and the action that produced the frame, which most often is the next one too.
    """

    def __init__(self, width: int, heads: int, groups: int, depths: list[int]) -> None:
        super().__init__()
        self.depths = depths
        self.task = nn.Parameter(torch.randn(width) * TOKEN_STD)
        self.blocks = nn.ModuleList([AgentBlock(width, heads, groups) for _ in depths])
        self.norm = RMSNorm(width)


@dataclass(frozen=True)
class Cache:
    """What a stream of frames remembers: what each layer keeps, and how many frames there were.

    trunk: one per layer, None where it attends within frames. Later caches of a stream share the tensors of earlier
    ones, which a step changes: a stream has no branches.
    """

    trunk: list[Past | None]
    agent: list[Past]
    frames: int = 0


class Dynamics(nn.Module):
    """Clean latents from noised ones, the actions that produced them and the frames before.

    Args:
        latent: channels, height and width of a latent.
        kv_heads: heads of keys and values; half of the heads where None.
        time_every: every so many layers one attends over time, the others within a frame.
        patch: cells, in height and width, that a token holds.
        context: frames that attention over time reaches, in whole sequences and in streams.
        agent_layers: blocks of the agent token, spread over the depth.
        finest: k_max; noise levels are multiples of 1 / finest, and steps are 1, 1/2 … 1 / finest.
    """

    def __init__(
        self, latent: tuple[int, int, int], *, width: int, layers: int, heads: int, kv_heads: int | None = None,
        time_every: int = 4, registers: int = 8, patch: int = 1, context: int = 32, agent_layers: int = 2,
        finest: int = 8,
    ) -> None:  # fmt: skip
        super().__init__()
        channels, high, wide = latent
        groups = kv_heads or max(1, heads // 2)
        if high % patch or wide % patch:
            raise ValueError(f"latents of {high} × {wide} cells do not divide into patches of {patch}")
        if layers < time_every:
            raise ValueError(f"of {layers} layers none attends over time with time_every {time_every}")
        if context > PERIOD:
            raise ValueError(f"context {context} must be at most {PERIOD} frames")
        self.latent, self.patch, self.context, self.finest, self.width = latent, patch, context, finest, width
        self.patches = (high // patch) * (wide // patch)
        cells = channels * patch * patch
        self.into = nn.Linear(cells, width)
        self.positions = nn.Parameter(torch.randn(self.patches, width) * TOKEN_STD)
        self.registers = nn.Parameter(torch.randn(registers, width) * TOKEN_STD)
        self.action_token = ActionToken(width)
        self.level_embedding = nn.Embedding(finest + 1, width)
        self.size_embedding = nn.Embedding(finest.bit_length(), width)
        kinds = [TimeAttention if (k + 1) % time_every == 0 else Attention for k in range(layers)]
        self.layers = nn.ModuleList([Layer(width, kind(width, heads, groups)) for kind in kinds])
        self.norm = RMSNorm(width)
        self.out = nn.Linear(width, cells)
        self.rotation = Rotation(width // heads)
        depths = [math.ceil((k + 1) * layers / agent_layers) - 1 for k in range(agent_layers)]
        self.agent = AgentToken(width, heads, groups, depths)
        for table in (self.level_embedding, self.size_embedding):
            nn.init.normal_(table.weight, std=TOKEN_STD)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(
        self, z: Tensor, tau: Tensor, size: Tensor, actions: Actions, independent: Tensor | None = None,
        with_agent: bool = True, cache: Cache | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Clean latents of whole sequences, and the agent token of each frame.

        z: (batch, time, C, H, W), noised to `tau` (batch, time). size: (batch, time), of the step that is asked for.
        independent: (batch,) bool, rows whose frames do not see each other. cache: of `start`, which gets the frames.
        Returns (batch, time, C, H, W) and (batch, time, width), of width 0 without the agent.
        """
        frames = z.shape[1]
        when = When(self.rotation(0, frames), self._mask(frames, z.device, independent))
        x, agent = self._run(self._tokens(z, tau, size, actions), when, cache, with_agent)
        return self._latents(x), agent

    def start(self, batch: int) -> Cache:
        """The memory of `batch` streams before any frame."""
        like = self.out.weight

        def past(tokens: int, attention: nn.Module) -> Past:
            shape = (batch, tokens, cast(Attention, attention).groups, self.context, cast(Attention, attention).d)
            return Past(like.new_zeros(shape), like.new_zeros(shape))

        tokens = self.patches + len(self.registers) + 2
        attentions = [cast(Layer, layer).attention for layer in self.layers]
        blocks = [cast(AgentBlock, block) for block in self.agent.blocks]
        return Cache(
            [past(tokens, module) if isinstance(module, TimeAttention) else None for module in attentions],
            [past(1, block.time.attention) for block in blocks],
        )

    @torch.no_grad()
    def fill(self, z: Tensor, tau: Tensor, size: Tensor, actions: Actions) -> tuple[Tensor, Cache]:
        """Agent tokens (batch, time, width) of the first frames of streams, and the memory of them."""
        cache = self.start(len(z))
        agent = self(z, tau, size, actions, cache=cache)[1]
        return agent, replace(cache, frames=z.shape[1])

    @torch.no_grad()
    def step(
        self, cache: Cache, z: Tensor, tau: Tensor, size: Tensor, actions: Actions, keep: bool
    ) -> tuple[Tensor, Tensor, Cache]:
        """One frame more (batch, C, H, W), at `tau` and `size` (batch,): the same as `forward` of all of them.

        keep: add the frame to the memory, and give its agent token (batch, width). Without it the agent's width is 0,
        and the next step gives the same frame number again.
        """
        when = When(self.rotation(cache.frames, 1), None, cache.frames)
        frame = Actions(actions.movement[:, None], actions.abilities[:, None], actions.known[:, None])
        x, agent = self._run(self._tokens(z[:, None], tau[:, None], size[:, None], frame), when, cache, keep)
        after = replace(cache, frames=cache.frames + 1) if keep else cache
        return self._latents(x)[:, 0], agent[:, 0], after

    def _run(self, x: Tensor, when: When, cache: Cache | None, with_agent: bool) -> tuple[Tensor, Tensor]:
        trunk: list[Past | None] = cache.trunk if cache else [None] * len(self.layers)
        own: list[Past | None] = list(cache.agent) if cache else [None] * len(self.agent.blocks)
        agent = (self.agent.task + x[:, :, self.patches])[:, :, None]
        for depth, (layer, past) in enumerate(zip(self.layers, trunk, strict=True)):
            x = layer(x, when, past)
            if with_agent:
                for at, block, kept in zip(self.agent.depths, self.agent.blocks, own, strict=True):
                    if at == depth:
                        agent = block(agent, x, when, kept)
        return x, self.agent.norm(agent[:, :, 0]) if with_agent else x.new_zeros(*x.shape[:2], 0)

    def _tokens(self, z: Tensor, tau: Tensor, size: Tensor, actions: Actions) -> Tensor:
        """All tokens of all frames (batch, time, tokens, width), the patches first."""
        channels, high, wide = self.latent
        p = self.patch
        cells = z.reshape(*tau.shape, channels, high // p, p, wide // p, p).permute(0, 1, 3, 5, 2, 4, 6)
        patches = self.into(cells.reshape(*tau.shape, self.patches, -1)) + self.positions
        level = (tau * self.finest).round().long()
        shortcut = self.level_embedding(level) + self.size_embedding((size * self.finest).log2().round().long())
        registers = self.registers.expand(*tau.shape, -1, -1)
        return torch.cat([patches, self.action_token(actions)[:, :, None], shortcut[:, :, None], registers], dim=2)

    def _latents(self, x: Tensor) -> Tensor:
        channels, high, wide = self.latent
        p = self.patch
        cells: Tensor = self.out(self.norm(x[:, :, : self.patches]))
        grid = cells.view(*x.shape[:2], high // p, wide // p, channels, p, p)
        return grid.permute(0, 1, 4, 2, 5, 3, 6).reshape(*x.shape[:2], channels, high, wide)

    def _mask(self, frames: int, device: torch.device, independent: Tensor | None) -> Tensor:
        """1 where a frame sees another: itself and those before it within the context."""
        number = torch.arange(frames, device=device)
        back = number[:, None] - number
        seen = (back >= 0) & (back < self.context)
        if independent is None:
            return seen.float()
        return (seen & ((back == 0) | ~independent[:, None, None, None, None, None])).float()
