"""Options of the model and the losses: each by a slow formula, absent in what was saved before there were any."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engines.contract.config import check_config
from projects.controls.batches import WHITEN_FLOOR, WindowSource
from projects.controls.config import PLAIN, ControlsConfig
from projects.controls.exported import read_exported
from projects.controls.features import frame_features
from projects.controls.layout import CURSOR, HISTORY_FEATURES, LOOK
from projects.controls.losses import Errors, PosWeights, head_losses
from projects.controls.model import ControlTransformer, last_shown, sine_positions
from projects.controls.policy.network import PolicyNetwork, outputs
from tests.projects.controls.exports import SIZES, nested, write
from tests.projects.controls.sessions import random_session

OPTIONS: dict[str, Any] = {"readout": "filter", "look_residual": 0.5, "cursor_residual": 0.8, "whiten": True}
DEMO = {"d_model": 64, "nhead": 4, "num_layers": 2, "dim_feedforward": 128}


def small(**options: Any) -> ControlTransformer:
    torch.manual_seed(3)
    return ControlTransformer(d_model=32, nhead=4, num_layers=2, dim_feedforward=48, dropout=0.1, **options).eval()


def window(batch: int, time: int = 30) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, time, 671, generator=generator), torch.ones(batch, time, dtype=torch.bool)


@pytest.mark.parametrize(("sizes", "expected"), [({}, 3_510_429), (DEMO, 157_085)])
def test_the_filter_takes_the_place_of_the_positions(sizes: dict[str, int], expected: int) -> None:
    model = ControlTransformer(**sizes, **OPTIONS)  # type: ignore[arg-type]
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    for value in model(*window(2)).values():
        value.square().sum().backward(retain_graph=True)
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())  # none is there for the count


def test_the_last_layer_gives_the_newest_row_of_the_whole_encoder() -> None:
    model = small(readout="filter")
    rows = torch.randn(4, 30, 32, generator=torch.Generator().manual_seed(2))
    padded = torch.zeros(4, 30, dtype=torch.bool)
    padded[1, :17] = True
    torch.testing.assert_close(model._newest(rows, padded), model.encoder(rows, src_key_padding_mask=padded)[:, -1])


def test_the_first_version_runs_its_heads_in_their_order() -> None:
    """Dropout's draws and the sums of gradients follow it: replays of older runs are the same bit by bit."""
    model = small().train()
    features, mask = window(3)

    def gradients(outputs: list[Tensor]) -> tuple[Tensor, ...]:
        total = torch.stack([output.square().sum() for output in outputs]).sum()
        return torch.autograd.grad(total, tuple(model.parameters()))

    torch.manual_seed(5)
    found = list(model(features, mask).values())
    ours = gradients(found)
    torch.manual_seed(5)
    pooled = model._pool(model.encoder(model.embed(features) + model.positions.weight), mask)
    expected = [
        model.action(pooled), model.look(pooled).tanh(), model.hotbar(pooled), model.cursor(pooled).sigmoid(),
        model.inv(pooled),
    ]  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(ours, gradients(expected), strict=True))


def test_the_filter_is_a_sum_over_real_rows_with_the_decay_as_its_envelope() -> None:
    model = small(readout="filter")
    rows = torch.randn(1, 30, 32, generator=torch.Generator().manual_seed(2))
    mask = torch.ones(1, 30, dtype=torch.bool)
    mask[0, :7] = False
    envelope = [math.exp(model.decay.item() * (29 - k) / 29) for k in range(30)]
    expected = sum(rows[0, k].double() * model.filter.weight[k].double() * envelope[k] for k in range(7, 30))
    torch.testing.assert_close(model._filtered(rows, mask)[0].double(), expected, atol=1e-5, rtol=1e-5)
    assert envelope[0] < 0.01 < envelope[25]


def test_a_padded_window_equals_the_shorter_one_with_the_filter_too() -> None:
    model = small(**OPTIONS)
    features, mask = window(2)
    mask[:, :18] = False
    padded, short = model(features, mask), model(features[:, 18:], mask[:, 18:])
    for name, value in short.items():
        torch.testing.assert_close(padded[name], value, atol=1e-5, rtol=1e-4)


def test_positions_are_sines_and_cosines_of_the_age() -> None:
    found = sine_positions(30, 6, torch.device("cpu"))
    for row, age in ((29, 0), (24, 5)):
        angles = [age / 10_000 ** (2 * k / 6) for k in range(3)]
        expected = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        torch.testing.assert_close(found[row], torch.tensor(expected))


def test_what_is_hidden_of_the_past_is_not_what_an_answer_starts_from() -> None:
    past = torch.zeros(3, 5, 28)
    past[0, 1, [9, 10, 23, 24]] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    past[1, 1:5, 23:25] = 0.5
    past[1, 4, 9] = -0.7
    look, cursor = last_shown(past.flatten(1))
    torch.testing.assert_close(look, torch.tensor([[0.1, 0.2], [-0.7, 0.0], [0.0, 0.0]]))
    torch.testing.assert_close(cursor, torch.tensor([[0.3, 0.4], [0.5, 0.5], [0.5, 0.5]]))


def test_an_answer_starts_from_a_share_of_the_past() -> None:
    plain, residual = small(readout="filter"), small(readout="filter", look_residual=0.5, cursor_residual=0.8)
    features, mask = window(4)
    features[:, -1, HISTORY_FEATURES] = torch.rand(4, 140) * 0.9 + 0.05
    before, after = plain(features, mask), residual(features, mask)
    look, cursor = last_shown(features[:, -1, HISTORY_FEATURES])
    torch.testing.assert_close(after["look"].atanh(), before["look"].atanh() + 0.5 * look.atanh(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        after["cursor"].logit(), before["cursor"].logit() + 0.8 * cursor.logit(), atol=1e-4, rtol=1e-4
    )
    torch.testing.assert_close(after["action_logits"], before["action_logits"])


def test_whitened_coordinates_are_uncorrelated_and_folded_into_the_projection() -> None:
    session = random_session("a", 400, 1)
    session.frames[:, :225] *= 0.05
    session.frames[:, 1] += 2 * session.frames[:, 0]
    source = WindowSource([session], torch.device("cpu"), 0.0)
    (mean, std), matrix = source.feature_statistics(), source.whitening()
    model = small(whiten=True)
    model.normalise(mean, std, matrix)
    features = torch.from_numpy(frame_features(session))
    white = (features[:, :225] - mean[:225]) @ matrix
    spread = torch.linalg.eigvalsh(torch.cov(white.T.double()))
    assert spread.max() < 1.01
    assert torch.linalg.eigvalsh(torch.cov(features[:, :225].T.double())).min() > 0  # else the floor would show
    rest = (features[:, 225:] - mean[225:]) / std[225:]
    torch.testing.assert_close(model.embed(features), model.project(torch.cat([white, rest], 1)), atol=1e-4, rtol=1e-4)
    assert float(torch.linalg.eigvalsh(matrix.double()).max()) < 1 / WHITEN_FLOOR


def test_a_network_of_the_policy_gives_what_the_model_gives(tmp_path: Path) -> None:
    model = ControlTransformer(**SIZES, dropout=0.1, **OPTIONS).eval().requires_grad_(False)
    model.normalise(torch.randn(671) * 0.1, torch.rand(671) + 0.5, torch.eye(225) + 0.1)
    config = nested()
    config["model"] |= OPTIONS
    network = PolicyNetwork.load(read_exported(write(tmp_path, config, model.state_dict())))
    features, _ = window(1, 40)
    features[..., HISTORY_FEATURES] = features[..., HISTORY_FEATURES].sigmoid()
    for last in range(40):
        network.push(features[0, last].numpy())
        rows = features[:, max(0, last - 29) : last + 1]
        expected = outputs(model(rows, torch.ones(1, rows.shape[1], dtype=torch.bool)))
        for name, value in vars(network.answer()).items():
            assert abs(value - getattr(expected, name)).max() < 1e-6, name


def test_errors_count_by_their_size_and_at_rest_by_their_weight() -> None:
    session = random_session("a", 129, 4)
    batch = WindowSource([session], torch.device("cpu"), 0.0).batch(torch.arange(100), None)
    generator = torch.Generator().manual_seed(0)
    shapes = {"action_logits": 12, "look": 2, "hotbar_logits": 9, "cursor": 2, "inv_click_logits": 3}
    said = {name: torch.randn(100, size, generator=generator) * 0.2 for name, size in shapes.items()}
    weights = PosWeights(torch.ones(12), torch.ones(3), ())
    losses = head_losses(said, batch, weights, errors=Errors(look_beta=0.1, cursor_beta=0.02, look_rest=0.25))

    def smooth(error: float, beta: float) -> float:
        return error**2 / (2 * beta) if error < beta else error - beta / 2

    look = count = cursor = 0.0
    for n, target in enumerate(batch["target"].tolist()):
        weight = float(batch["gameplay"][n]) * (1 if math.hypot(target[9], target[10]) > 0.08 else 0.25)
        look += sum(weight * smooth(abs(float(said["look"][n, k]) - target[c]), 0.1) for k, c in enumerate(LOOK))
        count += 2 * weight
        if batch["screen_open"][n]:
            cursor += sum(smooth(abs(float(said["cursor"][n, k]) - target[c]), 0.02) for k, c in enumerate(CURSOR))
    assert float(losses["look"].total) == pytest.approx(look, rel=1e-4)
    assert float(losses["look"].count) == pytest.approx(count)
    assert float(losses["cursor"].total) == pytest.approx(cursor, rel=1e-4)


def loaded(tree: dict[str, Any]) -> ControlsConfig:
    settings = check_config({"project": "controls", "data": {"path": "x"}} | tree, "a config", {}, ()).settings
    assert isinstance(settings, ControlsConfig)
    return settings


def test_a_config_without_a_version_means_what_it_always_did() -> None:
    old = loaded({})
    assert (old.model.readout, old.model.cursor_residual, old.model.whiten) == ("mean", 0, False)
    assert (old.loss.look_beta, old.loss.cursor_beta, old.loss.look_rest) == (1.0, None, 0.0)
    assert (old.data.history_dropout, old.data.pos_weight_cap, old.loss_weights.cursor) == (0.3, 50.0, 0.5)
    assert old.training.beta2 == 0.999


def test_a_run_saved_before_there_were_options_loads_as_it_was() -> None:
    saved = loaded({"model": {"d_model": 64}}).model_dump(mode="json")
    for key in ("version", "loss", "report"):
        del saved[key]
    for key in ("readout", "look_residual", "cursor_residual", "whiten"):
        del saved["model"][key]
    del saved["training"]["beta2"]
    assert loaded(saved) == loaded({"model": {"d_model": 64}})


def test_an_export_names_the_options_that_are_used_alone(tmp_path: Path) -> None:
    """An older run's is, byte for byte, as it was before there were any."""
    old = loaded({}).model.exported()
    assert list(old.items()) == [
        ("d_model", 256), ("nhead", 8), ("num_layers", 6), ("dim_feedforward", 512), ("dropout", 0.3),
        ("max_seq_len", 30),
    ]  # fmt: skip
    new = loaded({"version": 2, "model": SIZES}).model
    named = {key: value for key, value in new.exported().items() if key not in old}
    assert named == {"readout": "filter", "cursor_residual": 0.8, "whiten": True}
    config = nested()
    config["model"] |= new.exported()
    read = read_exported(write(tmp_path, config, {})).model
    dumped = new.model_dump()
    assert {key: dumped[key] for key in read} == read
    assert set(PLAIN) < set(read)


def test_of_version_2_what_is_left_out_is_new_and_what_is_said_holds() -> None:
    new = loaded({"version": 2, "model": {"readout": "mean"}, "data": {"path": "x", "augmentation": {"warp": 0.0}}})
    assert (new.model.readout, new.model.cursor_residual, new.model.whiten) == ("mean", 0.8, True)
    assert (new.data.history_dropout, new.data.augmentation.warp, new.data.augmentation.noise) == (0.1, 0.0, 0.005)
    assert loaded(new.model_dump(mode="json")) == new
