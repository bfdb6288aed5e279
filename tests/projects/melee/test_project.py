"""A real training of both architectures, shortened: what it reports, exports, rolls out and plays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.basics.errors import DataError, UserError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.tasks import StopRequested, Table
from engines.training.engine import train
from engines.training.project import Context
from engines.training.samples import Ranges
from engines.training.step import split_batch
from engines.training.trained import open_run
from projects.melee import rollouts
from projects.melee.config import MeleeConfig
from projects.melee.evaluate_run import evaluate
from projects.melee.evaluation import fixed_starts
from projects.melee.export import ABOUT, WEIGHTS, export
from projects.melee.games import complete_games
from projects.melee.play import MeleeSession, Order, _real_game
from projects.melee.project import USUAL_FRAMES, Melee, first_ages, past_frames, row_length, samples_in_games
from projects.melee.rollouts import rollout
from projects.melee.scores import MODEL
from projects.melee.spec import SPEC
from projects.melee.store import Store
from tests.projects.controls.task_context import Listener
from tests.projects.melee.tables import columns, write_table
from tests.projects.melee.test_parse import parsed

CPU = torch.device("cpu")
CONFIG = """
project: melee
data: {path: STORE, K: 6, validation: [game_1], test: [game_3]}
model: {architecture: mamba, d_model: 32, n_layers: 1, plain_blocks: 1}
training: {epochs: 2, steps_per_epoch: 4, batch_size: 8, warmup_epochs: 0, lr: 3e-3}
rollouts: {starts: 3, windows: 9}
launch: {device: cpu, threads: 1}
"""
FRAMES = 260


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four games of random numbers; one is a little longer."""
    return stored(tmp_path_factory.mktemp("tables"), range(4), tmp_path_factory.mktemp("store") / "out")


def stored(folder: Path, numbers: Iterable[int], out: Path) -> Path:
    """A store of the games of these numbers."""
    for k in numbers:
        frames = FRAMES + 10 * (k == 2)
        game, random = columns(frames, k), np.random.default_rng(k)
        for player in (game["p0"], game["p1"]):  # nobody is dead, and actions last some frames
            player["action"] = np.repeat(random.integers(14, 400, frames // 5), 5).astype(np.uint16)
        write_table(folder / f"game_{k}.parquet", game)
    parsed(folder, out)
    return out


@pytest.fixture(scope="module")
def trained(store: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished run."""
    base = tmp_path_factory.mktemp("trained")
    (base / "config.yaml").write_text(CONFIG.replace("STORE", str(store)))
    run = launch.prepare_training(base / "config.yaml", [], run_dir=base / "runs" / "a-run")
    assert carry_out(run, 1, train) == 0
    return run


def test_on_the_games_that_validated_it_scores_as_the_run_said(trained: RunDirectory, tmp_path: Path) -> None:
    """The one that validated, in a store of its own; the table's columns, and the rollouts beside the baselines."""
    (tmp_path / "tables").mkdir()
    other = stored(tmp_path / "tables", [1], tmp_path / "out")
    context = Reporter()
    evaluate({"run": str(trained.path), "data": str(other)}, context)
    opened = open_run(trained)
    found = {row[0]: row[1] for row in context.tables["Headline"].rows}
    assert found.pop("score") == pytest.approx(opened.log.best_score, rel=1e-4)
    shown = [column.source.removeprefix("validation.") for column in SPEC.columns if "validation." in column.source]
    assert list(found) == shown
    assert found == pytest.approx({name: opened.values[name] for name in shown}, rel=1e-4, abs=1e-5)
    report = json.loads(trained.report.read_text())["tables"]["Position"]["rows"]
    assert [row[0] for row in context.tables["Position"].rows] == [row[0] for row in report]
    assert "was trained on" not in context.tables["Headline"].note


def test_its_own_store_is_named_and_a_bad_one_refused(trained: RunDirectory, store: Path, tmp_path: Path) -> None:
    context = Reporter()
    evaluate({"run": str(trained.path), "data": str(store)}, context)
    assert "in 4 games" in context.tables["Headline"].note
    assert "was trained on most of them" in context.tables["Headline"].note
    with pytest.raises(DataError, match=str(tmp_path / "nowhere")):
        evaluate({"run": str(trained.path), "data": str(tmp_path / "nowhere")}, Reporter())


def settings(store: Path, tmp_path: Path, *more: str) -> MeleeConfig:
    (tmp_path / "config.yaml").write_text(CONFIG.replace("STORE", str(store)))
    cfg = load_config(tmp_path / "config.yaml", list(more)).settings
    assert isinstance(cfg, MeleeConfig)
    return cfg


class Reporter(Listener):
    def report(self, tables: Mapping[str, Table]) -> None:
        self.tables = tables


def test_the_table_and_the_report_are_filled(trained: RunDirectory) -> None:
    rows = [json.loads(line) for line in (trained.path / "metrics" / "val_metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 2
    for name in ("loss", "action_accuracy", "change_accuracy", "position_10", "velocity_mae", "position_60", "age"):
        assert isinstance(rows[-1][name], float), name
    report = json.loads(trained.report.read_text())["tables"]
    assert {"Position", "Action changes", "Survival", "Rules broken", "Actions by category", "Worst actions"} <= set(
        report
    )
    scores = {row[0]: row[4] for row in report["Position"]["rows"]}  # at 20 frames
    best = max(rows, key=lambda row: row["score"])
    assert best["score"] == pytest.approx(scores["constant velocity"] / scores[MODEL], rel=1e-3)
    assert json.loads((trained.export / ABOUT).read_text())["layout"]["scales"][1] == 0.05


def test_rollouts_are_reported_and_hear_a_stop(trained: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    context = Reporter()
    rollout({"run": str(trained.path), "starts": 4, "horizons": "1,5,20"}, context)
    assert context.told[-1] == (80, 80, "frames")
    assert context.tables["Position"].columns[:4] == ("", "1", "5", "20")
    said = {str(row[0]): str(row[-1]) for row in context.tables["Against the baselines"].rows}
    assert said["Position"].startswith("✗ ")  # the speeds in its data are random
    assert said["Position"].endswith(", 20")
    assert any(line.startswith("Position ") and line.endswith(said["Position"]) for line in context.lines)
    whole = context.tables
    monkeypatch.setattr(rollouts, "BATCH", 3)
    again = Reporter()
    rollout({"run": str(trained.path), "starts": 4, "horizons": "1,5,20"}, again)
    for name in ("Position", "Percent", "Action changes", "Hits", "Rules broken"):
        for ours, theirs in zip(whole[name].rows[:3], again.tables[name].rows[:3], strict=True):
            assert ours[0] == theirs[0]
            assert ours[1:4] == pytest.approx(theirs[1:4], abs=2e-4), name
    drawn = Reporter()
    rollout({"run": str(trained.path), "starts": 4, "horizons": "1,5,20", "draw": True}, drawn)
    sure, likely = (float(str(tables["Hits"].rows[0][1])) for tables in (whole, drawn.tables))
    assert likely > sure  # a model that knows nothing finds many hits likely and none sure
    held_out = Reporter()
    rollout({"run": str(trained.path), "starts": 2, "horizons": "5", "games": "test"}, held_out)
    assert any("2 starts in 1 games" in line for line in held_out.lines)
    with pytest.raises(StopRequested):
        rollout({"run": str(trained.path), "starts": 4, "horizons": "1,5,20"}, Reporter(stop_at=12))


def test_a_run_whose_checkpoint_lacks_heads_says_what_is_carried_forward(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG.replace("STORE", str(store)))
    smaller = ["model.view=joint", "model.architecture=mlp", "training.epochs=1", "training.steps_per_epoch=1"]
    run = launch.prepare_training(tmp_path / "config.yaml", smaller, run_dir=tmp_path / "runs" / "older")
    assert carry_out(run, 1, train) == 0
    content = torch.load(run.best, weights_only=True)
    for name in [name for name in content["model"] if "_ground_head" in name or "_hurtbox_head" in name]:
        del content["model"][name]
    torch.save(content, run.best)
    capsys.readouterr()
    rollout({"run": str(run.path), "starts": 1, "horizons": "5"}, Listener())
    assert "has no heads for hurtbox, ground: they are carried forward" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [({"games": "game_9"}, "holds no whole game 'game_9'"), ({"horizons": "200"}, "no game is long enough"),
     ({"starts": 0}, "starts is 0")],
)  # fmt: skip
def test_a_rollout_that_cannot_be_is_refused(trained: RunDirectory, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises((DataError, UserError), match=sentence):
        rollout({"run": str(trained.path), **more}, Listener())


def test_the_export_can_be_written_again(trained: RunDirectory) -> None:
    before = {name: (trained.export / name).read_bytes() for name in (WEIGHTS, ABOUT)}
    (trained.export / WEIGHTS).unlink()
    export({"run": str(trained.path)}, Listener())
    state = torch.load(trained.export / WEIGHTS, weights_only=True)
    assert json.loads((trained.export / ABOUT).read_text()) == json.loads(before[ABOUT])
    cfg = load_config(trained.config).settings
    assert isinstance(cfg, MeleeConfig)
    assert Melee().build(cfg).load(state) == []


def test_a_run_is_played_from_a_game_that_validated_it(trained: RunDirectory) -> None:
    opened = open_run(trained)
    cfg = opened.settings
    game, name = _real_game(cfg, Order(run=trained.path, frame=200))
    assert name == "game_1"
    session = MeleeSession(opened.load_into(Melee().build(cfg)), game, past_frames(cfg), name=name, folder=trained.path)  # type: ignore[arg-type]
    state = session.begin()
    first = state.stream.frame.state
    assert torch.equal(first, game.at(past_frames(cfg) - 1).state)
    for _ in range(5):
        state = session.step(state, [], ("p1",))
    assert state.frame == 5
    with pytest.raises(DataError, match="expected frame from 31"):
        _real_game(cfg, Order(run=trained.path, frame=FRAMES))


def test_a_replay_is_played_before_it_is_in_a_store(trained: RunDirectory, store: Path, tmp_path: Path) -> None:
    """The frames are those that the store has of it; what is no game to play in is said in a sentence."""
    cfg = open_run(trained).settings
    for name, made in (("game_1", columns(FRAMES, 1)), ("old", columns(FRAMES, 1, speeds=False))):
        write_table(tmp_path / f"{name}.parquet", made)
    (tmp_path / "b.slp").write_bytes(b"no replay")
    found, name = _real_game(cfg, Order(run=trained.path, recording=str(tmp_path / "game_1.parquet"), frame=200))
    parsed(tmp_path / "game_1.parquet", tmp_path / "one")
    stored_one, _ = _real_game(cfg, Order(run=trained.path, recording=str(tmp_path / "one"), frame=200))
    assert name == "game_1"
    for part, other in zip(vars(found).values(), vars(stored_one).values(), strict=True):
        assert torch.equal(part, other)
    for file, sentence in (("b.slp", "cannot be read"), ("old.parquet", "lacks what a model reads")):
        with pytest.raises(DataError, match=sentence):
            _real_game(cfg, Order(run=trained.path, recording=str(tmp_path / file)))


def test_a_long_past_lies_inside_of_its_game(store: Path, tmp_path: Path) -> None:
    """Starts come later where more frames are seen before them; games too short for any are said in a sentence."""
    which, rows = fixed_starts(np.array([300, 215, 209]), 9, 60, 0, past=156)
    assert set(which.tolist()) == {0}
    assert rows.min() >= 155
    assert rows.max() < 240
    assert set(fixed_starts(np.array([300, 215, 209]), 9, 60, 0, past=32)[0].tolist()) == {0, 1}
    with pytest.raises(DataError, match="no game that validates is long enough"):
        Melee().data(settings(store, tmp_path, "data.K=220"), torch.device("cpu"))


def test_games_are_counted_in_samples(store: Path, tmp_path: Path) -> None:
    """Of the store's mean length, or of a usual one: 7 frames a row."""
    rows = 4 * FRAMES + 10 - 4 * 6
    assert samples_in_games(settings(store, tmp_path), 1000) == 1000 * rows / 4
    assert samples_in_games(settings(store, tmp_path, "data.path=nowhere"), 100_000) == 100_000 * (USUAL_FRAMES - 6)


@pytest.mark.parametrize("view", ["fighter", "joint"])
@pytest.mark.parametrize("architecture", ["mamba", "mlp"])
def test_micro_batches_give_the_same_gradient(store: Path, tmp_path: Path, architecture: str, view: str) -> None:
    model_is = f"model.architecture={architecture}", f"model.view={view}"
    cfg = settings(store, tmp_path, *model_is, "objective.change_weight=3.0")
    project = Melee()
    data = project.data(cfg, CPU)
    torch.manual_seed(0)
    model = project.model(cfg, data)
    heads = frozenset(type(cfg.loss_weights).model_fields)
    ctx = Context(0, 0, 0.9, "", heads, cfg=cfg)
    batch = data.train.batch(torch.arange(0, 160, 10), None)

    def gradient(parts: int) -> torch.Tensor:
        model.zero_grad()
        counts = project.counts(batch, ctx)
        for part in split_batch(batch, parts):
            losses = project.losses(model, part, ctx)
            assert set(losses) == heads
            torch.autograd.backward([loss.total / counts[name] for name, loss in losses.items()])
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    torch.testing.assert_close(gradient(4), gradient(1), rtol=1e-3, atol=1e-5)


def test_each_step_of_an_epoch_has_its_own_windows(store: Path, tmp_path: Path) -> None:
    cfg = settings(store, tmp_path)
    project = Melee()
    data = project.data(cfg, CPU)
    windows = Ranges.of(np.arange(len(data.train)))
    order, again = (project.order(cfg, data, windows) for _ in range(2))
    seen = torch.cat([order.indices(0, step) for step in range(order.steps_per_pass)])
    assert len(set(seen.tolist())) == len(seen) == len(data.train) // 8 * 8
    assert torch.equal(order.indices(0, 7), again.indices(0, 7))
    assert not torch.equal(order.indices(0, 7), order.indices(1, 7))


def test_first_ages_are_medians(store: Path) -> None:
    opened = Store(store)
    games, _ = complete_games(opened)
    found: dict[int, list[float]] = {}
    for placed in games:
        rows, _ = opened.game(opened.games.index(placed))
        for f in (0, 1):
            players = rows["players"][:, f]
            for t in range(1, len(players)):
                if players["action"][t] != players["action"][t - 1]:
                    found.setdefault(int(players["action"][t]), []).append(float(players["state_age"][t]))
    first = first_ages(opened, games)
    for action in range(400):
        assert float(first[action]) == pytest.approx(float(np.median(found.get(action, [0.0])))), action


def test_what_is_too_long_or_unknown_is_said_in_a_sentence(store: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no game is as long as a window"):
        Melee().data(settings(store, tmp_path, "data.K=900"), CPU)
    with pytest.raises(DataError, match="holds no game 'game_7'"):
        Melee().data(settings(store, tmp_path, "data.validation=[game_7]"), CPU)
    cfg = settings(store, tmp_path)
    assert row_length(cfg) == 7
    assert row_length(settings(store, tmp_path, "model.architecture=mlp")) == 9
    summary = Melee().data(cfg, CPU).summary
    assert summary["train_games"] == 2
    assert summary["test_games"] == ["game_3"]
    assert "own scan" in summary["scan"]
