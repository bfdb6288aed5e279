"""What the reward head says of events, beside the events of recorded games."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from projects.agent.layout import EVENT_GOLD, GOLD_REWARD
from projects.agent.net import AgentNet
from projects.agent.predictions import death_chance, event_bins, event_chance, raw_bins
from projects.agent.rewards import events, rewards
from tests.projects.agent.recorded import features_of
from tests.projects.agent.runs import config, games, opened


def certain(net: AgentNet, reward: np.ndarray) -> None:
    """Make the reward head say `reward: (offsets,)` of every frame, with all weight on the two bins next to it."""
    twohot, last = net.reward.twohot, net.reward.readout.last
    lower, above = twohot.place(torch.from_numpy(reward).float())
    said = torch.zeros(len(reward), len(twohot.centres))
    said[torch.arange(len(reward)), lower] += 1 - above
    said[torch.arange(len(reward)), lower + 1] += above
    torch.nn.init.zeros_(last.weight)
    last.bias.data.copy_(said.clamp(min=1e-12).log().flatten())


@pytest.mark.parametrize("twohot", ["symexp", "symlog"])
def test_a_head_that_is_sure_of_a_reward_is_sure_of_the_event_of_its_frame(tmp_path: Path, twohot: str) -> None:
    """Gold of each frame as a recorded game has it, a death in one of them; 9 to 10 gold share bins with 10."""
    gold = np.array([0, 1.1, 5, 8, 10, 11, 14, 20, 300, 0, 15, *[0.0] * 11])
    bar = np.full((len(gold), 2), 50.0)
    bar[9:] = np.nan  # a death at 9, and gold while it lasts
    found = rewards(features_of(range(len(gold)), gold=gold, bar=bar))
    judged = np.flatnonzero(found.known)
    assert np.flatnonzero(found.death).tolist() == [9]
    net = opened(config(games(tmp_path / "games"), model={"bins": 255, "twohot": twohot}))[2]
    for frames in np.array_split(judged, 2):
        frames = np.resize(frames, net.reward.offsets)
        certain(net, found.reward[frames])
        chance, mean = (part[0].detach().numpy() for part in event_chance(net, torch.randn(1, net.dynamics.width)))
        np.testing.assert_allclose(mean, found.reward[frames], atol=2e-3, rtol=2e-3)
        assert ((chance > 0.5) == found.event[frames]).all(), (gold[frames], chance)
        died = death_chance(net, torch.randn(1, net.dynamics.width)).detach()
        assert (float(died) > 0.5) == found.death[frames[0]]


@pytest.mark.parametrize(("bins", "apart"), [(255, 0.013), (63, 0.05), (15, 0.5)])
def test_bins_are_those_of_events_up_to_half_a_bin(tmp_path: Path, bins: int, apart: float) -> None:
    """Both ends count and nothing around 0, however coarse the bins are."""
    net = opened(config(games(tmp_path / "games"), model={"bins": bins}))[2]
    centres, flags = raw_bins(net), event_bins(net)
    gained = (centres >= 0) & ((centres - GOLD_REWARD * EVENT_GOLD).abs() > apart)
    gold = centres[gained].double().numpy() / GOLD_REWARD
    assert flags[gained].tolist() == events(gold, np.zeros(len(gold), bool)).tolist()
    assert flags[[0, -1]].all()
    assert not flags[(centres > -5) & (centres <= 0)].any()
