"""The transformer: size, padding, pooling, precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from projects.controls.model import ControlTransformer

SIZES = {"action_logits": 12, "look": 2, "hotbar_logits": 9, "cursor": 2, "inv_click_logits": 3}


def small(seed: int = 0) -> ControlTransformer:
    torch.manual_seed(seed)
    return ControlTransformer(d_model=32, nhead=4, num_layers=2, dim_feedforward=48, dropout=0.1).eval()


def window(batch: int, time: int = 30) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, time, 671, generator=generator), torch.ones(batch, time, dtype=torch.bool)


def test_the_default_model_has_3_510_429_parameters() -> None:
    assert sum(parameter.numel() for parameter in ControlTransformer().parameters()) == 3_510_429


def test_outputs_have_their_sizes_and_ranges() -> None:
    features, mask = window(5)
    outputs = small()(features * 100, mask)
    assert {name: tuple(value.shape) for name, value in outputs.items()} == {n: (5, s) for n, s in SIZES.items()}
    assert outputs["look"].abs().max() <= 1
    assert 0 <= outputs["cursor"].min() <= outputs["cursor"].max() <= 1


@pytest.mark.parametrize("training", [False, True])
def test_a_fully_padded_window_gives_finite_outputs_and_gradients(training: bool) -> None:
    model = small().train(training)
    features, mask = window(3)
    mask[1] = False
    outputs = model(features, mask)
    torch.autograd.backward([value.sum() for value in outputs.values()])
    assert all(value.isfinite().all() for value in outputs.values())
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_one_padded_window_leaves_its_neighbours_as_they_are() -> None:
    model = small()
    features, mask = window(3)
    alone = model(features[2:], mask[2:])
    mask[1] = False
    beside = model(features, mask)
    for name, value in alone.items():
        torch.testing.assert_close(beside[name][2:], value)


def test_padding_is_never_looked_at() -> None:
    model = small()
    features, mask = window(2)
    mask[:, :18] = False
    before = model(features, mask)
    features[:, :18] = 1e3
    for name, value in model(features, mask).items():
        torch.testing.assert_close(value, before[name])


def test_a_window_padded_on_the_left_equals_the_shorter_window() -> None:
    """Positions are counted from the newest row; pooling ages are not, so compare without decay."""
    model = small()
    with torch.no_grad():
        model.decay.zero_()
    features, mask = window(2)
    mask[:, :18] = False
    padded, short = model(features, mask), model(features[:, 18:], mask[:, 18:])
    for name, value in short.items():
        torch.testing.assert_close(padded[name], value, atol=1e-5, rtol=1e-4)


def test_pooling_is_the_weighted_mean_of_real_rows() -> None:
    model = small()
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(1, 30, 32, generator=generator)
    mask = torch.ones(1, 30, dtype=torch.bool)
    mask[0, :7] = False
    pooled = model._pool(rows, mask)
    weights = [0.0 if k < 7 else 2.718281828459045 ** (-2.0 * (1 - k / 29)) for k in range(30)]
    expected = sum(w * rows[0, k].double() for k, w in enumerate(weights)) / sum(weights)
    torch.testing.assert_close(pooled[0].double(), expected, atol=1e-6, rtol=1e-5)


def test_the_newest_row_counts_most_at_the_start() -> None:
    model = small()
    rows = torch.eye(30)[None]
    pooled = model._pool(rows, torch.ones(1, 30, dtype=torch.bool))[0].detach()
    assert pooled.argmax() == 29
    assert pooled[29] / pooled[0] == pytest.approx(2.718281828**2, rel=1e-4)


def test_layers_do_not_start_alike() -> None:
    first, second = (layer.linear1.weight for layer in small().encoder.layers)
    assert not torch.equal(first, second)


def test_normalisation_is_part_of_the_weights() -> None:
    features, mask = window(2)
    mean, std = torch.randn(671), torch.rand(671) + 0.5
    plain, normalised = small(), small()
    normalised.normalise(mean, std)
    expected = plain((features - mean) / std, mask)
    loaded = small(seed=9)
    loaded.load_state_dict(normalised.state_dict())
    for name, value in loaded(features, mask).items():
        torch.testing.assert_close(value, expected[name])


def test_bf16_autocast_stays_close_and_gives_float32() -> None:
    model = small()
    features, mask = window(4)
    exact = model(features, mask)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(features, mask)
    for name, value in rough.items():
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, exact[name], atol=5e-2, rtol=5e-2)
