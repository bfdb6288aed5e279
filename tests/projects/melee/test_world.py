"""The world model: its size, steps equal to the whole, and what it may see."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from projects.melee.forcing import pass_losses
from projects.melee.frames import ACTION, FACING, GROUND, JUMPS, L_CANCEL, Frames
from projects.melee.losses import Objective
from projects.melee.rollout import Stream, roll
from projects.melee.rules import Prediction
from projects.melee.views import SIDEWAYS
from projects.melee.world import WorldModel
from tests.projects.melee.made import called, frames

BATTLEFIELD = 24
KINDS = {
    "mamba": {"architecture": "mamba", "K": 12},
    "mamba windows": {"architecture": "mamba", "K": 5, "carry": False},
    "mlp": {"architecture": "mlp", "K": 1},
    "mlp windows": {"architecture": "mlp", "K": 3},
}
each_model = pytest.mark.parametrize(
    ("kind", "view"), [(kind, view) for kind in KINDS for view in ("fighter", "joint")]
)


def small(kind: str, view: str = "fighter") -> WorldModel:
    """A model whose every weight says something: those that begin as zeros are drawn too."""
    torch.manual_seed(0)
    model = WorldModel(view=view, d_model=64, n_layers=1, chunk_size=8, **KINDS[kind])  # type: ignore[arg-type]
    for parameter in model.parameters():
        if parameter.ndim > 1 and not parameter.any(dim=1).all():
            torch.nn.init.normal_(parameter, std=0.02)
    return model.eval()


def values(said: Prediction) -> dict[str, Tensor]:
    named = {name: getattr(said, name) for name in ("continuous", "velocity", "dynamics", "binary", "age", "hit")}
    return {name: value for name, value in {**named, **said.classes}.items() if value is not None}


def assert_same(ours: Prediction, theirs: Prediction) -> None:
    for name, value in values(ours).items():
        torch.testing.assert_close(value, values(theirs)[name], atol=1e-5, rtol=1e-4, msg=called(name))


def one_row(sequence: Frames, row: int) -> Frames:
    return sequence.map(lambda part: part[row : row + 1])


def led(sequence: Frames) -> tuple[Frames, Tensor]:
    return sequence.at(slice(None, -1)), sequence.control[:, 1:]


@pytest.mark.parametrize(
    ("d_model", "n_layers", "embedded", "plain"),
    [
        (256, 2, 1_206_578, 1_201_794), (384, 4, 4_282_386, 4_275_810),
        (512, 6, 10_592_546, 10_584_178), (768, 4, 15_660_834, 15_648_882),
    ],
)  # fmt: skip
def test_the_joint_view_has_the_original_sizes(d_model: int, n_layers: int, embedded: int, plain: int) -> None:
    with torch.device("meta"):
        for embed_age, count in ((True, embedded), (False, plain)):
            model = WorldModel(view="joint", d_model=d_model, n_layers=n_layers, plain_blocks=0, embed_age=embed_age)
            assert sum(parameter.numel() for parameter in model.parameters()) == count


@each_model
def test_steps_are_the_whole(kind: str, view: str) -> None:
    model = small(kind, view)
    inputs, control = led(frames(3, 14))
    whole = model(inputs, control)
    begun = 6
    memory = model.begin(inputs.at(slice(None, begun)), control[:, :begun])
    for t in range(begun, inputs.frames):
        said, memory = model.step(inputs.at(t), control[:, t], memory)
        assert_same(said, whole.at(t - model.skipped))


@each_model
def test_a_stream_in_a_batch_is_the_stream_alone(kind: str, view: str) -> None:
    model, past, control = small(kind, view), frames(4, 8), frames(4, 5, seed=1).control
    together = roll(model, past, control)
    for row in range(4):
        alone = roll(model, one_row(past, row), control[row : row + 1])
        torch.testing.assert_close(alone.state[0], together.state[row], atol=1e-5, rtol=1e-4)
        assert torch.equal(alone.ints[0], together.ints[row])


@each_model
def test_only_the_past_and_the_next_controllers_are_seen(kind: str, view: str) -> None:
    model, sequence = small(kind, view), frames(2, 14)
    other = frames(2, 14, seed=5)
    at = 9
    whole = model(*led(sequence))
    later = replace(
        sequence, state=sequence.state.clone(), ints=sequence.ints.clone(), control=sequence.control.clone()
    )
    later.state[:, at:], later.ints[:, at:] = other.state[:, at:], other.ints[:, at:]
    later.control[:, at + 1 :] = other.control[:, at + 1 :]
    before = slice(0, at - model.skipped)
    assert_same(model(*led(later)).at(before), whole.at(before))
    later.control[:, at] = 1 - sequence.control[:, at]
    changed = model(*led(later)).at(before)
    assert not torch.allclose(changed.classes["action"][:, -1], whole.at(before).classes["action"][:, -1])


def swapped(sequence: Frames) -> Frames:
    return replace(sequence, state=sequence.state.flip(2), control=sequence.control.flip(2), ints=sequence.ints.flip(2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_fighter_view_does_not_know_who_is_first(kind: str) -> None:
    model, sequence = small(kind), frames(2, 8)
    ours, theirs = model(*led(sequence)), model(*led(swapped(sequence)))
    for name, value in values(ours).items():
        torch.testing.assert_close(value.flip(2), values(theirs)[name], atol=1e-5, rtol=1e-4)


def test_the_fighter_view_is_the_same_in_a_mirror() -> None:
    model, sequence = small("mamba"), replace(frames(2, 8), stage=torch.full((2, 8), BATTLEFIELD))
    state, control = sequence.state.clone(), sequence.control.clone()
    state[..., SIDEWAYS] *= -1
    state[..., FACING] = 1 - state[..., FACING]
    control[..., [0, 2]] = 1 - control[..., [0, 2]]
    ours, theirs = model(*led(sequence)), model(*led(replace(sequence, state=state, control=control)))
    signs = {"continuous": [1, -1, 1, 1], "velocity": [-1, 1, -1, -1, 1], "binary": [-1, 1, 1]}
    for name, value in values(ours).items():
        mirrored = values(theirs)[name] * torch.tensor(signs.get(name, [1])).float()
        torch.testing.assert_close(value, mirrored, atol=1e-5, rtol=1e-4, msg=called(name))


@pytest.mark.parametrize("seed", [None, 3])
def test_a_branch_goes_its_own_way(seed: int | None) -> None:
    model, past = small("mamba"), frames(1, 6)
    first, second = frames(1, 8, seed=1).control, frames(1, 8, seed=2).control
    stream = Stream(model, past, seed)
    for t in range(3):
        stream.step(first[:, t])
    branch = stream.branch()
    for t in range(3, 8):
        branch.step(second[:, t])
        stream.step(first[:, t])
    torch.testing.assert_close(stream.frame.state, roll(model, past, first, seed).state[:, -1])
    if seed is not None:  # of a model that knows little every other hit is one
        assert not torch.equal(stream.frame.state, roll(model, past, first, seed + 1).state[:, -1])


@pytest.mark.parametrize("view", ["fighter", "joint"])
def test_jumps_may_have_seven_values(view: str) -> None:
    torch.manual_seed(0)
    model = WorldModel(architecture="mlp", view=view, d_model=64, n_layers=1, K=3, carry=False, jumps=7).eval()
    sequence = frames(2, 5)
    sequence.ints[..., JUMPS] = 7  # beyond the end: the last
    with torch.no_grad():
        said = model(*led(sequence))
    assert said.classes["jumps"].shape[-1] == 7
    losses = pass_losses(Objective(), said, sequence.at(slice(2, -1)), sequence.at(slice(2, None)))
    assert losses["jumps"].total.isfinite()
    sequence.ints[..., JUMPS] = 6
    with torch.no_grad():
        torch.testing.assert_close(model(*led(sequence)).classes["jumps"], said.classes["jumps"])


def test_a_checkpoint_without_combat_heads_loads_and_carries_them_forward() -> None:
    whole, other = small("mlp", "joint"), small("mlp", "joint")
    state = {name: tensor + 0.01 for name, tensor in whole.state_dict().items()}
    older = {
        name: tensor
        for name, tensor in state.items()
        if not ("_head" in name and ("ground" in name or "l_cancel" in name))
    }
    assert other.load(older) == ["l_cancel", "ground"]
    assert whole.load(state) == []
    past, led_by = frames(2, 3), frames(2, 4, seed=1).control
    rolled, full = roll(other, past, led_by), roll(whole, past, led_by)
    for column in (L_CANCEL, GROUND):
        assert torch.equal(rolled.ints[..., column], past.ints[:, -1:, :, column].expand(-1, 4, -1))
    assert torch.equal(rolled.ints[:, 0, :, ACTION], full.ints[:, 0, :, ACTION])
    with pytest.raises(RuntimeError, match="velocity_head"):
        other.load({name: tensor for name, tensor in state.items() if "velocity_head" not in name})
    with pytest.raises(RuntimeError, match="heads"):
        small("mlp").load({})
