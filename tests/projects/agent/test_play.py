"""A small run from its config to its report, its export and what play shows of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engines.basics import yaml12
from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Box, Gauge, Line, Scene, Text, Words, encode
from engines.runs import launch
from engines.runs.fork import prepare_fork
from engines.runtime.attempt import carry_out
from engines.training.engine import train
from projects.agent.baselines import CEILING, LINEAR, REPEAT
from projects.agent.export import ABOUT, WEIGHTS, export
from projects.agent.layout import NEWEST, NONE, UNKNOWN
from projects.agent.look import draw
from projects.agent.net import build
from projects.agent.opened import Opened, open_agent, placed
from projects.agent.play import AgentSession, way
from projects.agent.shown import Filmed, Shown, film, show
from tests.projects.agent.runs import config, games
from tests.projects.controls.task_context import Listener

HORIZON = 9


def nothing(done: int, total: int) -> None:
    """Progress that nobody hears."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished run."""
    base = tmp_path_factory.mktemp("trained")
    settings = config(games(base / "games")).model_dump(mode="json", exclude_none=True)
    (base / "config.yaml").write_text(yaml12.write(settings))
    run = launch.prepare_training(base / "config.yaml", [], run_dir=base / "runs" / "a-run")
    assert carry_out(run, 1, train) == 0
    return run


@pytest.fixture(scope="module")
def opened(trained: RunDirectory) -> Opened:
    return open_agent(trained)


@pytest.fixture(scope="module")
def shown(opened: Opened) -> Shown:
    with torch.inference_mode():
        return show(opened.net, opened.cfg, opened.recording(""), HORIZON, nothing)


@pytest.fixture(scope="module")
def filmed(opened: Opened) -> list[Filmed]:
    return film(opened.net, opened.cfg, 4, 30, nothing)


def test_the_report_has_baselines_ceilings_dreams_and_players(trained: RunDirectory) -> None:
    tables = json.loads(trained.report.read_text())["tables"]
    actions = {row[0] for row in tables["Actions"]["rows"]}
    assert {"this run", REPEAT, LINEAR, CEILING, f"skill over {REPEAT}"} <= actions
    changes = {row[0]: row[2] for row in tables["Actions"]["rows"]}
    assert changes[REPEAT] == 0
    assert [row[0] for row in tables["Rewards"]["rows"]] == list(range(9))
    assert [row[0] for row in tables["Dreams"]["rows"]] == list(range(1, 7))
    players = {row[0]: row[1] for row in tables["Played"]["rows"]}
    assert players["careful expert"] > players["expert"]
    assert {"this run, sampled", "this run, greedy", "prior, sampled", "prior, greedy"} <= players.keys()
    assert len(tables["stages"]["rows"]) == 3


def test_the_export_says_how_to_build_the_model(trained: RunDirectory) -> None:
    (trained.export / WEIGHTS).unlink()
    export({"run": str(trained.path)}, Listener())
    about = json.loads((trained.export / ABOUT).read_text())
    net = build(open_agent(trained).cfg, tuple(about["latents"]))
    assert (net.reward.offsets, net.policy.offsets) == (9, 8)
    net.load_state_dict(torch.load(trained.export / WEIGHTS, weights_only=True))
    assert about["layout"]["abilities"][0] == "q"
    cloned = Listener()
    export({"run": str(trained.path), "stage": 2}, cloned)
    assert cloned.lines[0].startswith("epoch 2")


def test_a_run_from_before_reward_8_opens_and_keeps_its_eight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record says nothing of editions; a fork of it has its weights, so their shape too."""
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    stage = {"name": "world", "epochs": 1}
    settings = config(games(tmp_path / "games"), training={"epochs": 1, "steps_per_epoch": 2, "stages": [stage]})
    (tmp_path / "config.yaml").write_text(yaml12.write(settings.model_dump(mode="json", exclude_none=True)))
    run = launch.prepare_training(tmp_path / "config.yaml", [], run_dir=tmp_path / "runs" / "old")
    info = json.loads(run.info_file.read_text())
    assert info.pop("edition") == NEWEST
    run.info_file.write_text(json.dumps(info))
    assert carry_out(run, 1, train) == 0
    assert [row[0] for row in json.loads(run.report.read_text())["tables"]["Rewards"]["rows"]] == list(range(8))
    assert open_agent(run).net.reward.offsets == 8
    fork, _ = prepare_fork(run, ["training.stages.0.epochs=2", "training.epochs=2"])
    assert fork.info.edition == 1


def test_a_game_is_found_by_either_of_its_files(opened: Opened, tmp_path: Path) -> None:
    folder = Path(opened.cfg.data.path)
    name = opened.validated[0]
    assert placed(folder / "features" / name / "features.json") == placed(folder / "latents" / f"{name}.npz")
    assert opened.recording(str(folder / "latents" / f"{name}.npz")).name == name
    with pytest.raises(DataError, match="is not a file of a game"):
        opened.recording(str(tmp_path / "x.json"))
    with pytest.raises(DataError, match="so set horizon lower"):
        show(opened.net, opened.cfg, opened.recording(""), 200, nothing)


def test_dreams_begin_one_after_the_other_with_true_frames(opened: Opened, shown: Shown) -> None:
    context = opened.cfg.imagination.context
    assert shown.age[:context].tolist() == [0] * context
    assert shown.age[context : context + 2 * HORIZON].tolist() == [*range(1, HORIZON + 1)] * 2
    dreamed = shown.age > 0
    deviation = opened.net.deviation.numpy()
    off = ((shown.dreamed - shown.latents)[dreamed] / deviation) ** 2
    np.testing.assert_allclose(shown.error[dreamed], np.sqrt(off.mean((1, 2, 3))), rtol=1e-3, atol=1e-4)
    first = shown.error[shown.age == 1].mean()
    assert shown.error_by_horizon[0] == pytest.approx(first, rel=1e-4)
    begins = np.flatnonzero(shown.age == 1)
    still = ((shown.latents[begins - 1] - shown.latents[begins]) / deviation) ** 2
    assert shown.still_by_horizon[0] == pytest.approx(np.sqrt(still.mean((1, 2, 3))).mean(), rel=1e-3)


def test_predictions_lie_on_the_frames_that_they_are_about(opened: Opened, shown: Shown) -> None:
    """The same as the whole sequence gives, up to the noise on what is looked back at."""
    known = ~np.isnan(shown.said_movement[:, 0])
    last = int(np.flatnonzero(shown.age)[-1])
    assert known.tolist() == [0 < frame <= last for frame in range(len(shown))]
    np.testing.assert_allclose(shown.said_movement[known].sum(1), 1, rtol=1e-4)
    assert (~np.isnan(shown.value)).tolist() == [frame <= last for frame in range(len(shown))]


def test_episodes_come_worst_first(filmed: list[Filmed]) -> None:
    totals = [one.total for one in filmed]
    assert totals == sorted(totals)
    for one in filmed:
        assert one.latents.shape == (30, 4, 3, 3)
        assert one.total == pytest.approx(0.01 * one.gold - 10 * one.deaths, abs=1e-3)


def test_every_scene_can_be_sent_and_says_where_it_is(opened: Opened, shown: Shown, filmed: list[Filmed]) -> None:
    session = AgentSession(opened, shown, filmed)
    assert session.total == len(shown) + 4 * 30
    for position in range(0, session.total, 7):
        assert len(encode(session.scene(position))) < 100_000
    first = session.act("episode", 3)
    assert first == len(shown)
    assert session.act("episode", first) == first + 30
    assert session.act("episode", session.total - 1) == first
    assert session.act("game", first) == 0
    assert "worst of 4" in session.scene(first).title
    event = session.act("event", 0)
    assert shown.events[event]
    assert session.act("back-event", event + 1) == event


def test_recorded_and_predicted_actions_are_named_and_marked_where_they_differ(opened: Opened, shown: Shown) -> None:
    """In words and signs, which need no colour."""
    session = AgentSession(opened, shown, [])
    marked = []
    for frame in range(1, 40):
        done, said = int(shown.movement[frame]), int(shown.said_movement[frame].argmax())
        recorded, predicted = ("".join(span.text for span in words(session.scene(frame), row)) for row in (0, 2))
        assert recorded.split(" changes")[0] == f"recorded {way(done)}"
        assert recorded.endswith(" changes") == (done != int(shown.movement[frame - 1]))
        assert predicted == f"predicted {way(said)}{' ≠' * (done != said)}"
        marked.append(done != said)
    assert {True} <= set(marked)
    frame = 20
    scene = session.scene(frame)
    chance = next(row for row in scene.panels[0].rows if isinstance(row, Gauge) and row.label == "chance")
    assert chance.value == pytest.approx(shown.said_movement[frame][shown.movement[frame]], abs=1e-3)
    horizons = [row for row in scene.panels[2].rows if isinstance(row, Gauge)]
    assert [row.label for row in horizons] == ["1 frame", "2 frames", "4 frames", "8 frames", "here"]
    assert horizons[0].other == pytest.approx(float(shown.still_by_horizon[0]), abs=1e-3)


def test_what_is_said_fits_80_columns(opened: Opened, shown: Shown, filmed: list[Filmed]) -> None:
    """The title above a picture of 30 columns, the words beside it: two columns of rows where there are many."""
    used = replace(shown, used=np.ones(8, bool))
    session = AgentSession(opened, used, filmed)
    for position in range(session.total):
        scene = session.scene(position)
        assert len(scene.view.title) <= 26
        for panel in scene.panels:
            assert len(panel.title) <= 46
            width = 23 if len(panel.rows) > 8 else 47
            said = [row.spans for row in panel.rows if isinstance(row, Words)]
            assert all(sum(len(span.text) for span in spans) <= width for spans in said)
            assert all(len(row.label) <= 0.4 * width for row in panel.rows if isinstance(row, Gauge))


def words(scene: Scene, row: int) -> list[Text]:
    """The spans of a row of the first panel."""
    found = scene.panels[0].rows[row]
    assert isinstance(found, Words)
    return found.spans  # type: ignore[return-value]


def test_movements_in_words() -> None:
    assert [way(movement) for movement in (0, 4, 9, 13, NONE, UNKNOWN)] == [
        "→ 0°", "↑ 80°", "← 180°", "↓ 260°", "stays", "?",
    ]  # fmt: skip


def test_things_are_drawn_where_they_are(opened: Opened, filmed: list[Filmed]) -> None:
    one = filmed[-1]
    boxes = [item for item in draw(opened, one.latents[0], 0.0, "second") if isinstance(item, Box)]
    assert {"second", "bad", "good"} <= {box.kind for box in boxes}
    assert all(0 <= box.x <= 1 and box.x + box.width <= 1 + 1e-6 for box in boxes)


@pytest.mark.parametrize(("life", "kind", "share"), [(1.0, "good", 1.0), (0.25, "bad", 0.25)])
def test_a_player_is_in_the_middle_under_a_bar_of_its_life(
    opened: Opened, life: float, kind: str, share: float
) -> None:
    latents = np.zeros((4, 3, 3), np.float32)
    latents[-1] = life
    items = draw(opened, latents, 1.0, "first")
    player = items[1]
    assert isinstance(player, Box)
    assert (player.x + player.width / 2, player.y + player.height / 2) == pytest.approx((1.5, 0.5))
    full, left = (item for item in items if isinstance(item, Line))
    assert left.kind == kind
    long, part = (line.points[1][0] - line.points[0][0] for line in (full, left))
    assert part == pytest.approx(share * long)


def test_a_dead_player_is_a_word(opened: Opened) -> None:
    latents = np.zeros((4, 3, 3), np.float32)
    latents[-1] = -0.5
    frame, word = draw(opened, latents, 0.0, "first")
    assert isinstance(frame, Box)
    assert isinstance(word, Text)
    assert word.text == "dead"


def test_latents_without_an_arena_are_a_line_or_a_picture(opened: Opened) -> None:
    plain = replace(opened, arena=False)
    picture = draw(plain, np.zeros((4, 3, 3), np.float32), 0.0, "first")
    assert any(type(item).__name__ == "Image" for item in picture)
    vector = np.zeros((4, 1, 1), np.float32)
    lines = [item for item in draw(plain, vector, 1.0, "first") if isinstance(item, Line)]
    assert len(lines[-1].points) == 4
