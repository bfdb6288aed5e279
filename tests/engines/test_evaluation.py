"""Evaluations: every so many epochs, in more than one pass, stopped in their middle, with tables of each best epoch."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from engines.basics.errors import UserError
from engines.contract import commands as cmd
from engines.runs import launch
from engines.training import checkpoint, engine
from engines.training.evaluate import evaluate
from engines.training.finish import finish
from engines.training.project import Batch, Context, Evaluation, Piece, Result, Split, Table
from tests.engines.conftest import Killed, LiveRun, effective_table
from tests.engines.toy import ToyConfig, ToyEvaluation, ToyProject, ToyRun, send

GAMES = 4


class Playing(ToyEvaluation):
    """Plays games after its pass over the data; the score is what they brought."""

    def __init__(self, project: Played) -> None:
        super().__init__(project)
        self.project, self.scores = project, list[float]()

    def after(self, model: nn.Module, ctx: Context) -> Generator[Piece]:
        assert torch.is_inference_mode_enabled()
        assert not model.training
        assert self._errors, "the validation data comes first"
        try:
            for game in range(GAMES):
                self.project.before(ctx, game)
                self.scores.append(float(model(torch.randn(9, 5)).mean()))
                yield game + 1, GAMES, "games"
        finally:
            self.project.closed += 1

    def result(self) -> Result:
        score = sum(self.scores) / len(self.scores)
        tables = {"games": Table(("game", "score"), tuple(enumerate(self.scores)))}
        return Result(values={"games": float(len(self.scores))}, score=score, tables=tables)


class Played(ToyProject):
    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[Context, int], None] = lambda ctx, game: None
        self.closed = 0

    def evaluation(self, cfg: ToyConfig, data: Split) -> Playing:
        return Playing(self)


def resumed(folder: Path, project: ToyProject, **training: Any) -> ToyRun:
    """The run in `folder`, trained to its end from its newest checkpoint."""
    toy = ToyRun(folder, project, attempt=2, **training)
    engine.resume(toy.run, toy.trainer)
    with toy.listener:
        assert toy.trainer.train() == "finished"
    return toy


def assert_equal(one: ToyRun, other: ToyRun) -> None:
    assert effective_table(one.run) == effective_table(other.run)
    assert one.trainer.state == other.trainer.state
    for ours, theirs in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def rows_of(toy: ToyRun) -> dict[int, dict[str, Any]]:
    return {row["epoch"]: row for row in effective_table(toy.run)}


def evaluated(toy: ToyRun) -> list[int]:
    """The epochs that were evaluated; of every other one asserts that it has nothing of an evaluation."""
    rows = rows_of(toy)
    for row in rows.values():
        assert row["evaluated"] is (row["score"] is not None) is bool(row["validation"])
        assert row["evaluated"] or not row["best"]
    lines = map(json.loads, toy.run.val_metrics.read_text().splitlines())
    found = [epoch for epoch, row in rows.items() if row["evaluated"]]
    assert [line["epoch"] for line in lines if not line["on_demand"]] == found
    return found


# -- after the pass ----------------------------------------------------------------------------------------------------


def test_what_comes_after_the_pass_is_in_the_result_and_in_the_progress(tmp_path: Path) -> None:
    project = Played()
    toy = ToyRun(tmp_path, project, epochs=1)
    assert toy.train() == "finished"
    [row] = rows_of(toy).values()
    assert row["validation"]["games"] == GAMES
    assert {"loss", "all", "rare"} <= row["validation"].keys()
    assert project.closed == 1
    events = [json.loads(line) for line in toy.run.events.read_bytes().splitlines()]
    told = [(event["done"], event["total"], event["unit"]) for event in events if event["type"] == "progress"]
    assert told[0][0] == 1
    assert told[-1] == (GAMES, GAMES, "games")


def test_a_stop_is_heard_between_pieces_and_the_resumed_run_is_equal(tmp_path: Path) -> None:
    straight = ToyRun(tmp_path / "straight", Played())
    straight.train()

    project, games = Played(), list[tuple[int, int]]()
    stopped = ToyRun(tmp_path / "stopped", project)

    def stop(ctx: Context, game: int) -> None:
        games.append((ctx.epoch, game))
        if ctx.epoch == 1 and game == 2:
            stopped.listener.stop_requested = stopped.listener.signalled = True  # as by SIGTERM

    project.before = stop
    assert stopped.train() == "stopped"
    assert games == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]
    assert project.closed == 2, "its games are put away"
    assert list(rows_of(stopped)) == [1]
    assert_equal(resumed(tmp_path / "stopped", Played()), straight)


def test_a_run_killed_between_pieces_resumes_equal(tmp_path: Path) -> None:
    straight = ToyRun(tmp_path / "straight", Played())
    straight.train()

    def die(ctx: Context, game: int) -> None:
        if ctx.epoch == 1 and game == 2:
            raise Killed

    killed = ToyRun(tmp_path / "killed", project := Played())
    project.before = die
    with pytest.raises(Killed):
        killed.train()
    assert_equal(resumed(tmp_path / "killed", Played()), straight)


# -- every so many epochs ----------------------------------------------------------------------------------------------


def test_the_last_epoch_of_the_run_and_of_each_stage_is_evaluated(tmp_path: Path) -> None:
    stages = [{"name": "one", "epochs": 4}, {"name": "two", "epochs": 1}, {"name": "three"}]
    toy = ToyRun(tmp_path, epochs=11, stages=stages, evaluate_every=3)
    assert toy.train() == "finished"
    assert evaluated(toy) == [3, 4, 5, 6, 9, 11]
    assert toy.trainer.schedule.plan.evaluations(11) == 6, "as a check reckons with"
    whole = ToyRun(tmp_path / "whole", epochs=11, stages=stages)
    whole.train()
    for epoch, row in rows_of(whole).items():  # an evaluation changes nothing of the training
        assert rows_of(toy)[epoch]["train"] == row["train"]
    assert rows_of(toy)[9]["score"] == rows_of(whole)[9]["score"]


class Stuck(ToyProject):
    forced_score = 1.0


def test_patience_is_in_epochs_and_its_last_one_is_evaluated(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Stuck(), epochs=20, evaluate_every=4, patience=6)
    assert toy.train() == "early-stopped"
    assert evaluated(toy) == [4, 8, 10], "the best is that of epoch 4, and 10 the sixth after it"

    class Late(ToyProject):
        """Better just where its patience would end."""

        @property
        def forced_score(self) -> float:  # type: ignore[override]
            return 2.0 if self._seen >= 10 * 8 else 1.0

    toy = ToyRun(tmp_path / "late", Late(), epochs=20, evaluate_every=4, patience=6)
    assert toy.train() == "early-stopped"
    assert evaluated(toy) == [4, 8, 10, 12, 16]
    assert toy.trainer.state.best_epoch == 10


@pytest.mark.parametrize(
    ("order", "epochs"),
    [
        (cmd.StopEarly(attempt=1, at_step=50), [4, 7]),
        (cmd.SetEpochs(attempt=1, at_step=50, epochs=7), [4, 7]),
        (cmd.SetPatience(attempt=1, at_step=50, patience=2), [4, 7]),
        (cmd.StopEarly(attempt=1, at_step=48, at_epoch=6), [4, 7]),
        (cmd.SetPatience(attempt=1, at_step=48, at_epoch=6, patience=2), [4, 7]),
        (cmd.SetEpochs(attempt=1, at_step=48, at_epoch=6, epochs=6), [4, 8]),
    ],
)
def test_whatever_ends_a_run_it_ends_with_an_evaluation(tmp_path: Path, order: cmd.Command, epochs: list[int]) -> None:
    """Epochs have 8 steps; at step 48 six of them are done, and the sixth is not evaluated."""
    toy = ToyRun(tmp_path, Stuck(), epochs=8, evaluate_every=4)
    send(toy, order)
    assert toy.train() == ("finished" if isinstance(order, cmd.SetEpochs) else "early-stopped")
    assert evaluated(toy) == epochs


def test_a_run_killed_between_evaluations_resumes_equal(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 7, "evaluate_every": 3}
    straight = ToyRun(tmp_path / "straight", **settings)
    straight.train()
    stopped = ToyRun(tmp_path / "stopped", **settings)
    send(stopped, cmd.Stop(attempt=1, at_step=32, at_epoch=4))
    assert stopped.train() == "stopped"
    saved = checkpoint.load(stopped.run.last)["state"]
    assert (saved["epoch"], saved["step_in_epoch"], saved["evaluated"]) == (4, 0, False)
    again = resumed(tmp_path / "stopped", ToyProject(), **settings)
    assert evaluated(again) == [3, 6, 7]
    assert_equal(again, straight)


def test_a_resume_cannot_end_a_run_where_it_was_not_evaluated(new_run: Callable[..., LiveRun]) -> None:
    live = new_run("training.evaluate_every=5")
    live.send(cmd.Stop(attempt=1, at_step=128, at_epoch=4))
    assert live.here() == "stopped"
    with pytest.raises(UserError, match="cannot end before epoch 5 is done"):
        launch.prepare_resume(live.run, ["training.epochs=4"])
    assert live.resume_here("training.epochs=5") == "finished"
    assert [row["epoch"] for row in effective_table(live.run) if row["evaluated"]] == [2, 5], "2 ends a stage"


# -- batches and tables ------------------------------------------------------------------------------------------------


def test_the_project_says_how_large_a_validation_batch_is(tmp_path: Path) -> None:
    class Noting(Evaluation):
        def __init__(self, project: Sized) -> None:
            self._project, self._sizes = project, list[int]()

        def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Any:
            self._sizes.append(len(batch["x"]))
            return self._project.losses(model, batch, ctx)

        def result(self) -> Result:
            return Result(values={"largest": float(max(self._sizes)), "count": float(len(self._sizes))}, score=0.0)

    class Sized(ToyProject):
        def evaluation(self, cfg: ToyConfig, data: Split) -> Any:
            return Noting(self)

    class Own(Sized):
        def validation_batch(self, cfg: ToyConfig) -> int:
            return cfg.training.batch_size // 2

    for project, expected in ((Sized(), (32, 2)), (Own(), (4, 16))):
        toy = ToyRun(tmp_path / type(project).__name__, project, batch_size=8)
        result = evaluate(
            project, toy.settings, toy.data, toy.model, toy.trainer.schedule.context(), {"all": 1.0, "rare": 1.0},
            heads=["all", "rare"], interrupted=lambda: False,
        )  # fmt: skip
        assert result is not None
        assert (result.values["largest"], result.values["count"]) == expected


def test_the_tables_of_each_best_epoch_are_in_the_report_before_the_end(tmp_path: Path) -> None:
    found: list[tuple[int, Any]] = []

    class Scored(Played):
        def report(self, cfg: Any, data: Any, model: Any, result: Any) -> Any:
            return {"more": Table(("a",), ((1,),))}

    toy = ToyRun(tmp_path, project := Scored(), epochs=4)

    def look(ctx: Context, game: int) -> None:
        if game == 0:
            report = json.loads(toy.run.report.read_bytes())["tables"] if toy.run.report.exists() else None
            found.append((ctx.epoch, report))

    project.before = look
    assert toy.train() == "finished"
    assert found[0] == (0, None)
    rows = rows_of(toy)
    best = 0
    for epoch, tables in found[1:]:
        best = epoch if rows[epoch]["best"] else best
        assert list(tables) == ["games"]
        mean = sum(score for _, score in tables["games"]["rows"]) / GAMES
        assert mean == pytest.approx(rows[best]["score"]), f"the tables of epoch {best}"
    assert finish(toy.trainer)
    assert list(msgspec.json.decode(toy.run.report.read_bytes())["tables"]) == ["games", "more"]
