"""Play: what keys do, what the model's world keeps to, and what is drawn."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from engines.contract.scenes import Line, Press, Seek, Text, Words, encode
from engines.tasks.live import TAPE, Live
from projects.melee.frames import (
    ACTION,
    CHARACTER,
    CONTROL,
    HURTBOX,
    INVULNERABLE,
    JUMPS,
    PERCENT,
    SCALE,
    STOCKS,
    Frames,
    X,
    Y,
    stack,
)
from projects.melee.games import GameWindows
from projects.melee.pads import HELD, KEYS, Pad, shown
from projects.melee.play import PATIENCE, MeleeSession, State
from projects.melee.rules import RESPAWN_HEIGHT, outside
from projects.melee.stage import view
from projects.melee.store import Store
from tests.projects.melee.made import frames
from tests.projects.melee.test_world import small

PAST = 12


def session(second: str = "keys", folder: Path = Path("nowhere")) -> MeleeSession:
    game = frames(1, 40)
    game.state[..., STOCKS] = 4 * SCALE[STOCKS]
    return MeleeSession(small("mamba"), game, PAST, name="a game", folder=folder, second=second)


def held(pad: Pad) -> dict[str, float]:
    """What is not at rest."""
    rest = Pad().control()
    return {
        name: round(value, 3)
        for name, value, still in zip(CONTROL, pad.control().tolist(), rest.tolist(), strict=True)
        if value != still
    }


def test_the_stick_stays_until_its_opposite_or_until_it_is_let_go() -> None:
    pad = Pad().pressed("left")
    for _ in range(100):
        pad = pad.after_frame()
    assert held(pad) == {"main_x": 0.0}
    assert held(pad.pressed("up")) == {"main_x": 0.0, "main_y": 1.0}
    assert held(pad.pressed("right")) == {"main_x": 1.0}
    assert held(pad.pressed("up").pressed("neutral")) == {}


@pytest.mark.parametrize(
    ("key", "column", "value"), [("attack", "A", 1.0), ("jump", "X", 1.0), ("smash-up", "c_y", 1.0)]
)
def test_a_tap_is_held_some_frames(key: str, column: str, value: float) -> None:
    pad = Pad().pressed(key)
    for _ in range(HELD):
        assert held(pad) == {column: 1.0}
        pad = pad.after_frame()
    assert held(pad) == {}


def test_the_shield_is_held_until_it_is_pressed_again() -> None:
    pad = Pad().pressed("shield").after_frame()
    assert held(pad) == {"L": 1.0, "shoulder": 1.0}
    assert held(pad.pressed("shield")) == held(pad.pressed("neutral")) == {}
    assert shown(pad.pressed("left").pressed("attack").control()) == "← A L"


def test_no_key_means_two_things() -> None:
    actions = [*TAPE, *KEYS, *session().actions]
    keys = [key for action in actions for key in action.key.split(",")]
    assert len(set(keys)) == len(keys)
    assert len({action.id for action in actions}) == len(actions)


def test_random_inputs_break_no_rule() -> None:
    playing, keys = session(), random.Random(0)
    state = playing.begin()
    for _ in range(400):
        presses = [Press(keys.choice(KEYS).id, viewer=seat) for seat in ("p1", "p2") if keys.random() < 0.3]
        before, state = state, playing.step(state, presses, ("p1", "p2"))
        frame = state.stream.frame
        assert frame.state.isfinite().all()
        assert (frame.value(PERCENT) >= 0).all()
        assert (frame.value(STOCKS) <= before.stream.frame.value(STOCKS) + 1e-4).all()
        if state.over:
            break
        assert state.frame == before.frame + 1
    assert len(encode(playing.scene(state))) < 20_000


def test_a_step_changes_nothing_that_it_was_given() -> None:
    playing = session()
    first = playing.step(playing.begin(), [Press("left", viewer="p1")], ("p1",))
    once = playing.step(first, [Press("attack", viewer="p1")], ("p1",))
    playing.step(first, [Press("right", viewer="p1")], ("p1",))
    again = playing.step(first, [Press("attack", viewer="p1")], ("p1",))
    assert torch.equal(once.stream.frame.state, again.stream.frame.state)
    assert torch.equal(once.stream.frame.control, again.stream.frame.control)


def controls_of_second(second: str, viewers: tuple[str, ...]) -> torch.Tensor:
    playing = session(second)
    state = playing.step(playing.begin(), [Press("jump", viewer="p2")], viewers)
    return state.stream.frame.control[0, 1]


def test_who_plays_the_second_fighter() -> None:
    real = frames(1, 40).control[0, PAST, 1]
    jumps = Pad().pressed("jump").control()
    assert torch.equal(controls_of_second("replay", ("p1",)), real)
    assert torch.equal(controls_of_second("replay", ("p1", "p2")), jumps)
    assert torch.equal(controls_of_second("still", ("p1",)), Pad().control())
    assert torch.equal(controls_of_second("keys", ("p1",)), jumps)


def test_who_stays_beyond_the_blast_zone_loses_a_stock() -> None:
    playing = session()
    begun = playing.begin()
    stream = begun.stream.branch()
    stream.frame = stream.frame.map(torch.clone)
    stream.frame.ints[..., ACTION] = 29  # it falls, and the model lets it
    stream.frame.state[0, :, X] = torch.tensor([290.0, 0.0]) * SCALE[X]
    stream.frame.state[0, :, PERCENT] = 0.5
    assert outside(stream.frame).tolist() == [[True, False]]
    patient = playing.step(State(stream, begun.pads, 0, (PATIENCE - 2, 0)), [], ("p1",))
    assert patient.lost == (PATIENCE - 1, 0)
    frame = playing.step(patient, [], ("p1",)).stream.frame
    before = patient.stream.frame.value(STOCKS)[0]
    assert float(frame.value(STOCKS)[0, 0]) <= float(before[0]) - 1
    assert (float(frame.value(X)[0, 0]), float(frame.value(PERCENT)[0, 0])) == (0, 0)
    assert float(frame.value(Y)[0, 0]) == pytest.approx(RESPAWN_HEIGHT)
    assert float(frame.value(PERCENT)[0, 1]) > 0


def test_the_scene_shows_stage_fighters_and_the_real_game() -> None:
    playing = session()
    state = playing.begin()
    scene = playing.scene(state)
    texts = [item.text for item in scene.view.items if isinstance(item, Text)]
    assert any(text.startswith("P1 ") for text in texts)
    assert any(text.startswith("P2 ") for text in texts)
    kinds = {item.kind for item in scene.view.items if isinstance(item, Line)}
    assert {"plain", "first", "second", "faint"} <= kinds
    playing.act(Press("ghost"), [state])
    kinds = {item.kind for item in playing.scene(state).view.items if isinstance(item, Line)}
    assert "faint" not in kinds
    assert len(scene.panels) == 2


def test_both_fighters_are_in_sight() -> None:
    frame: Frames = frames(1, 1).at(0)
    for x, y in ((-180.0, 90.0), (150.0, -80.0), (0.0, 0.0)):
        frame.state[0, 0, X], frame.state[0, 0, Y] = x * SCALE[X], y * SCALE[Y]
        shown_part = view(frame, None)
        assert shown_part.low[0] < x < shown_part.high[0]
        assert shown_part.low[1] < y < shown_part.high[1]


def test_the_engine_plays_rewinds_and_branches() -> None:
    lines: list[str] = []
    live = Live(session(), lambda: ("p1",), lines.append, 50)
    live.obey(Press("play", viewer="p1"), 0.0)
    for k in range(1, 21):
        live.advance(k * 10.0)  # late, every time: none is skipped
    scene = live.scene()
    assert (scene.position, scene.total, scene.speed, scene.unit) == (20, 21, 0.25, "frame")
    live.obey(Seek(5), 300.0)
    live.obey(Press("right", viewer="p1"), 300.0)
    live.obey(Press("on", viewer="p1"), 300.0)
    scene = live.scene()
    assert (scene.position, scene.total) == (6, 7)
    assert any("branched off at step 5" in line for line in lines)
    assert any("→" in span.text for row in scene.panels[0].rows if isinstance(row, Words) for span in row.spans)


def test_the_tape_fits_into_its_bytes() -> None:
    playing = session()
    assert 300 <= playing.longest_tape <= 36_000
    assert 2 * 2 * 64 * 64 * 4 < playing.begin().stream.size < 100_000  # the state of two rows, and little beside it


def test_what_was_played_is_a_store_that_reads_the_same(tmp_path: Path) -> None:
    playing = session(folder=tmp_path)
    tape = [playing.begin()]
    for key in ("left", "attack", "shield", "up", "jump"):
        tape.append(playing.step(tape[-1], [Press(key, viewer="p1")], ("p1",)))
    playing.act(Press("write"), tape)
    assert playing.scene(tape[-1]).note == "6 frames are in played_1"
    store = Store(tmp_path / "played_1")
    assert [placed.game.name for placed in store.games] == ["played_1"]
    read = GameWindows(store, store.games, 6, 0, torch.device("cpu")).frames(np.array([0]), np.array([0]), 6)
    played = stack([state.stream.frame for state in tape])
    torch.testing.assert_close(read.state[..., :INVULNERABLE], played.state[..., :INVULNERABLE], atol=1e-5, rtol=1e-5)
    same = [ACTION, JUMPS, CHARACTER, HURTBOX]
    assert torch.equal(read.ints[..., same], played.ints[..., same])
    torch.testing.assert_close(read.control[:, 1:, 0], played.control[:, 1:, 0], atol=1e-6, rtol=0)
    assert int(read.stage[0, 0]) == int(played.stage[0, 0])
    playing.act(Press("write"), tape)
    assert (tmp_path / "played_2").is_dir()
