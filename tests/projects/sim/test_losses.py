"""The objective worked out by hand: weights, absent labels, micro-batches, confidence."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from projects.sim.losses import ClassWeights, loss_counts, sim_losses
from tests.projects.sim.models import batch, network

EVEN = ClassWeights({"risk": torch.ones(4), "reason": torch.ones(4), "action": torch.ones(6)})


def output(count: int = 6, seed: int = 0) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    sizes = {"risk": 4, "reason": 4, "action": 6, "confidence": 1}
    return {f"{task}_logits": torch.randn(count, size, generator=random) for task, size in sizes.items()}


def test_without_weights_it_is_the_mean_cross_entropy() -> None:
    given, said = batch(), output()
    for task, loss in list(sim_losses(said, given, EVEN).items())[:3]:
        expected = F.cross_entropy(said[f"{task}_logits"], given[f"{task}_id"])
        torch.testing.assert_close(loss.total / loss.count, expected)


def test_sample_weights_divide_by_their_sum_also_below_one() -> None:
    given = batch() | {"weight": torch.tensor([0.1, 0.0, 0.2, 0.1, 0.05, 0.05])}
    loss = sim_losses(output(), given, EVEN)["risk"]
    each = F.cross_entropy(output()["risk_logits"], given["risk_id"], reduction="none")
    assert float(loss.count) == pytest.approx(0.5)
    assert float(loss.total / loss.count) == pytest.approx(float((given["weight"] * each).sum() / 0.5))


def test_class_weights_are_those_of_torch() -> None:
    weights = ClassWeights({"risk": torch.tensor([1.0, 2, 3, 4]), "reason": torch.ones(4), "action": torch.ones(6)})
    given, said = batch(), output()
    loss = sim_losses(said, given, weights)["risk"]
    expected = F.cross_entropy(said["risk_logits"], given["risk_id"], weight=weights.weights["risk"])
    torch.testing.assert_close(loss.total / loss.count, expected)


def test_balanced_weights_make_classes_count_alike() -> None:
    labels = torch.tensor([[0, -1, 5]] * 6 + [[3, -1, 5]] * 2)
    weights = ClassWeights.of(labels, "balanced", cap=10).weights
    assert weights["risk"].tolist() == pytest.approx([8 / 12, 1, 1, 2])
    assert weights["reason"].tolist() == [1] * 4
    assert ClassWeights.of(labels, "balanced", cap=1.5).weights["risk"][3] == 1.5
    assert ClassWeights.of(labels, "none", cap=10).weights["risk"].tolist() == [1] * 4


def test_an_absent_label_is_out_of_sum_and_count() -> None:
    given, said = batch(), output()
    given["action_id"][:2] = -1
    loss = sim_losses(said, given, EVEN)["action"]
    expected = F.cross_entropy(said["action_logits"][2:], given["action_id"][2:], reduction="sum")
    torch.testing.assert_close(loss.total, expected)
    assert float(loss.count) == 4
    given["reason_id"][:] = -1
    nothing = sim_losses(said, given, EVEN)["reason"]
    assert (float(nothing.total), float(nothing.count)) == (0, 0)


def test_a_task_without_labels_is_still_attached_to_the_graph() -> None:
    model, given = network(), batch()
    given["reason_id"][:] = -1
    loss = sim_losses(model(given), given, EVEN)
    loss["reason"].total.backward()  # type: ignore[no-untyped-call]
    assert model.heads["reason"].weight.grad is not None


def test_micro_batches_add_up_to_the_whole_gradient() -> None:
    given = batch(8) | {"weight": torch.linspace(0.01, 0.1, 8)}
    model = network()

    def gradient(parts: int) -> torch.Tensor:
        model.zero_grad()
        counts = loss_counts(given, EVEN, confidence=False)
        for place in range(parts):
            part = {name: values[place::parts] for name, values in given.items()}
            losses = sim_losses(model(part), part, EVEN)
            sum(loss.total / counts[task] for task, loss in losses.items() if counts[task] > 0).backward()  # type: ignore[union-attr]
        found = model.projector.weight.grad
        assert found is not None
        return found.clone()

    torch.testing.assert_close(gradient(4), gradient(1), rtol=1e-4, atol=1e-6)


def test_counts_are_those_of_the_losses() -> None:
    given = batch() | {"weight": torch.linspace(0.1, 1, 6)}
    given["risk_id"][0] = given["action_id"][0] = given["risk_id"][1] = -1
    losses = sim_losses(output(), given, EVEN)
    for task, count in loss_counts(given, EVEN, confidence=True).items():
        assert float(count) == pytest.approx(float(losses[task].count)), task
    assert float(loss_counts(given, EVEN, confidence=False)["confidence"]) == 0


def test_d7_confidence_learns_whether_risk_and_action_are_right() -> None:
    given, said = batch(3), output(3)
    for task in ("risk", "action"):
        given[f"{task}_id"] = said[f"{task}_logits"].argmax(1)
    given["risk_id"][1] = (given["risk_id"][1] + 1) % 4
    said["risk_logits"].requires_grad_()
    loss = sim_losses(said, given, EVEN)["confidence"]
    chance = said["confidence_logits"][:, 0].sigmoid()
    assert float(loss.total) == pytest.approx(-math.log(chance[0] * (1 - chance[1]) * chance[2]), rel=1e-5)
    assert not loss.total.requires_grad  # it never moves the answers that it judges
