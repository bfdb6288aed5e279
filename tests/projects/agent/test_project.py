"""The project as the engine uses it: draws, halves, rates by stage and part, losses of dreams, faults in sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cockpit.core.table.table import TableText
from engines.contract.spec import Column
from engines.training.samples import Ranges
from engines.training.step import scale_in
from projects.agent.config import AgentConfig
from projects.agent.dynamics import Actions
from projects.agent.evaluation import AgentEvaluation, AgentResult
from projects.agent.imagine import Dream
from projects.agent.layout import NONE
from projects.agent.losses import agent_losses, dreamed_losses, recorded_losses
from projects.agent.net import AgentNet
from projects.agent.playing import is_arena, play
from projects.agent.project import part_of
from projects.agent.spec import SPEC
from tests.projects.agent.recorded import features_of, latents_of, write_game
from tests.projects.agent.runs import config, context, games, opened

RECORDED = ("dynamics", "reward", "bc")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return games(tmp_path_factory.mktemp("arena") / "games")


def test_the_narrow_table_fits_80_columns() -> None:
    """With the stage that the engine puts after the epoch."""
    narrow = [column for column in SPEC.columns if not column.wide]
    narrow.insert(1, Column("Stage", "stage", "5s"))
    assert TableText(narrow, epochs=99).width <= 80


def test_b8_epochs_count_draws_and_half_of_them_come_from_windows_with_an_event(data: Path) -> None:
    cfg = config(data)
    project, split, _ = opened(cfg)
    windows = project.train
    order = project.order(cfg, split, Ranges.of(range(len(windows))))
    drawn = torch.cat([order.indices(epoch, step) for epoch in range(60) for step in range(order.steps_per_pass)])
    assert order.steps_per_pass == windows.count // cfg.training.batch_size
    assert float((drawn >= windows.count).float().mean()) == pytest.approx(0.5, abs=0.04)
    real = np.isin(drawn.numpy(), windows.relevant) | (drawn.numpy() >= windows.count)
    share = len(windows.relevant) / windows.count
    assert real.mean() == pytest.approx(0.5 + 0.5 * share, abs=0.04)
    assert split.summary["drawn_with_event"].startswith(f"{0.5 + 0.5 * share:.3f}")


def test_b8_dynamics_learn_from_one_half_and_cloning_from_the_other(data: Path) -> None:
    """What one half does not teach cannot move its loss; with `masked_halves` off both halves teach both."""
    cfg = config(data)
    _, split, net = opened(cfg)
    batch = split.train.batch(torch.arange(6), None)
    batch["relevant"] = torch.tensor([True, True, True, False, False, False])
    drawn, events = ~batch["relevant"], batch["relevant"]

    def losses(rows: Tensor, **objective: Any) -> dict[str, float]:
        changed = {**batch, "latents": batch["latents"].clone(), "movement": batch["movement"].clone()}
        changed["latents"][rows] += 1.0
        changed["movement"][rows] = (changed["movement"][rows] + 5) % 19
        torch.manual_seed(0)
        alone = {"independent": 0.0, "shortcut_share": 0.0, **objective}
        other = config(data, objective=alone, imagination={"steps": 4})
        with torch.no_grad():
            found = recorded_losses(net, changed, other, RECORDED)
        return {name: float(loss.total / loss.count) for name, loss in found.items()}

    none = torch.zeros(6, dtype=torch.bool)
    before = losses(none)
    assert losses(events)["dynamics"] == pytest.approx(before["dynamics"], rel=1e-5)
    assert losses(drawn)["bc"] == pytest.approx(before["bc"], rel=1e-5)
    assert losses(drawn)["dynamics"] != pytest.approx(before["dynamics"], rel=1e-3)
    assert losses(events)["bc"] != pytest.approx(before["bc"], rel=1e-5)
    whole = losses(none, masked_halves=False)
    assert losses(events, masked_halves=False)["dynamics"] != pytest.approx(whole["dynamics"], rel=1e-3)


class Asked(Exception):
    """Ends a loss where the transformer is asked."""


@pytest.mark.parametrize("halves", [True, False])
def test_b11_examples_are_drawn_each_by_itself_and_actions_frame_by_frame(
    data: Path, monkeypatch: pytest.MonkeyPatch, halves: bool
) -> None:
    """30 % of the examples that teach dynamics, not of the batches; as many actions hidden as history_dropout says."""
    cfg = config(data, objective={"independent": 0.3, "history_dropout": 0.15, "masked_halves": halves})
    _, split, net = opened(cfg)
    batch = split.train.batch(torch.arange(6), None)
    batch["relevant"] = torch.tensor([False, True] * 3)
    batch["acted"][:, 4] = False
    alone, hidden = [], []

    def asked(dynamics: Any, latents: Tensor, acts: Actions, *given: Any, independent: Tensor, **more: Any) -> Any:
        alone.append(independent)
        hidden.append(~acts.known)
        raise Asked

    monkeypatch.setattr("projects.agent.losses.shortcut_loss", asked)
    torch.manual_seed(0)
    for _ in range(600):
        with pytest.raises(Asked):
            recorded_losses(net, batch, cfg, RECORDED)
    rows, frames = torch.stack(alone).float(), torch.stack(hidden).float()
    expected = [0.3, 0.0 if halves else 0.3] * 3
    assert rows.mean(0).tolist() == pytest.approx(expected, abs=0.06)
    mixed = (rows.amax(1) > rows.amin(1)).float().mean()
    teach = 3 if halves else 6
    assert float(mixed) == pytest.approx(1 - 0.7**teach - (0 if halves else 0.3**teach), abs=0.06)
    shares = frames.mean((0, 1)).tolist()
    assert shares.pop(4) == 1
    assert shares == pytest.approx([0.15] * 9, abs=0.03)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_some_frames_are_as_clear_as_what_dreams_look_back_at(
    data: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """Of rows that teach dynamics a share, frame by frame; of the others all."""
    cfg = config(data, objective={"looked_back": share})
    _, split, net = opened(cfg)
    batch = split.train.batch(torch.arange(6), None)
    batch["relevant"] = torch.tensor([False, True] * 3)
    clear = []

    def asked(dynamics: Any, latents: Tensor, acts: Actions, *given: Any, steady: Tensor, **more: Any) -> Any:
        clear.append(steady)
        raise Asked

    monkeypatch.setattr("projects.agent.losses.shortcut_loss", asked)
    torch.manual_seed(0)
    for _ in range(200):
        with pytest.raises(Asked):
            recorded_losses(net, batch, cfg, RECORDED)
    seen = torch.stack(clear).float()
    assert (seen[:, 1::2] == 1).all()
    assert seen[:, ::2].mean(0).flatten().tolist() == pytest.approx([share] * 30, abs=0.15)


def test_b13_rates_are_by_stage_and_part_and_what_is_no_matrix_does_not_decay(data: Path) -> None:
    cfg = config(data, rates={"agent": {"trunk": 0.1, "heads": 2.0}})
    project, _, net = opened(cfg)
    optimizer = project.optimizer(project.param_groups(net, 0.01), cfg)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    found = {
        names[id(parameter)]: (scale_in("agent", group["lr_scale"]), group["weight_decay"])
        for group in optimizer.param_groups for parameter in group["params"]
    }  # fmt: skip
    assert found.keys() == set(names.values())
    for name, (scale, decay) in found.items():
        part = part_of(name)
        assert part == ("heads" if name.split(".")[0] != "dynamics" else "agent" if ".agent." in name else "trunk")
        assert scale == {"trunk": 0.1, "agent": 1.0, "heads": 2.0}[part]
        module = net.get_submodule(name.rpartition(".")[0])
        matrix = isinstance(module, torch.nn.Linear) and name.endswith("weight")
        assert decay == (0.01 if matrix else 0.0), name
    assert scale_in("world", optimizer.param_groups[0]["lr_scale"]) == 1


def random_dream(net: AgentNet, cfg: AgentConfig) -> Dream:
    count, horizon, width = 4, 3, net.dynamics.width
    return Dream(
        torch.zeros(count, horizon, *net.dynamics.latent),
        torch.randn(count, horizon + 1, width),
        torch.randint(19, (count, horizon)),
        torch.randint(2, (count, horizon, 8)).float(),
        torch.randn(count, horizon),
    )


def test_the_losses_of_dreams_are_the_formulas(data: Path) -> None:
    """Returns, signs and means counted action by action."""
    cfg = config(data, imagination={"discount": 0.8, "lam": 0.7, "alpha": 0.4, "beta": 0.2})
    _, _, net = opened(cfg)
    torch.nn.init.normal_(net.value.readout.last.weight)
    torch.nn.init.normal_(net.policy.readout.last.weight)
    dream = random_dream(net, cfg)
    with torch.no_grad():
        found = dreamed_losses(net, dream, cfg)
        value = net.value.twohot.mean(net.value(dream.agent))
        good: list[float] = []
        bad: list[float] = []
        away: list[float] = []
        entropy: list[float] = []
        loss = 0.0
        for row in range(4):
            after = float(value[row, 3])
            for t in (2, 1, 0):
                after = float(dream.reward[row, t]) + 0.8 * (0.3 * float(value[row, t + 1]) + 0.7 * after)
                policy, prior = (head(dream.agent[row, t]).at(0) for head in (net.policy, net.prior))
                log = float(policy.log_prob(dream.movement[row, t], dream.abilities[row, t]))
                (good if after >= float(value[row, t]) else bad).append(log)
                away.append(float(policy.kl(prior)))
                entropy.append(float(policy.entropy()))
                logits = net.value(dream.agent[row, t])
                loss += float(net.value.twohot.loss(logits, torch.tensor(after)))
    expected = 0.6 * np.mean(bad) - 0.4 * np.mean(good) + 0.2 * np.mean(away)
    assert float(found["policy"].total) == pytest.approx(expected, rel=1e-4)
    assert float(found["value"].total) == pytest.approx(loss, rel=1e-4)
    assert float(found["value"].count) == 12
    means = {name: float(found[name].total / found[name].count) for name in ("kl", "entropy", "gains", "imagined")}
    assert means["kl"] == pytest.approx(np.mean(away), rel=1e-4)
    assert means["entropy"] == pytest.approx(np.mean(entropy), rel=1e-4)
    assert means["gains"] == pytest.approx(len(good) / 12)
    assert means["imagined"] == pytest.approx(float(dream.reward.mean()), abs=1e-6)


def test_dreams_teach_value_and_policy_alone_each_by_its_own_loss(data: Path) -> None:
    cfg = config(data)
    project, split, net = opened(cfg)
    project.begin_stage(net, context(cfg, "value", "policy"))
    for mine, now in zip(net.prior.parameters(), net.policy.parameters(), strict=True):
        assert torch.equal(mine, now)
    batch = split.train.batch(torch.arange(4), None)
    for name, part in (("value", "value"), ("policy", "policy")):
        net.zero_grad()
        losses = agent_losses(net, batch, cfg, ["value", "policy"])
        losses[name].total.backward()  # type: ignore[no-untyped-call]
        reached = {key.split(".")[0] for key, each in net.named_parameters() if each.grad is not None}
        assert reached == {part}


def test_scales_are_ones_over_the_running_rms_and_can_be_turned_off(data: Path) -> None:
    cfg = config(data)
    _, split, net = opened(cfg)
    net.train()
    batch = split.train.batch(torch.arange(6), None)
    batch["relevant"] = torch.arange(6) < 3
    first = agent_losses(net, batch, cfg, RECORDED)
    assert {name: float(loss.scale) for name, loss in first.items() if loss.scale is not None} == {
        "dynamics": 1, "reward": 1, "bc": 1,
    }  # fmt: skip
    second = agent_losses(net, batch, cfg, RECORDED)
    mean = float(first["bc"].total.detach() / first["bc"].count)
    assert second["bc"].scale is not None
    assert float(second["bc"].scale) == pytest.approx(1 / mean, rel=1e-4)
    plain = agent_losses(net, batch, config(data, objective={"normalise": False}), RECORDED)
    assert all(loss.scale is None for loss in plain.values())


def test_an_evaluation_gives_the_same_again_and_moves_no_draw_of_the_training(data: Path) -> None:
    cfg = config(data)
    project, split, net = opened(cfg)
    net.eval()
    torch.manual_seed(5)
    results = []
    with torch.inference_mode():
        for _ in range(2):
            evaluation = project.evaluation(cfg, split)
            assert isinstance(evaluation, AgentEvaluation)
            evaluation.add(net, split.validation.batch(torch.arange(8), None), context(cfg, *RECORDED))
            for _ in evaluation.after(net, context(cfg, *RECORDED)):
                pass
            result = evaluation.result()
            assert isinstance(result, AgentResult)
            results.append(result)
    drawn = torch.rand(1)
    assert results[0].values == results[1].values
    assert results[0].score == results[1].score
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))


def test_the_score_of_phase_2_is_the_weighted_loss_on_validation(data: Path) -> None:
    cfg = config(data, loss_weights={"bc": 2.0})
    project, split, net = opened(cfg)
    net.eval()
    evaluation = project.evaluation(cfg, split)
    ctx = context(cfg, *RECORDED)
    totals: dict[str, list[float]] = {name: [0.0, 0.0] for name in RECORDED}
    with torch.inference_mode():
        for rows in torch.arange(8).split(3):  # type: ignore[no-untyped-call]
            for name, loss in evaluation.add(net, split.validation.batch(rows, None), ctx).items():
                totals[name][0] += float(loss.total)
                totals[name][1] += float(loss.count)
        for _ in evaluation.after(net, ctx):
            pass
        score = evaluation.result().score
    means = {name: total / count for name, (total, count) in totals.items()}
    assert score == pytest.approx(-(means["dynamics"] + means["reward"] + 2 * means["bc"]), rel=1e-5)


def test_played_episodes_are_those_of_the_seed(data: Path) -> None:
    cfg = config(data)
    _, _, net = opened(cfg)
    assert is_arena(data)
    assert not is_arena(data / "features")

    def episodes(seed: int, greedy: bool) -> Any:
        playing = play(net, net.policy, greedy=greedy, episodes=3, frames=25, seed=seed, noise=0.1, keep=True)
        done = []
        while True:
            try:
                done.append(next(playing))
            except StopIteration as stop:
                assert done == [10, 20]
                return stop.value

    one, same, other = episodes(1, False), episodes(1, False), episodes(2, False)
    assert np.array_equal(one.movement, same.movement)
    assert np.array_equal(one.latents, same.latents)
    assert not np.array_equal(one.latents[:, 0], other.latents[:, 0])
    assert np.array_equal(one.latents[:, 0], episodes(1, True).latents[:, 0])
    assert one.returns == pytest.approx(0.01 * one.gold.sum(1) - 10 * one.death.sum(1))


def test_what_a_joint_policy_cannot_say_is_counted(tmp_path: Path) -> None:
    """Of two games one trains; in it 3 frames use two abilities at once, and every fifth has no movement."""
    pressed = np.zeros((60, 8), bool)
    pressed[[7, 8, 30], 1] = pressed[[7, 8, 30], 6] = pressed[40, 2] = True
    movement = np.where(np.arange(60) % 5, 4, NONE).astype(np.int8)
    for name in ("a", "b"):
        write_game(
            tmp_path,
            features_of(range(60), name, abilities=pressed, movement=movement),
            range(60),
            latents_of(range(60)),
        )
    said = {
        joint: opened(config(tmp_path, model={"joint": joint}, data={"validation": ["b"]}))[1].summary.get(
            "joint_actions"
        )
        for joint in ("none", "162", "171")
    }
    both = "3 of 60 frames have several abilities, of which the first is learned"
    assert said == {"none": None, "162": f"{both}; 12 without movement teach nothing", "171": both}
