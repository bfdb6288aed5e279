"""Stages: what is on, what is frozen, when one ends, and what starts anew."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from engines.basics.errors import DataError, UserError
from engines.basics.line_writer import append_line
from engines.contract import commands as cmd
from engines.contract.settings import Training
from engines.contract.spec import Head
from engines.contract.steps import read_series
from engines.training.order import ShuffledOrder, step_generator
from engines.training.stages import StagePlan, Switches
from tests.engines.toy import ToyProject, ToyRun


def epochs_of(toy: ToyRun) -> list[dict[str, Any]]:
    lines = map(msgspec.json.decode, toy.run.events.read_bytes().splitlines())
    return [event for event in lines if event["type"] == "epoch"]


def test_a_frozen_part_keeps_every_bit_and_an_absent_head_has_no_loss(tmp_path: Path) -> None:
    stages = [
        {"name": "readout", "epochs": 1, "heads": ["all"], "frozen": ["0.*"]},
        {"name": "both", "epochs": 1},
    ]
    toy = ToyRun(tmp_path, epochs=2, stages=stages)
    first = {name: value.clone() for name, value in toy.model.state_dict().items()}
    seen: list[dict[str, torch.Tensor]] = []
    save = toy.trainer.checkpoints.save_in_background

    def noting(**kwargs: Any) -> None:
        seen.append({name: value.clone() for name, value in toy.model.state_dict().items()})
        save(**kwargs)

    toy.trainer.checkpoints.save_in_background = noting  # type: ignore[method-assign]
    assert toy.train() == "finished"
    after_readout, after_both = seen
    assert all(torch.equal(after_readout[name], first[name]) for name in ("0.weight", "0.bias"))
    assert not torch.equal(after_readout["3.weight"][0], first["3.weight"][0])
    assert not torch.equal(after_both["0.weight"], first["0.weight"])
    rows = epochs_of(toy)
    assert [row["stage"] for row in rows] == ["readout", "both"]
    assert rows[0]["train"]["rare"] is None
    assert rows[1]["train"]["rare"] is not None
    steps, rare = read_series(toy.run.steps, "rare")
    assert 8 <= min(steps) < max(steps) < 16  # none in the first stage, where NaN would look like a loss gone bad
    assert np.isfinite(rare).all()


def test_patience_ends_a_stage_and_the_last_stage_ends_the_run(tmp_path: Path) -> None:
    class Stuck(ToyProject):
        forced_score = 1.0

    stages = [{"name": "one", "epochs": 5, "patience": 1}, {"name": "two", "patience": 2}]
    toy = ToyRun(tmp_path, Stuck(), epochs=20, stages=stages)
    assert toy.train() == "early-stopped"
    assert [(row["stage"], row["best"]) for row in epochs_of(toy)] == [
        ("one", True), ("one", False), ("two", True), ("two", False), ("two", False),
    ]  # fmt: skip


def test_the_schedule_starts_again_or_goes_on(tmp_path: Path) -> None:
    rates = {}
    for restart in (True, False):
        stages = [{"name": "a", "epochs": 2}, {"name": "b", "lr": 1e-3, "restart_schedule": restart}]
        toy = ToyRun(tmp_path / str(restart), epochs=4, stages=stages)
        toy.train()
        rates[restart] = read_series(toy.run.steps, "lr")[1]
    assert len(rates[True]) == 32
    assert rates[True][16] == pytest.approx(1e-3 / 8)  # warm-up again, to the stage's own peak
    assert rates[True][23] == pytest.approx(1e-3)
    assert (np.diff(rates[False][8:]) <= 0).all()  # one cosine over both stages


def test_an_unknown_head_in_a_stage_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"stage 'a': there is no head 'raer' \(did you mean 'rare'\?\)"):
        ToyRun(tmp_path, stages=[{"name": "a", "heads": ["raer"]}])


def test_parts_of_a_head_are_on_or_off_by_themselves() -> None:
    heads = [
        Head(name="keys", title="", parts=("a", "b", "c"), parameters="keys.*"),
        Head(name="look", title="", parameters="look.*"),
        Head(name="idle", title=""),
    ]
    stages = [
        {"name": "one", "epochs": 1, "heads": ["idle", "keys.c", "keys.a"], "frozen": ["body.*"]},
        {"name": "whole", "epochs": 1, "heads": ["keys", "keys.b"]},
        {"name": "rest"},
    ]
    one, whole, rest = StagePlan(Training.model_validate({"stages": stages}), heads).switches
    assert one.heads == {"keys", "idle"}
    assert one.parts == {"keys": {"a", "c"}}
    assert one.frozen == ("body.*", "look.*")
    assert whole == Switches(heads=frozenset({"keys"}), parts={}, frozen=("look.*",))
    assert rest == Switches(heads=frozenset({"keys", "look", "idle"}), parts={}, frozen=())
    sentence = (
        r"stage 'x': there is no head 'keys.d' \(did you mean 'keys\.[abc]'\?\); the heads are keys, look, idle; "
        r"a part of keys is named as in keys\.a\."
    )
    with pytest.raises(UserError, match=sentence):
        StagePlan(Training.model_validate({"stages": [{"name": "x", "heads": ["keys.d"]}]}), heads)
    with pytest.raises(ValueError, match="at least 1 item"):
        Training.model_validate({"stages": [{"name": "x", "heads": []}]})


@pytest.mark.parametrize(
    ("frozen", "sentence"),
    [
        (
            ["0.*", "encodr.*"],
            r"stage 'late': frozen: no parameter matches 'encodr\.\*'; their names begin with 0, 3, as",
        ),
        (["*"], r"stage 'late': every parameter is frozen, so nothing would be trained"),
    ],
)
def test_what_a_later_stage_freezes_is_checked_before_the_first_step(
    tmp_path: Path, frozen: list[str], sentence: str
) -> None:
    stages = [{"name": "first", "epochs": 1}, {"name": "late", "frozen": frozen}]
    with pytest.raises(UserError, match=sentence):
        ToyRun(tmp_path, stages=stages)


def test_a_part_that_goes_off_after_it_was_trained_does_not_move(tmp_path: Path) -> None:
    """Neither by the optimizer's momentum nor by weight decay."""
    stages = [{"name": "both", "epochs": 1}, {"name": "readout", "epochs": 1, "frozen": ["0.*"]}]
    toy = ToyRun(tmp_path, epochs=2, stages=stages, weight_decay=0.1)
    weight, weights = toy.model.get_parameter("0.weight"), list[torch.Tensor]()
    enter = toy.trainer._enter_stage

    def noting() -> None:
        weights.append(weight.detach().clone())
        enter()

    toy.trainer._enter_stage = noting  # type: ignore[method-assign]
    first = weight.detach().clone()
    assert toy.train() == "finished"
    assert not torch.equal(weights[0], first)
    assert torch.equal(weight, weights[0])
    assert weight.grad is None


def test_patience_that_runs_out_with_the_last_epoch_ends_nothing_early(tmp_path: Path) -> None:
    class Stuck(ToyProject):
        forced_score = 1.0

    assert ToyRun(tmp_path / "3", Stuck(), epochs=3, patience=2).train() == "finished"
    assert ToyRun(tmp_path / "4", Stuck(), epochs=4, patience=2).train() == "early-stopped"


def test_a_stop_that_is_wanted_early_lets_the_first_epoch_be(tmp_path: Path) -> None:
    """Else there would be nothing to evaluate, keep and export."""
    toy = ToyRun(tmp_path)
    append_line(toy.run.commands, cmd.encode(cmd.StopEarly(attempt=1)))
    assert toy.train() == "early-stopped"
    assert len(epochs_of(toy)) == 1


def test_the_schedule_of_a_stage_that_is_longer_than_the_run_ends_with_the_run(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=2, stages=[{"name": "long", "epochs": 5}, {"name": "never"}])
    toy.train()
    rates = read_series(toy.run.steps, "lr")[1]
    assert rates[15] == pytest.approx(1e-6 + (1e-2 - 1e-6) * (1 + math.cos(math.pi * 7 / 8)) / 2)


def test_an_epochs_losses_and_rate_are_those_of_its_own_steps(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, epochs=3)
    toy.train()
    _, losses = read_series(toy.run.steps, "all")
    _, rates = read_series(toy.run.steps, "lr")
    for number, row in enumerate(epochs_of(toy)):
        train = row["train"]
        assert train["all"] == pytest.approx(losses[8 * number : 8 * number + 8].mean(), rel=1e-6)
        assert train["loss"] == pytest.approx(train["all"] + 0.5 * train["rare"], rel=1e-6)
        assert row["lr"] == rates[8 * number + 7]


def test_validation_losses_are_those_of_all_its_batches_together(tmp_path: Path) -> None:
    """Of 64 samples, in batches of 20: a mean of the batches' means, or the last one alone, would be another number."""
    toy = ToyRun(tmp_path, epochs=1, batch_size=5)
    toy.train()
    model, source = toy.model.eval(), toy.data.validation
    with torch.inference_mode():
        whole = source.batch(torch.arange(64), None)
        squared = (model(whole["x"]) - whole["y"]).square()
    expected = {"all": float(squared[:, 0].mean()), "rare": float(squared[whole["rare"], 1].mean())}
    [row] = epochs_of(toy)
    found = row["validation"]
    assert {head: found[head] for head in expected} == pytest.approx(expected, rel=1e-5)
    assert found["loss"] == pytest.approx(expected["all"] + 0.5 * expected["rare"], rel=1e-5)


def test_a_stage_may_forget_the_optimizers_moments(tmp_path: Path) -> None:
    for restart, steps in ((True, 8), (False, 16)):
        stages = [{"name": "a", "epochs": 1}, {"name": "b", "restart_optimizer": restart}]
        toy = ToyRun(tmp_path / str(restart), epochs=2, stages=stages)
        toy.train()
        assert {int(moments["step"]) for moments in toy.trainer.step.optimizer.state.values()} == {steps}


def test_the_events_say_when_a_stage_begins(tmp_path: Path) -> None:
    stages = [{"name": "readout", "epochs": 1}, {"name": "rare too", "epochs": 1, "heads": ["rare"]}]
    toy = ToyRun(tmp_path, epochs=2, stages=stages)
    toy.train()
    lines = map(msgspec.json.decode, toy.run.events.read_bytes().splitlines())
    assert [(event["step"], event["text"]) for event in lines if event["type"] == "alert"] == [
        (8, "stage rare too begins: rare")
    ]


def test_a_stage_without_samples_is_named_before_the_first_step(tmp_path: Path) -> None:
    class Filtering(ToyProject):
        def select(self, cfg: Any, data: Any, data_filter: str) -> np.ndarray:
            return np.arange(0)

    stages = [{"name": "all", "epochs": 1}, {"name": "some", "data": "never"}]
    with pytest.raises(DataError, match="data filter 'never' of stage 'some' leaves no training samples"):
        ToyRun(tmp_path, Filtering(), stages=stages)


def test_a_live_patience_holds_for_a_stage_with_its_own_too(tmp_path: Path) -> None:
    class Stuck(ToyProject):
        forced_score = 1.0

    toy = ToyRun(tmp_path, Stuck(), epochs=9, stages=[{"name": "one", "patience": 5}])
    append_line(toy.run.commands, cmd.encode(cmd.SetPatience(attempt=1, at_step=9, patience=2)))
    assert toy.train() == "early-stopped"
    assert len(epochs_of(toy)) == 3


def test_every_epoch_is_a_permutation_of_its_own() -> None:
    order = ShuffledOrder(np.arange(100, 140), batch_size=8, seed=3)
    assert order.steps_per_pass == 5
    epochs = [torch.cat([order.indices(epoch, step) for step in range(5)]).tolist() for epoch in (0, 1)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(100, 140))] * 2
    assert epochs[0] != epochs[1]
    again = ShuffledOrder(np.arange(100, 140), batch_size=8, seed=3)
    assert again.indices(1, 4).tolist() == epochs[1][32:]  # a position needs nothing that came before it
    longer = torch.cat([order.indices(0, step) for step in range(10)]).tolist()
    assert sorted(longer[40:]) == list(range(100, 140))
    assert longer[40:] != longer[:40]


def test_what_does_not_fill_a_batch_waits_for_another_epoch() -> None:
    assert ShuffledOrder(np.arange(47), batch_size=8, seed=3).steps_per_pass == 5


def test_the_order_and_the_noise_of_a_step_are_drawn_apart() -> None:
    order = ShuffledOrder(np.arange(40), batch_size=40, seed=3).indices(0, 0)
    assert order.tolist() != step_generator(3, 0, 0).permutation(np.arange(40)).tolist()


def test_fewer_samples_than_a_batch_are_one_batch() -> None:
    order = ShuffledOrder(np.arange(5), batch_size=8, seed=3)
    assert order.steps_per_pass == 1
    assert sorted(order.indices(0, 0).tolist()) == [0, 1, 2, 3, 4]
