"""What a project may ask of the loop beyond losses: parts without gradients, a step of its own, rates of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engines.basics.errors import UserError
from engines.contract import commands as cmd
from engines.contract import spec as specs
from engines.contract.config import load_config
from engines.runs.saved import read_saved
from engines.training import checkpoint, engine
from engines.training.project import Batch, Context, Loss, Project, Split
from tests.engines.toy import ToyConfig, ToyProject, ToyRun, ToySource, send


class Student(nn.Module):
    """A network, and a teacher that is to be the mean of all the weights the network has had behind a step."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))
        self.teacher = copy.deepcopy(self.net).requires_grad_(False)

    def forward(self, x: Tensor) -> Any:
        return self.net(x)


class Taught(ToyProject):
    def __init__(self) -> None:
        super().__init__()
        self.stepped: list[int] = []
        self.progress: list[float] = []
        self.weights: list[Tensor] = []

    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        return Student()

    def after_step(self, model: nn.Module, ctx: Context) -> None:
        assert isinstance(model, Student)
        self.stepped.append(ctx.step)
        self.progress.append(ctx.progress)
        self.weights.append(model.get_parameter("net.0.weight").detach().clone())
        for kept, now in zip(model.teacher.parameters(), model.net.parameters(), strict=True):
            kept.lerp_(now, 1 / (ctx.step + 1))


def teacher(toy: ToyRun) -> Tensor:
    return toy.model.get_parameter("teacher.0.weight")


def test_a_teacher_follows_every_step_and_nothing_else(tmp_path: Path) -> None:
    project = Taught()
    toy = ToyRun(tmp_path, project, epochs=2, micro_batches=2)
    send(toy, cmd.MeasureGradients(attempt=1, at_step=3), cmd.Evaluate(attempt=1, at_step=5))
    assert toy.train() == "finished"
    assert project.stepped == list(range(16)), "neither evaluations nor measurements are steps"
    assert project.progress == [step / 16 for step in range(16)]
    torch.testing.assert_close(teacher(toy), torch.stack(project.weights).mean(0))
    assert not teacher(toy).requires_grad


def test_a_resumed_teacher_ends_where_an_uninterrupted_one_does(tmp_path: Path) -> None:
    straight, stopped = ToyRun(tmp_path / "straight", Taught()), ToyRun(tmp_path / "stopped", Taught())
    straight.train()
    send(stopped, cmd.Stop(attempt=1, at_step=11))
    assert stopped.train() == "stopped"
    again = ToyRun(tmp_path / "stopped", Taught(), attempt=2)
    engine.resume(again.run, again.trainer)
    with again.listener:
        assert again.trainer.train() == "finished"
    assert torch.equal(teacher(again), teacher(straight))


def test_what_a_model_was_made_without_a_gradient_stays_so_in_every_stage(tmp_path: Path) -> None:
    class Pretrained(ToyProject):
        def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
            model = super().model(cfg, data)
            model.get_submodule("0").requires_grad_(False)
            return model

    stages = [{"name": "readout", "epochs": 1, "frozen": ["3.bias"]}, {"name": "all", "epochs": 1}]
    toy = ToyRun(tmp_path, Pretrained(), epochs=2, stages=stages, weight_decay=0.5)
    before = {name: value.clone() for name, value in toy.model.state_dict().items()}
    assert toy.train() == "finished"
    moved = [name for name, value in toy.model.state_dict().items() if not torch.equal(value, before[name])]
    assert moved == ["3.weight", "3.bias"]


def test_only_matrices_that_are_no_embeddings_decay() -> None:
    model = nn.ModuleDict({"words": nn.Embedding(7, 3), "norm": nn.LayerNorm(3), "out": nn.Linear(3, 2)})
    decayed, plain = ToyProject().param_groups(model, 0.1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert [names[id(parameter)] for parameter in decayed["params"]] == ["out.weight"]
    assert {names[id(p)] for p in plain["params"]} == {"words.weight", "norm.weight", "norm.bias", "out.bias"}
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.1, 0.0)


class Fast(ToyProject):
    scale = 4.0

    def param_groups(self, model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
        first, last = (list(model.get_submodule(name).parameters()) for name in ("0", "3"))
        return [{"params": first, "lr_scale": self.scale, "weight_decay": 0.0}, {"params": last, "weight_decay": 0.0}]


def test_a_group_has_a_rate_of_its_own_which_a_checkpoint_does_not_settle(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Fast(), epochs=1)
    before = {name: value.detach().clone() for name, value in toy.model.named_parameters()}
    batch = toy.data.train.batch(torch.arange(32), None)
    toy.trainer.step(batch, toy.trainer.schedule.context(), 1e-3)
    # Adam's first step is as long as the rate for every weight that has a gradient
    for name, rate in (("0.weight", 4e-3), ("3.weight", 1e-3)):
        moved = (toy.model.get_parameter(name).detach() - before[name]).abs()
        assert float(moved.median()) == pytest.approx(rate, rel=1e-2)
    toy.trainer.checkpoints.save()
    other = Fast()
    other.scale = 0.5
    again = ToyRun(tmp_path, other, attempt=2)
    engine.resume(again.run, again.trainer)
    assert [group.get("lr_scale") for group in again.trainer.step.optimizer.param_groups] == [0.5, None]


def test_a_head_without_a_loss_is_named(tmp_path: Path) -> None:
    class Forgetful(ToyProject):
        def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
            return {"all": super().losses(model, batch, ctx)["all"]}

    with pytest.raises(LookupError, match="no loss for rare, expected one per head that is on"):
        ToyRun(tmp_path, Forgetful()).train()


def test_heads_and_loss_weights_of_other_names_are_told_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = specs.find("controls")
    monkeypatch.setattr(specs, "find", lambda name: specs.Spec(**{**vars(spec), "heads": spec.heads[:-1]}))
    (tmp_path / "c.yaml").write_text("project: controls\ndata:\n  path: recordings\n")
    sentence = (
        "has the heads action, look, hotbar, cursor, inv in its spec and the loss weights action, .*, idle in its"
    )
    with pytest.raises(UserError, match=sentence):
        load_config(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("training", "sentence"),
    [
        ({"micro_batches": 2}, r"^training\.micro_batches: Plain has no counts\(\), and trains with 1 only\.$"),
        ({"stages": [{"name": "a", "data": "x"}]}, r"^training\.stages: Plain has no data filters, got 'x'\.$"),
    ],
)
def test_a_setting_that_the_project_has_no_answer_to_is_a_sentence(
    tmp_path: Path, training: dict[str, Any], sentence: str
) -> None:
    class Plain(ToyProject):
        """With the defaults of `Project`."""

        counts = Project.counts

    with pytest.raises(UserError, match=sentence):
        ToyRun(tmp_path, Plain(), **training).train()


class Annealed(ToyProject):
    """Its batches get noisier with the run, and its checkpoints say what they need."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Context, Context]] = []
        self.gathered: Context | None = None

    def data(self, cfg: ToyConfig, device: torch.device) -> Split:
        project, split = self, super().data(cfg, device)

        class Hardening(ToySource):
            def batch(self, indices: Tensor, rng: Any, ctx: Context | None = None) -> Batch:
                project.gathered = ctx
                return super().batch(indices, rng, ctx)

        return Split(Hardening(256, 1), Hardening(64, 2), split.summary)

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        assert self.gathered is not None
        self.seen.append((self.gathered, ctx))
        return super().losses(model, batch, ctx)

    def metadata(self, cfg: ToyConfig, data: Split) -> Mapping[str, Any]:
        return {"actions": ("jump", "sneak"), "samples": len(data.train), "lr": cfg.training.lr}


def test_a_batch_is_gathered_with_the_context_of_its_losses_and_the_settings(tmp_path: Path) -> None:
    project = Annealed()
    toy = ToyRun(tmp_path, project, epochs=2)
    send(toy, cmd.MeasureGradients(attempt=1, at_step=3))
    assert toy.train() == "finished"
    assert len(project.seen) == 2 * 8 + 1 + 2
    assert all(gathered is judged for gathered, judged in project.seen)
    assert all(ctx.cfg is toy.settings for _, ctx in project.seen)
    steps = [ctx.step for _, ctx in project.seen]
    assert steps == [0, 1, 2, 3, *range(3, 8), 8, *range(8, 16), 16]


def test_a_checkpoint_says_what_the_project_wrote_into_it_without_torch(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Annealed(), epochs=1)
    toy.train()
    expected = {"actions": ["jump", "sneak"], "samples": 256, "lr": 0.01}
    for path in (toy.run.last, toy.run.best):
        assert read_saved(path).metadata == expected
        assert checkpoint.load(path)["metadata"] == expected


def test_metadata_that_is_no_json_is_told_before_the_first_step(tmp_path: Path) -> None:
    class Wrong(ToyProject):
        def metadata(self, cfg: ToyConfig, data: Split) -> Mapping[str, Any]:
            return {"mean": torch.zeros(2)}

    with pytest.raises(UserError, match=r"Wrong\.metadata returned what a checkpoint cannot store"):
        ToyRun(tmp_path, Wrong())


def test_a_trained_model_is_opened_without_its_data(tmp_path: Path) -> None:
    class Built(ToyProject):
        def build(self, cfg: ToyConfig) -> nn.Module:
            return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))

        model = Project.model

    toy = ToyRun(tmp_path, Built(), epochs=1)
    toy.train()
    project = Built()
    model = project.build(toy.settings)
    project.load_trainable_state(model, checkpoint.load(toy.run.last)["model"])
    assert all(map(torch.equal, model.state_dict().values(), toy.model.state_dict().values()))
    with pytest.raises(UserError, match=r"ToyProject has no build\(\), so its models cannot be opened without their"):
        ToyProject().build(toy.settings)
