"""The tables of a finished run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from engines.training.project import Cell, Result, Table
from projects.agent.config import AgentConfig
from projects.agent.heads import PolicyHead
from projects.agent.net import AgentNet
from projects.agent.playing import Episodes, play
from projects.agent.scores import interval
from projects.agent.windows import Windows

TEST_SEED = 20_000
"""Of the episodes that a report plays: no checkpoint was chosen by them."""
EPISODES = 100


def report_tables(
    cfg: AgentConfig, train: Windows, validation: Windows, net: AgentNet, result: Result, *, arena: bool
) -> dict[str, Table]:
    tables = {}
    if arena:
        tables["Played"] = played_table(cfg, net)
    return tables


def played_table(cfg: AgentConfig, net: AgentNet) -> Table:
    """The policy and the prior, sampled and greedy, on the same fresh episodes."""
    found: dict[str, Episodes] = {}
    for name, head, greedy in (
        ("policy, sampled", net.policy, False), ("policy, greedy", net.policy, True),
        ("cloned, sampled", net.prior, False), ("cloned, greedy", net.prior, True),
    ):  # fmt: skip
        found[name] = finished(cfg, net, head, greedy=greedy)
    rows: list[tuple[Cell, ...]] = []
    for name, episodes in found.items():
        mean, half = interval(episodes.returns)
        rows.append((name, mean, half, float(episodes.death.sum(1).mean()), float(episodes.gold.sum(1).mean())))
    return Table(("player", "return", "± 95 %", "deaths", "gold"), tuple(rows))


def finished(cfg: AgentConfig, net: AgentNet, head: PolicyHead, *, greedy: bool) -> Episodes:
    """Episodes to their end."""
    playing = play(
        net, head, greedy=greedy, episodes=EPISODES, frames=cfg.played.frames, seed=TEST_SEED,
        noise=cfg.imagination.noise,
    )  # fmt: skip
    while True:
        try:
            next(playing)
        except StopIteration as stop:
            episodes: Episodes = stop.value
            return episodes
