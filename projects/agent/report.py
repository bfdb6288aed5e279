"""The tables of a finished run: predictions beside baselines and ceilings, dreams beside the truth, played episodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from engines.training.comparison import comparison
from engines.training.project import Cell, Table
from projects.agent.baselines import CEILING, baselines, ceiling
from projects.agent.config import AgentConfig
from projects.agent.demo.arena import Arena
from projects.agent.demo.expert import CAREFUL, EXPERT, Expert, Habits
from projects.agent.evaluation import AgentResult, Fixed
from projects.agent.heads import PolicyHead
from projects.agent.imagine import continued
from projects.agent.layout import DEATH_REWARD, GOLD_REWARD
from projects.agent.losses import actions
from projects.agent.net import AgentNet, dreaming
from projects.agent.playing import play
from projects.agent.predictions import Predictions
from projects.agent.scores import interval
from projects.agent.windows import Windows

TEST_SEED = 20_000
"""Of the episodes that a report plays: no checkpoint was chosen by them."""
EPISODES = 100
DREAMED = 64
"""Windows that are dreamed under their true actions."""
OURS = ("this run, sampled", "this run, greedy")
PRIOR = ("prior, sampled", "prior, greedy")
SCRIPTED = {"expert": EXPERT, "careful expert": CAREFUL}
PLAYERS = (*OURS, *PRIOR, *SCRIPTED)
"""Who plays the episodes of a report."""
SHOWN = {
    "movement": "movement_accuracy", "movement changes": "change_accuracy", "abilities": "ability_accuracy",
    "frames with a press": "press_accuracy",
}  # fmt: skip


def report_tables(
    cfg: AgentConfig,
    train: Windows,
    seen: Fixed,
    net: AgentNet,
    result: AgentResult,
    *,
    arena: bool,
    progress: Callable[[float, float, str], None],
) -> dict[str, Table]:
    """What a run has learned; in the arena also what it plays. `progress` hears how many parts are done."""
    total = 1 + (result.seen is not None) * (1 + arena)
    progress(0, total, "parts")
    tables = {"Dreams": dreams_table(cfg, seen, net), "Reward bins": bins_table(net, train)}
    if result.seen is not None:
        print("report: baselines", flush=True)
        progress(1, total, "parts")
        guesses = baselines(train, seen.windows, seen.numbers, net.reward.offsets)
        if (known := ceiling(Path(cfg.data.path), seen.windows, seen.numbers, net.reward.offsets)) is not None:
            guesses[CEILING] = known
        chances = {name: guess.chance for name, guess in guesses.items() if guess.chance is not None}
        tables["Rewards"] = rewards_table(result.seen, chances)
        said = {name: result.seen.right(guess.movement, guess.abilities) for name, guess in guesses.items()}
        tables["Actions"] = actions_table(result, said)
    if arena and result.seen is not None:
        print("report: episodes", flush=True)
        progress(2, total, "parts")
        tables["Played"] = played_table(cfg, net)
    return tables


def actions_table(result: AgentResult, said: dict[str, dict[str, float | None]]) -> Table:
    """The next action, beside what others say of it; the simulator's odds are the ceiling."""

    def row(values: dict[str, float | None]) -> dict[str, float | None]:
        return {title: values.get(key) for title, key in SHOWN.items()}

    bounds = {CEILING: row(said.pop(CEILING))} if CEILING in said else None
    others = {name: row(values) for name, values in said.items()}
    note = (
        f"Teacher-forced. Self-fed, on its own past actions: movement {_shown(result, 'movement_self_fed')}, "
        f"abilities {_shown(result, 'ability_self_fed')}."
    )
    return comparison(row(dict(result.values)), others, dict.fromkeys(SHOWN, 1.0), bounds=bounds, note=note)


def _shown(result: AgentResult, name: str) -> str:
    value = result.values.get(name)
    return "not known" if value is None else f"{value:.3f}"


def rewards_table(seen: Predictions, chances: dict[str, NDArray[np.float64]]) -> Table:
    """Rewards by how many frames ahead they are."""
    rows: list[tuple[Cell, ...]] = []
    for offset in range(seen.chance.shape[-1]):
        counted = seen.counted[..., offset]
        event = seen.event[..., offset] & counted
        died = event & (seen.came[..., offset] < DEATH_REWARD / 2)
        others = (seen.auc(chance, offset) for chance in chances.values())
        rows.append(
            (offset, seen.auc(seen.chance, offset), *others, seen.r2(offset), int(event.sum()), int(died.sum()))
        )
    columns = ("frames ahead", "AUC, this run", *(f"AUC, {name}" for name in chances), "R²", "events", "deaths")
    note = (
        "0 is the transition that ended in the frame. An event is a gold step of 10 or more, or a death. The "
        "simulator's odds are of 32 futures that it played from each frame, and what happened at 0."
    )
    return Table(columns, tuple(rows), note)


@torch.inference_mode()
def dreams_table(cfg: AgentConfig, seen: Fixed, net: AgentNet) -> Table:
    """The error of dreamed frames under the true actions, beside that of a world in which nothing moves."""
    numbers = np.unique(np.linspace(0, len(seen) - 1, min(DREAMED, len(seen))).round().astype(np.int64))
    batch = seen.batch(torch.from_numpy(numbers), None)
    latents, context = batch["latents"], min(cfg.imagination.context, seen.windows.frames - 1)
    dreamed, _ = continued(net.dynamics, latents, actions(batch), batch["present"], context, dreaming(cfg, TEST_SEED))
    truth, there = latents[:, context:], batch["present"][:, context:]
    rows: list[tuple[Cell, ...]] = []
    for k in range(truth.shape[1]):
        errors = [
            float((said - truth[:, k]).square().mean((1, 2, 3))[there[:, k]].mean().sqrt())
            for said in (dreamed[:, k], latents[:, context - 1])
        ]
        rows.append((k + 1, *errors))
    note = f"Root mean square in deviations of the latents, {len(numbers)} windows, {context} true frames before."
    return Table(("frames dreamed", "dream", "nothing moves"), tuple(rows), note)


def bins_table(net: AgentNet, train: Windows) -> Table:
    """How the rewards of the training games use the bins of the reward head."""
    rewards = np.concatenate([game.rewards.reward[game.rewards.known] for game in train.recordings])
    twohot = net.reward.twohot
    values = torch.from_numpy(rewards).to(twohot.centres.device)
    used = twohot.used(values)
    lowest, highest = (float(twohot.mean(_certain(twohot.centres, place))) for place in (0, -1))
    outside = float(((values < lowest) | (values > highest)).float().mean())
    rows: tuple[tuple[Cell, ...], ...] = (
        ("bins", len(twohot.centres)), ("bins with a reward", int((used > 0).sum())),
        ("lowest bin", lowest), ("highest bin", highest), ("least reward", float(rewards.min())),
        ("largest reward", float(rewards.max())), ("share of rewards outside", outside),
    )  # fmt: skip
    return Table(("reward bins", "amount"), rows, "model.reward_range sets the ends: symexp of it.")


def _certain(centres: torch.Tensor, place: int) -> torch.Tensor:
    """Logits that leave no doubt of one bin."""
    logits = torch.full_like(centres, -1e4)
    logits[place] = 1e4
    return logits


def played_table(cfg: AgentConfig, net: AgentNet) -> Table:
    """The policy and the cloned one, sampled and greedy, and scripted players, all on the same fresh episodes."""
    players: dict[str, tuple[NDArray[np.float64], NDArray[np.bool_]]] = {}
    for names, head in ((OURS, net.policy), (PRIOR, net.prior)):
        for name, greedy in zip(names, (False, True), strict=True):
            players[name] = _played(cfg, net, head, greedy=greedy)
    players |= {name: _scripted(cfg, habits) for name, habits in SCRIPTED.items()}
    rows: list[tuple[Cell, ...]] = []
    ours = _returns(*players[OURS[0]])
    for name, (gold, death) in players.items():
        returns = _returns(gold, death)
        mean, half = interval(returns)
        gain, doubt = interval(ours - returns)
        rows.append((name, mean, half, gain, doubt, float(death.sum(1).mean()), float(gold.sum(1).mean())))
    columns = ("player", "return", "± 95 %", "this run, sampled, less it", "± 95 %, paired", "deaths", "gold")
    note = (
        f"{EPISODES} episodes of {cfg.played.frames} frames, the same for all, none of which chose a checkpoint. The "
        "prior is the policy before it learned in dreams; before that stage it is not trained. The expert made the "
        "recordings; the careful one never overlooks the hunter."
    )
    return Table(columns, tuple(rows), note)


def _returns(gold: NDArray[np.float64], death: NDArray[np.bool_]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = GOLD_REWARD * gold.sum(1) + DEATH_REWARD * death.sum(1)
    return found


def _played(
    cfg: AgentConfig, net: AgentNet, head: PolicyHead, *, greedy: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Gold and deaths (episodes, frames) of a policy."""
    playing = play(
        net, head, greedy=greedy, episodes=EPISODES, frames=cfg.played.frames, seed=TEST_SEED,
        noise=cfg.imagination.noise,
    )  # fmt: skip
    while True:
        try:
            next(playing)
        except StopIteration as stop:
            return stop.value.gold, stop.value.death


def _scripted(cfg: AgentConfig, habits: Habits) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Gold and deaths (episodes, frames) of a scripted player."""
    arena, player = Arena(), Expert(EPISODES, habits, np.random.default_rng(TEST_SEED))
    arena.reset(EPISODES, TEST_SEED)
    frames = [arena.step(*player.act(arena.state)) for _ in range(cfg.played.frames)]
    gold, death = (np.stack(part, axis=1) for part in zip(*frames, strict=True))
    return gold, death
