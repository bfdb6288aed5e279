"""The parts of a check that can be measured another way."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cockpit.core.launch.check_facts import facts_of
from engines.basics.errors import DataError, UserError
from engines.check import check
from engines.checking import steps
from engines.checking.duration import StepTimes
from engines.checking.given import Given
from engines.checking.memory import activation_size, evaluation_size, free_memory, memory_needed, of_rank, size_of
from engines.checking.stages import StagedRun, planned_stages
from engines.checking.steps import Built
from engines.contract import spec as specs
from engines.contract.config import load_config
from engines.contract.settings import RunConfig, Stage, Training
from engines.contract.spec import Head
from engines.training.order import Order, ShuffledOrder
from engines.training.precision import Precision
from engines.training.project import Context, Evaluation, Loss, Project, Result, Split
from engines.training.stages import StagePlan
from tests.support.example_project import ExampleProject

CTX = Context(step=0, epoch=0, progress=0.0, stage="train", heads=frozenset({"a"}))
WIDTH, SAMPLES = 1024, 16


class Ones:
    """Samples of one number each."""

    def __len__(self) -> int:
        return SAMPLES

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> dict[str, Tensor]:
        return {"x": torch.ones(len(indices), 1)}


class Wide(Evaluation):
    """Makes two tensors of 4 kB a sample, of which one is free before the next is made, and a view."""

    def add(self, model: nn.Module, batch: dict[str, Tensor], ctx: Context) -> dict[str, Loss]:
        first = batch["x"].expand(-1, WIDTH).contiguous()
        total = first.sum()
        del first
        second = torch.zeros(len(batch["x"]), WIDTH)
        return {"a": Loss(total + second.view(-1).sum(), torch.tensor(1))}

    def result(self) -> Result:
        return Result(values={}, score=None)


class Squares(Project[Any]):
    def data(self, cfg: Any, device: torch.device) -> Split:
        raise NotImplementedError

    def model(self, cfg: Any, data: Split) -> nn.Module:
        raise NotImplementedError

    def evaluation(self, cfg: Any, data: Split) -> Any:
        return Wide()

    def losses(self, model: nn.Module, batch: dict[str, Tensor], ctx: Context) -> dict[str, Loss]:
        return {"a": Loss(model(batch["x"]).square().sum(), torch.tensor(1))}


def test_activations_are_counted_once_and_parameters_not_at_all() -> None:
    model = nn.Sequential(nn.Linear(1, WIDTH), nn.Sigmoid(), nn.Tanh())
    precision = Precision("off", torch.device("cpu"))
    kept = activation_size(Squares(), model, Split(Ones(), Ones()), torch.arange(SAMPLES), CTX, precision, seed=0)
    # a linear layer keeps its input, sigmoid and tanh keep what they gave; the square keeps what the tanh kept already
    assert kept == SAMPLES * 4 + 2 * SAMPLES * WIDTH * 4


@pytest.fixture
def example_config(example: ExampleProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.syspath_prepend(str(example.folder))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    return example.config


def test_a_check_adds_up_what_a_run_takes(example_config: Path, tmp_path: Path) -> None:
    wanted = ["output.keep_epochs=2", "training.steps_per_epoch=7", "launch.device=cpu", "cost.on_finish=[echo, a b]"]
    found = check(example_config, wanted)
    weights = 2 * 32 + 32 + 32 * 2 + 2
    assert (found["faults"], found["exit_code"], found["device"]) == ([], 0, "cpu")
    assert found["parameters"] == {"total": weights, "trainable": weights}
    assert found["steps"] == {"per_epoch": 7, "epochs": 6, "total": 42, "evaluations": 6}
    memory, disk = found["memory"], found["disk"]
    assert (memory["model"], memory["gradients"], memory["optimizer"]) == (4 * weights, 4 * weights, 8 * weights)
    in_step = memory["gradients"] + memory["activations"]  # which an evaluation does not keep
    beside = sum(memory[part] for part in ("model", "optimizer", "data"))
    assert memory["total"] == beside + max(in_step, memory["evaluation"])
    assert disk["checkpoints"] == 3 + 1 + 6 // 2  # the best of the first stage is kept too
    assert disk["needed"] == disk["checkpoints"] * disk["checkpoint"] == 7 * 3 * 4 * weights
    assert disk["path"] == str(tmp_path)
    assert not (tmp_path / "runs").exists()
    assert found["time"]["measured"] == "steps"
    assert (found["given"], found["measured"]) == ({}, ["memory", "steps", "evaluation", "save"])
    assert found["cost"] is None
    assert found["on_finish"] == ["when the run ends and nothing else runs here, this runs: echo 'a b'"]


@pytest.mark.behaviour("full-disk-save-sentence")
def test_faults_of_disk_and_memory_are_found(
    example_config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("engines.checking.memory.free_memory", lambda device: 10_000)
    found = check(example_config, [f"output.dir={tmp_path}", "output.keep_epochs=1", "training.epochs=1000000000000"])
    (tmp_path / "mine").write_text("")
    occupied = check(example_config, [f"output.dir={tmp_path}"])
    assert found["exit_code"] == occupied["exit_code"] == 1
    memory, disk = found["faults"]
    assert memory.endswith(" kB are free; lower training.batch_size, or set training.micro_batches=auto.")
    assert f"are free at {tmp_path}; free some space, or choose another output.dir or COCKPIT_RUNS." in disk
    assert f"The output directory {tmp_path} is not empty" in occupied["faults"][-1]


def test_faults_of_the_config_and_its_stages_end_the_search(example_config: Path) -> None:
    faulty = check(example_config, ["training.epohcs=3", "model.width=wide"])
    assert (len(faulty["faults"]), faulty["exit_code"]) == (2, 2)
    stage = check(example_config, ["training.stages.0.heads=[sides]"])
    assert stage["exit_code"] == 2
    assert "there is no head 'sides' (did you mean 'side'?)" in stage["faults"][0]
    ranks = ["launch.devices=3", "training.batch_size=16"]
    uneven, auto = (check(example_config, [*ranks, *more]) for more in ([], ["training.micro_batches=auto"]))
    assert uneven["exit_code"] == auto["exit_code"] == 2
    assert uneven["faults"] == [
        "training.batch_size 16 must be a multiple of 3: 3 ranks with 1 micro-batches each; change launch.devices or "
        "the batch size."
    ]
    assert auto["faults"] == [
        "training.micro_batches auto needs one rank, and launch asks for 3; set a number, or launch.devices to 1."
    ]


def test_sizes_are_in_bytes() -> None:
    assert size_of([torch.zeros(3, 2), torch.zeros(5, dtype=torch.int64)]) == 24 + 40


def test_files_that_the_kernel_keeps_in_memory_count_as_free(tmp_path: Path) -> None:
    """A container that has read its data set is full of pages that are given up as soon as anybody asks."""
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 600000\ninactive_file 300000\n")
    assert free_memory(torch.device("cpu"), tmp_path) == 400_000


class FakeTimer:
    """Steps of 1 to 4 s, at the beginning of the first stage up to the end of the last; keeps what trains then."""

    trained: ClassVar[list[tuple[str, float, frozenset[str], int]]] = []

    def __init__(self, built: Built, points: int) -> None:
        self._model = built.model
        self.trained.clear()

    def time(self, order: Order, ctx: Context, grad_clip: float) -> StepTimes:
        count = sum(parameter.numel() for parameter in self._model.parameters() if parameter.requires_grad)
        self.trained.append((ctx.stage, ctx.progress, ctx.heads, count))
        return StepTimes(float(len(self.trained)), None, None, 5)


def test_every_stage_is_timed_at_both_of_its_ends_and_added_by_its_epochs(
    example_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engines.checking.stages.StepTimer", FakeTimer)
    found = check(example_config, ["training.stages.0.frozen=[0.*]", "training.steps_per_epoch=10"])
    one, both = frozenset({"radius"}), frozenset({"radius", "side"})
    assert FakeTimer.trained == [
        ("radius only", 0.0, one, 66), ("radius only", 2 / 6, one, 66),
        ("everything", 2 / 6, both, 162), ("everything", 1.0, both, 162),
    ]  # fmt: skip
    stages = [(stage["name"], stage["epochs"], stage["begin"]["median"]) for stage in found["stages"]]
    assert stages == [("radius only", 2, 1.0), ("everything", 4, 3.0)]
    stepping = 2 * 10 * 1.5 + 4 * 10 * 3.5
    each = found["evaluation_seconds"] + found["save_seconds"]
    assert found["time"]["likely"] > stepping + 6 * each  # and loading
    assert (found["time"]["low"], found["time"]["high"], found["time"]["steps"]) == (None, None, 5)


class Growing(Squares):
    """A curriculum: as many copies of the batch as the progress says, up to four."""

    def losses(self, model: nn.Module, batch: dict[str, Tensor], ctx: Context) -> dict[str, Loss]:
        return super().losses(model, {"x": batch["x"].repeat(1 + int(3 * ctx.progress), 1)}, ctx)


def test_memory_is_that_of_the_most_expensive_point_of_the_stage_that_takes_most() -> None:
    model = nn.Sequential(nn.Linear(1, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Sigmoid(), nn.Tanh())
    training = Training(
        epochs=4, batch_size=SAMPLES, micro_batches=2, stages=[Stage(name="a", epochs=3, frozen=["0.*", "1.bias"]),
        Stage(name="b", frozen=["1.*"])],
    )  # fmt: skip
    settings, heads = SimpleNamespace(training=training), [Head(name="a", title="")]
    source, project, precision = Split(Ones(), Ones()), Growing(), Precision("off", torch.device("cpu"))
    built = Built(settings, None, project, torch.device("cpu"), source, 100, model, precision, 2)  # type: ignore[arg-type]
    plan, order = StagePlan(training, heads), ShuffledOrder(np.arange(SAMPLES), SAMPLES, 0)
    plan.rehearse(project, model)
    first, last = StagedRun(built, plan, [order, order], planned_stages(plan, training, [1, 1])).memory()
    weights, hidden = 4 * WIDTH * WIDTH, 4 * (2 * WIDTH)
    assert (first["gradients"], first["optimizer"], first["data"]) == (weights, 2 * weights, 100)
    assert (last["gradients"], last["optimizer"]) == (hidden, 2 * (weights + hidden))  # moments of both are kept
    rows = SAMPLES // 2  # of a micro-batch, at the end of each stage
    assert last["activations"] == 4 * rows * (4 + 2 * 4 * WIDTH)
    assert first["activations"] == 3 * rows * (3 * 4 * WIDTH)  # what the second layer was given, too
    assert last["total"] == sum(last[part] for part in ("model", "gradients", "optimizer", "activations", "data"))


def test_an_evaluation_takes_the_most_it_holds_at_once_and_counts_where_that_is_more_than_a_step() -> None:
    settings = SimpleNamespace(training=Training(batch_size=SAMPLES))
    model = nn.Linear(1, 1)
    for parts, rows in ((1, SAMPLES), (8, SAMPLES // 2)):  # four training batches at most, of the sixteen there are
        taken = evaluation_size(Squares(), settings, model, Split(Ones(), Ones()), parts, CTX)
        assert 4 * rows * WIDTH <= taken < 4 * rows * WIDTH + 4 * rows + 200
    assert model.training
    for activations, total in ((50, 8 + 16 + 100 + 1000), (5000, 8 + 16 + 100 + 8 + 5000)):
        needed = memory_needed(model, [*model.parameters()], 16, 100, activations, evaluation=1000)
        assert needed["total"] == total


def test_memory_of_a_rank_is_counted_by_strategy(example_config: Path) -> None:
    model = nn.Sequential(nn.Linear(10, 10), nn.Linear(10, 10), nn.Linear(10, 5))
    whole = memory_needed(model, [*model.parameters()], 2 * 4 * 275, 100, 4000, evaluation=1000)
    assert of_rank(whole, "ddp", 4, model, ())["total"] == 4 * 4 * 275 + 100 + 1000
    each = of_rank(whole, "fsdp2", 4, model, [model[0], model[1]])
    assert each["total"] == 4 * 275 + 100 + 1000 + 2 * 4 * 275  # 275 of 275 are gathered, with gradients
    one = of_rank(whole, "fsdp2", 4, model, [*model])
    assert each["total"] - one["total"] == 2 * 4 * 55
    few = of_rank({**whole, "evaluation": 10**5}, "fsdp2", 4, model, [*model])
    assert few["total"] == 3 * 275 + 100 + 4 * 275 + 10**5

    found = check(example_config, ["launch.devices=2", "launch.strategy=fsdp2"])
    assert found["ranks"]["count"] == 2
    assert found["memory"]["total"] == found["ranks"]["fsdp2"] != found["ranks"]["ddp"]
    assert facts_of(found)["memory per rank"].endswith("with fsdp2, on 2 ranks")


def test_auto_micro_batches_are_as_many_as_it_takes_to_fit(
    example_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spiral = specs.load("spiral.project:Spiral")
    count = torch.tensor(1.0)
    monkeypatch.setattr(spiral, "counts", lambda self, batch, ctx: dict.fromkeys(ctx.heads, count))
    whole = check(example_config, ["training.micro_batches=auto"])
    assert (whole["micro_batches"], whole["faults"]) == (1, [])
    room = whole["memory"]["total"] - whole["memory"]["model"] - whole["memory"]["data"]
    monkeypatch.setattr("engines.checking.memory.free_memory", lambda device: room // 3)
    cut = check(example_config, ["training.micro_batches=auto"])
    assert (cut["micro_batches"], cut["faults"]) == (4, [])
    assert check(example_config, [])["faults"] != []


def test_each_precision_is_timed_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of `off` takes 3 s, of bf16 2 s, on a clock of its own."""
    clock, seconds = [0.0], {"off": 3.0, "bf16": 2.0}

    class Timed(Squares):
        def losses(self, model: nn.Module, batch: dict[str, Tensor], ctx: Context) -> dict[str, Loss]:
            clock[0] += seconds["bf16" if torch.is_autocast_enabled("cpu") else "off"]
            return super().losses(model, batch, ctx)

    monkeypatch.setattr("engines.training.precision.cpu_has_bf16", lambda: True)
    monkeypatch.setattr(steps, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    settings = SimpleNamespace(
        training=Training(batch_size=SAMPLES), loss_weights=SimpleNamespace(model_dump=lambda: {"a": 1.0})
    )
    spec = SimpleNamespace(heads=[Head(name="a", title="")], measured=())
    cpu = torch.device("cpu")
    built = Built(
        settings, spec, Timed(), cpu, Split(Ones(), Ones()), 0, nn.Linear(1, 1), Precision("off", cpu),  # type: ignore[arg-type]
    )  # fmt: skip
    order = ShuffledOrder(np.arange(SAMPLES), SAMPLES, 0)
    assert steps.precision_seconds(built, ["off", "bf16"], order, CTX, 1.0) == seconds


def test_given_numbers_take_the_place_of_measured_ones(example_config: Path) -> None:
    given = Given(step_seconds=0.5, usd_per_hour=36.0, samples=640_000)
    found = check(example_config, ["cost.usd_per_hour=1"], given=given)
    assert found["given"] == {"step_seconds": 0.5, "usd_per_hour": 36.0, "samples": 640_000}
    assert found["measured"] == ["memory", "evaluation", "save"]
    assert found["steps"] == {"per_epoch": 10_000, "epochs": 6, "total": 60_000, "evaluations": 6}
    time = found["time"]
    each = found["evaluation_seconds"] + found["save_seconds"]
    assert time["likely"] > 60_000 * 0.5 + 6 * each
    assert (time["measured"], time["low"], time["high"]) == ("given", None, None)
    assert found["cost"]["likely"] == pytest.approx(time["likely"] / 100)


def test_with_samples_and_seconds_given_no_data_is_needed(
    example_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spiral = specs.load("spiral.project:Spiral")

    def no_data(self: object, cfg: object, device: object) -> Split:
        raise DataError("/data: no such folder.")

    monkeypatch.setattr(spiral, "data", no_data)
    found = check(example_config, [], given=Given(step_seconds=0.5, samples=640_000))
    assert (found["faults"], found["exit_code"], found["measured"]) == ([], 0, [])
    assert found["time"]["likely"] == 60_000 * 0.5
    assert found["warnings"] == ["/data: no such folder. The data and the model were not checked."]
    assert check(example_config, [], given=Given(samples=640_000))["faults"] == ["/data: no such folder."]


def windows(settings: RunConfig, games: int) -> int:
    """A unit of a project: a game has 9,000 frames, a window takes 60 of them."""
    return games * 9000 - 60 * settings.training.epochs


def test_a_project_may_count_its_data_in_a_unit_of_its_own(example_config: Path) -> None:
    loaded = load_config(example_config, [])
    counting = replace(loaded, spec=replace(loaded.spec, counts={"games": f"{__name__}:windows"}))
    given = Given(counts={"games": 100_000}).in_samples(counting)
    assert given.samples == 100_000 * 9000 - 60 * 6
    assert given.numbers() == {"samples": given.samples, "games": 100_000}
    for wrong, said in (
        (Given(counts={"game": 1}), r"--game: spiral counts its data in games, samples \(did you mean 'games'\?\)"),
        (Given(counts={"games": 0}), "--games 0: expected a number above 0"),
        (Given(step_seconds=float("nan")), "--step-seconds nan: expected a number above 0"),
        (Given(samples=3, counts={"games": 1}), "--games and --samples both set the amount of data"),
    ):
        with pytest.raises(UserError, match=said):
            wrong.in_samples(counting)


class Episodes(Evaluation):
    """A second a batch, the first `cold` ones, then a second each of 20 episodes, on a clock of its own."""

    def __init__(self, clock: list[float], cold: float) -> None:
        self._clock, self._cold = clock, cold

    def add(self, model: nn.Module, batch: dict[str, Tensor], ctx: Context) -> dict[str, Loss]:
        self._clock[0] += self._cold
        self._cold = 1.0
        return {"a": Loss(torch.tensor(1.0), torch.tensor(1))}

    def after(self, model: nn.Module, ctx: Context) -> Generator[tuple[float, float, str], None, None]:
        for number in range(20):
            self._clock[0] += 1
            yield number + 1, 20, "episodes"

    def result(self) -> Result:
        return Result(values={}, score=None)


@pytest.mark.behaviour("check-range-covers-the-truth")
@pytest.mark.parametrize("cold", [1.0, 60.0])
@pytest.mark.parametrize(("patience", "seconds"), [(3, 8), (15, 8 + 20), (1000, 8 + 20)])
def test_a_long_evaluation_is_worked_out_from_its_beginning_without_its_warm_up(
    monkeypatch: pytest.MonkeyPatch, patience: float, seconds: float, cold: float
) -> None:
    patience += cold - 1
    clock = [0.0]
    project = Squares()
    monkeypatch.setattr(project, "evaluation", lambda cfg, data: Episodes(clock, cold))
    monkeypatch.setattr(project, "validation_batch", lambda cfg: SAMPLES // 8)
    monkeypatch.setattr(steps, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(steps, "EVALUATION_SECONDS", patience)
    settings = SimpleNamespace(loss_weights=SimpleNamespace(model_dump=lambda: {"a": 1.0}))
    spec = SimpleNamespace(heads=[Head(name="a", title="")])
    built = Built(
        settings, spec, project, torch.device("cpu"), Split(Ones(), Ones()), 0, nn.Linear(1, 1),  # type: ignore[arg-type]
        Precision("off", torch.device("cpu")),
    )  # fmt: skip
    assert steps.evaluation_seconds(built, CTX) == pytest.approx(seconds)


@pytest.mark.behaviour("check-range-covers-the-truth")
@pytest.mark.parametrize(("checkpoint", "seconds"), [(1000, 0.2), (64 << 20, 0.2), (640 << 20, 2.0)])
def test_a_save_is_timed_without_its_first_and_by_as_much_as_it_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checkpoint: int, seconds: float
) -> None:
    """The first takes 9 s on a clock of its own; a state smaller than its checkpoint is not multiplied."""
    clock, costs, written = [0.0], iter([9.0, 0.2, 0.2, 5.0]), []

    def save(content: list[Tensor], file: object) -> None:
        clock[0] += next(costs)
        written.append(sum(tensor.nbytes for tensor in content))

    monkeypatch.setattr(steps, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(torch, "save", save)
    assert steps.save_seconds({"weight": torch.zeros(10)}, checkpoint, tmp_path) == pytest.approx(seconds)
    assert written == [min(checkpoint, 64 << 20)] * 4
