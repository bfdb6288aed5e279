"""What a model reads of a frame, and what it says of the next one: both fighters in one row, or a row per fighter.

A view turns `Frames` and the controllers that lead into the next frame into rows for a trunk, and the trunk's answer
into a `Prediction`. `JointView` is the original layout; `FighterView` shares its weights between the
fighters and mirrors everything by the own facing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from projects.melee.frames import (
    ACTION,
    AGE,
    BINARY,
    BUTTONS,
    CHARACTER,
    CLASS_COLUMNS,
    CLASSES,
    CONTINUOUS,
    DYNAMICS,
    FACING,
    GROUND,
    HURTBOX,
    INTS,
    JUMPS,
    L_CANCEL,
    LAST_ATTACK,
    ON_GROUND,
    SCALE,
    SPEED_AIR_X,
    SPEED_ATTACK_X,
    SPEED_ATTACK_Y,
    SPEED_GROUND_X,
    SPEED_Y,
    STATE,
    STICKS,
    VELOCITY,
    VOCABULARY,
    Frames,
    X,
    Y,
    units,
)  # fmt: skip
from projects.melee.rules import Prediction
from projects.melee.surfaces import Surfaces

CONTROLLER = 13
SIDEWAYS = (X, SPEED_AIR_X, SPEED_GROUND_X, SPEED_ATTACK_X)
"""Columns of the state that change their sign in a mirror."""
THRESHOLDS = (0.2875, 0.55, 0.6625, 0.8)
"""Tilts of the stick at which the game acts otherwise."""
STEEP = 40.0
WAVES = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Lengths of the sines of a place, in game units: what sets a platform's height apart from the air just above it."""
SPEED_CLEAR = 10.0
"""What scaled speeds are multiplied by, since a tenth of a unit a frame matters."""
STAY_CLASS, STAY_BIT = 5.0, 4.0
"""First value of what is added to the logit of the present class, or bit."""
ITEM_KINDS = 256
ITEM_STATES = 13


def age_index(frames: Frames) -> Tensor:
    """The age of the action as an index of its table: (…, 2) int64."""
    return frames.value(AGE).round().long().clamp(0, VOCABULARY["state_age"] - 1)


def looked_up(table: nn.Module, index: Tensor) -> Tensor:
    """Rows of an embedding; what is beyond its end takes the last."""
    assert isinstance(table, nn.Embedding)
    found: Tensor = table(index.clamp(max=table.num_embeddings - 1))
    return found


class JointView(nn.Module):
    """Both fighters in one row: embeddings and floats as in the original, with its parameter counts."""

    rows = 1
    extra = 2 * CONTROLLER
    """Width of the controllers that a trunk gets beside the frames."""

    def __init__(
        self, d_model: int, *, embed_age: bool, items: int, kinds: int, jumps: int = VOCABULARY["jumps"]
    ) -> None:
        super().__init__()
        self.embed_age, vocabulary = embed_age, {**VOCABULARY, "jumps": jumps}
        self.silent: frozenset[str] = frozenset()
        """Class heads that say nothing, since a checkpoint lacked them."""
        sizes = {"action": 32, "jumps": 4, "character": 8, "l_cancel": 2, "hurtbox": 2, "ground": 4, "last_attack": 8}
        if embed_age:
            sizes["state_age"] = 8
        self.tables = nn.ModuleDict({name: nn.Embedding(vocabulary[name], size) for name, size in sizes.items()})
        self.stage = nn.Embedding(VOCABULARY["stage"], 4)
        self.items = ItemTables(kinds) if kinds else None
        floats = len(STATE) - embed_age + CONTROLLER + items + 8 * kinds // 2 + kinds // 2
        self.width = 2 * (sum(sizes.values()) + floats) + 4
        self.continuous_head = nn.Linear(d_model, 8)
        self.velocity_head = nn.Linear(d_model, 10)
        self.dynamics_head = nn.Linear(d_model, 6)
        self.binary_head = nn.Linear(d_model, 6)
        for name in CLASSES:
            for player in ("p0", "p1"):
                self.add_module(f"{player}_{name}_head", nn.Linear(d_model, vocabulary[name]))

    def forward(self, frames: Frames, control: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (batch, time, 1, width) and controllers (batch, time, 1, 26)."""
        state = frames.state
        if self.embed_age:
            state = torch.cat([state[..., :AGE], state[..., AGE + 1 :]], dim=-1)
        parts = [state, frames.control, frames.items]
        parts += [looked_up(table, self._index(name, frames)) for name, table in self.tables.items()]
        if self.items is not None:
            parts.append(self.items(frames.kinds))
        both = torch.cat(parts, dim=-1).flatten(-2)
        row = torch.cat([both, self.stage(frames.stage)], dim=-1)
        return row[..., None, :], control.flatten(-2)[..., None, :]

    def _index(self, name: str, frames: Frames) -> Tensor:
        return age_index(frames) if name == "state_age" else frames.ints[..., INTS.index(name)]

    def read(self, hidden: Tensor, frames: Frames, control: Tensor) -> Prediction:
        """What the trunk's rows (batch, time, 1, d_model) say."""
        row = hidden[..., 0, :]
        classes = {
            name: torch.stack([getattr(self, f"{player}_{name}_head")(row) for player in ("p0", "p1")], dim=-2)
            for name in CLASSES if name not in self.silent
        }  # fmt: skip

        def both(head: nn.Linear) -> Tensor:
            said: Tensor = head(row)
            return said.reshape(*said.shape[:-1], 2, -1)

        motion = both(self.continuous_head), both(self.velocity_head), both(self.dynamics_head)
        return Prediction(*motion, both(self.binary_head), classes)


class ItemTables(nn.Module):
    """Embeddings of what flies about: types, and states as a share."""

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.count = kinds // 2
        self.kind = nn.Embedding(ITEM_KINDS, 8)

    def forward(self, kinds: Tensor) -> Tensor:
        types, states = kinds[..., : self.count], kinds[..., self.count :]
        return torch.cat([self.kind(types).flatten(-2), states.float() / ITEM_STATES], dim=-1)


HEAD_SIZES = {
    "continuous": 4, "velocity": 5, "dynamics": 3, "gate": 2, "land": 1, "reset": 5,
    "binary": 3, **{name: VOCABULARY[name] for name in CLASSES}, "age": 2, "hit": 1,
}  # fmt: skip
MOTION = ("continuous", "velocity", "dynamics", "gate", "land", "reset")
"""Heads that come first: what they say depends on the next action too."""
MOTION_SIZE, DELTAS = sum(HEAD_SIZES[name] for name in MOTION), sum(HEAD_SIZES[name] for name in MOTION[:3])
SHUT = -4.0
"""First logit of a gate that opens where the data says so."""


PARTS = {
    "stay": "what is added to the logit of the present class or bit",
    "reset": "speeds that begin again from nothing",
    "ground": "where the ground below is, and landing on it",
    "by_action": "motion heads that see the next action",
}
"""What `FighterView` can be built without."""


class FighterView(nn.Module):
    """A row per fighter, seen from itself; both rows share all weights.

    Args:
        kinematic: place the fighter by its predicted speed times a learned gate, plus a residual.
        without: of `PARTS`; their weights stay where they are and say nothing.
    """

    rows = 2
    extra = 0

    def __init__(
        self, d_model: int, *, kinematic: bool, items: int, kinds: int, jumps: int = VOCABULARY["jumps"],
        without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__()
        vocabulary = {**VOCABULARY, "jumps": jumps}
        self.sizes = {**HEAD_SIZES, "jumps": jumps}
        self.kinematic, self.without = kinematic, frozenset(without)
        self.silent: frozenset[str] = frozenset()
        actions, ages, characters = (VOCABULARY[name] for name in ("action", "state_age", "character"))
        self.action = nn.Embedding(actions, 32)
        self.other_action = nn.Embedding(actions, 16)
        self.age = nn.Embedding(ages, 8)
        self.character = nn.Embedding(characters, 8)
        self.other_character = nn.Embedding(characters, 8)
        self.small = nn.ModuleDict(
            {name: nn.Embedding(vocabulary[name], size)
             for name, size in (("jumps", 4), ("l_cancel", 2), ("hurtbox", 2), ("ground", 4), ("last_attack", 8))}
        )  # fmt: skip
        self.stage = nn.Embedding(VOCABULARY["stage"], 6)
        # pairs are rare: from zeros, one that is never seen says nothing
        self.action_age = nn.Embedding(actions * ages, 24)
        self.character_action = nn.Embedding(characters * actions, 24)
        for table in (self.action_age, self.character_action):
            nn.init.zeros_(table.weight)
        self.items = ItemTables(kinds) if kinds else None
        embedded = 32 + 16 + 8 + 8 + 8 + 20 + 6 + 24 + 24 + 24
        self.surfaces = Surfaces()
        floats = 2 * len(STATE) + 2 + 3 * CONTROLLER + 8 + 4 * len(THRESHOLDS) + 4 * len(WAVES) + Surfaces.width
        self.width = embedded + floats + items + 8 * kinds // 2 + kinds // 2
        self.heads = nn.Linear(d_model, sum(self.sizes.values()))
        nn.init.zeros_(self.heads.weight[:DELTAS])  # no change: in game units even a small one is a large loss
        self.by_action = nn.Linear(actions, MOTION_SIZE, bias=False)
        nn.init.zeros_(self.by_action.weight)
        stay = torch.tensor([STAY_CLASS] * len(CLASSES) + [STAY_BIT] * 3)
        self.stay = nn.Parameter(stay * ("stay" not in self.without), requires_grad="stay" not in self.without)
        self.by_action.requires_grad_("by_action" not in self.without)
        clear = torch.ones(len(STATE))
        clear[VELOCITY] = SPEED_CLEAR
        self.register_buffer("clear", clear, persistent=False)
        self.register_buffer("thresholds", torch.tensor(THRESHOLDS), persistent=False)
        self.register_buffer("waves", 2 * torch.pi / torch.tensor(WAVES), persistent=False)

    clear: Tensor
    thresholds: Tensor
    waves: Tensor

    def forward(self, frames: Frames, control: Tensor) -> tuple[Tensor, None]:
        """Rows (batch, time, 2, width): the controllers are in them."""
        side = _side(frames)
        own = mirrored(frames.state, side)
        other = mirrored(frames.state.flip(-2), side)
        clear = self.clear
        apart = (other - own)[..., X : Y + 1]
        now = facing_sticks(frames.control, side)
        pressed, others = facing_sticks(control, side), facing_sticks(control.flip(-2), side)
        fresh = ((pressed - now)[..., BUTTONS] > 0.5).float()
        floats = [
            own * clear,
            other * clear,
            apart,
            now,
            pressed,
            others,
            fresh,
            self._tilts(pressed),
            self._places(frames, own),
            self.surfaces(frames, self.surfaces.below(frames)) * ("ground" not in self.without),
        ]
        return torch.cat([*floats, *self._embedded(frames), self._near(frames, side)], dim=-1), None

    def _tilts(self, pressed: Tensor) -> Tensor:
        stick = pressed[..., :2, None]
        tilts = torch.cat([stick - self.thresholds, -stick - self.thresholds], dim=-1)
        return (STEEP * tilts).sigmoid().flatten(-2)

    def _places(self, frames: Frames, own: Tensor) -> Tensor:
        height = (own[..., Y] + own[..., SPEED_Y] + own[..., SPEED_ATTACK_Y]) / SCALE[Y]
        angles = torch.stack([height, own[..., X] / SCALE[X]], dim=-1)[..., None] * self.waves
        return torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2)

    def _embedded(self, frames: Frames) -> list[Tensor]:
        ints, age = frames.ints, age_index(frames)
        action, character = ints[..., ACTION], ints[..., CHARACTER]
        columns = {
            "jumps": JUMPS,
            "l_cancel": L_CANCEL,
            "hurtbox": HURTBOX,
            "ground": GROUND,
            "last_attack": LAST_ATTACK,
        }
        moment = self.action_age(action * VOCABULARY["state_age"] + age)
        return [
            self.action(action), self.age(age), self.character(character),
            self.other_action(action.flip(-1)), self.other_character(character.flip(-1)),
            *(looked_up(table, ints[..., columns[name]]) for name, table in self.small.items()),
            self.stage(frames.stage)[..., None, :].expand(*action.shape, -1),
            moment, moment.flip(-2),
            self.character_action(character * VOCABULARY["action"] + action),
        ]  # fmt: skip

    def _near(self, frames: Frames, side: Tensor) -> Tensor:
        """What flies about, its distance sideways mirrored too."""
        if self.items is None:
            return frames.items
        sign = torch.ones_like(frames.items)
        sign[..., : 3 * self.items.count : 3] = side
        return torch.cat([frames.items * sign, self.items(frames.kinds)], dim=-1)

    def read(self, hidden: Tensor, frames: Frames, control: Tensor) -> Prediction:
        """What the trunk's rows (batch, time, 2, d_model) say, turned back from the mirror."""
        said = dict(
            zip(self.sizes, torch.split(self.heads(hidden).float(), list(self.sizes.values()), dim=-1), strict=True)
        )
        classes = {}
        for k, (name, column) in enumerate(zip(CLASSES, CLASS_COLUMNS, strict=True)):
            here = frames.ints[..., column, None].clamp(max=self.sizes[name] - 1)
            classes[name] = said[name].scatter_add(-1, here, self.stay[k].expand(here.shape))
        moved = self.by_action(classes["action"].detach().softmax(-1))
        for name, part in zip(MOTION, torch.split(moved, [HEAD_SIZES[name] for name in MOTION], dim=-1), strict=True):
            said[name] = said[name] + part
        side, scale = _side(frames), units(hidden.device)
        velocity = said["velocity"] * scale[VELOCITY]
        velocity = torch.cat(
            [velocity[..., :1] * side, velocity[..., 1:2], velocity[..., 2:4] * side, velocity[..., 4:]], -1
        )
        if "reset" not in self.without:
            velocity = velocity - (said["reset"] + SHUT).sigmoid() * frames.state[..., VELOCITY]
        present = frames.state[..., BINARY]
        binary = torch.cat([said["binary"][..., :1] * side, said["binary"][..., 1:]], dim=-1)
        binary = binary + self.stay[len(CLASSES) :] * (2 * present - 1)
        change = said["continuous"] * scale[CONTINUOUS]
        move = torch.cat([change[..., X : X + 1] * side, change[..., Y : Y + 1]], dim=-1)
        if self.kinematic:
            moved = self._kinematic(said["gate"], frames.state[..., SPEED_AIR_X:AGE] + velocity, binary)
            move = move + (moved if "ground" in self.without else self._landed(moved, said["land"], frames))
        return Prediction(
            torch.cat([change[..., :1], move, change[..., 3:]], dim=-1), velocity,
            frames.state[..., DYNAMICS] + said["dynamics"] * scale[DYNAMICS], binary, classes, said["age"], said["hit"],
        )  # fmt: skip

    def _kinematic(self, gate: Tensor, speed: Tensor, binary: Tensor) -> Tensor:
        """Gate · (own speed + knockback): (…, 2, 2). On the ground the ground's speed moves it sideways."""
        grounded = binary[..., ON_GROUND - FACING].sigmoid()
        own = torch.lerp(speed[..., 0], speed[..., 2], grounded)
        moved = torch.stack([own + speed[..., 3], speed[..., 1] + speed[..., 4]], dim=-1)
        return (gate - SHUT).sigmoid() * moved

    def _landed(self, moved: Tensor, land: Tensor, frames: Frames) -> Tensor:
        """The same, ended at the ground below as far as `land: (…, 2, 1)` says so: (…, 2, 2)."""
        below = self.surfaces.below(frames)
        to_ground = torch.where(below.exists, -below.drop * SCALE[Y], moved[..., 1])
        return torch.stack(
            [moved[..., 0], torch.lerp(moved[..., 1], to_ground, (land[..., 0] + SHUT).sigmoid())], dim=-1
        )


def _side(frames: Frames) -> Tensor:
    """1 where a fighter faces right, else -1: (…, 2, 1)."""
    return 2 * frames.state[..., FACING : FACING + 1] - 1


def mirrored(state: Tensor, side: Tensor) -> Tensor:
    """The state (…, 2, 16) as seen by fighters that face right: facing is 1 for theirs, -1 for the other.

    side: (…, 2, 1), of who looks.
    """
    columns = list(state.unbind(-1))
    look = side[..., 0]
    for column in SIDEWAYS:
        columns[column] = columns[column] * look
    columns[FACING] = (2 * columns[FACING] - 1) * look
    return torch.stack(columns, dim=-1)


def facing_sticks(control: Tensor, side: Tensor) -> Tensor:
    """Controllers (…, 2, 13) with their sticks from -1 to 1, forward positive."""
    sticks = 2 * control[..., STICKS] - 1
    forward = torch.cat([sticks[..., :1] * side, sticks[..., 1:2], sticks[..., 2:3] * side, sticks[..., 3:]], dim=-1)
    return torch.cat([forward, control[..., STICKS.stop :]], dim=-1)
