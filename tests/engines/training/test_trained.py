"""A run opened for a task: the same facts as its own events and checkpoints give, in whatever state it is."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from engines.basics.errors import DataError, UserError
from engines.thresholds.review import About, write_review
from engines.training import trained
from engines.training.trained import open_reviewed, open_run, serialised
from tests.engines.conftest import LiveRun, effective_table, tensors

Runs = Callable[..., LiveRun]
EPOCH = 32
"""Batches of the example in an epoch."""


def best_row(live: LiveRun) -> dict[str, Any]:
    """The last epoch that its event calls the best."""
    return [row for row in effective_table(live.run) if row["best"]][-1]


def test_a_run_that_was_killed_on_its_way_is_opened_at_its_best(new_run: Runs) -> None:
    live = new_run("training.epochs=5")
    live.killed_here(4 * EPOCH + 3)
    found, row = open_run(live.run), best_row(live)
    assert (found.state.epoch, found.log.best_epoch) == (row["epoch"], row["epoch"])
    assert found.log.best_score == row["score"] == max(one["score"] for one in effective_table(live.run)[2:])
    assert found.values == row["validation"]
    assert [one["epoch"] for one in found.log.epochs] == [1, 2, 3, 4]
    assert (found.spec.name, found.settings.training.epochs) == ("spiral", 5)


def test_its_weights_make_a_model_that_is_ready_to_use(new_run: Runs) -> None:
    live = new_run("training.epochs=3")
    assert live.here() == "finished"
    project = importlib.import_module("spiral.project").Spiral()
    found = open_run(live.run)
    model = found.load_into(project.model(found.settings, None))
    kept = tensors(live.run.best)
    assert {name: kept[f"/model/{name}"] for name in model.state_dict()}.keys() == model.state_dict().keys()
    assert all(torch.equal(kept[f"/model/{name}"], weight) for name, weight in model.state_dict().items())
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    found.settings.model.width = 7
    with pytest.raises(DataError, match=r"best\.pt does not match the model of .*config_resolved\.yaml"):
        found.load_into(project.model(found.settings, None))


def test_before_the_first_epoch_a_sentence_says_when_to_try_again(new_run: Runs) -> None:
    live = new_run("training.epochs=3")
    live.killed_here(5)
    with pytest.raises(DataError, match=r"has no best\.pt yet: it is written after the first scored epoch"):
        open_run(live.run)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"kind": "task"}, "is a task; expected a training run"), ({"engine": ""}, "is a run of an external program")],
)
def test_what_is_no_training_of_an_engine_is_said(new_run: Runs, change: dict[str, str], said: str) -> None:
    run = new_run().run
    run.write_info(msgspec.structs.replace(run.info, **change))
    with pytest.raises(DataError, match=said):
        open_run(run)


def test_a_damaged_last_checkpoint_or_config_costs_no_more_than_it_holds(new_run: Runs) -> None:
    live = new_run("training.epochs=4", "output.keep_epochs=1")
    live.here()
    live.run.best.unlink()
    os.link(live.run.checkpoints / "epoch_002.pt", live.run.best)
    whole = open_run(live.run)
    assert (whole.state.epoch, [row["epoch"] for row in whole.log.epochs]) == (2, [1, 2, 3, 4])
    assert whole.values == effective_table(live.run)[1]["validation"]
    live.run.last.unlink()  # by this name only: the best one may be the same file
    live.run.last.write_bytes(b"cut")
    assert open_run(live.run).log.epochs == whole.log.epochs[:2]
    live.run.last.unlink()
    assert open_run(live.run).values == whole.values
    live.run.config.write_text("project: spiral\ntraining: {epohcs: 3}\n")
    with pytest.raises(UserError, match=r"training\.epohcs is not a known key"):
        open_run(live.run)


def test_the_review_is_of_the_same_step_or_waited_for(new_run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "MATCH_SECONDS", 0.0)
    live = new_run("training.epochs=2")
    live.here()
    (live.run.review / "about.json").unlink()
    with pytest.raises(DataError, match=r"review has no review; the next best epoch"):
        open_reviewed(live.run, lambda: None)
    state = open_run(live.run).state
    about = About(checkpoint="best.pt", step=state.step, epoch=state.epoch, score=1.0)
    arrays = {"scores": torch.arange(3).numpy()}
    write_review(live.run.review, arrays, msgspec.structs.replace(about, step=state.step + 1))
    asked = []

    def saved_meanwhile() -> None:
        asked.append(1)
        write_review(live.run.review, arrays, about)

    found, review = open_reviewed(live.run, saved_meanwhile)
    assert (len(asked), review.about.step, found.state.step) == (1, state.step, state.step)
    assert review.arrays["scores"].tolist() == [0, 1, 2]
    write_review(live.run.review, arrays, msgspec.structs.replace(about, step=state.step + 1))
    with pytest.raises(DataError, match=rf"is of step {state.step + 1} and best\.pt of step {state.step}: the disk"):
        open_reviewed(live.run, lambda: None)


def test_serialised_weights_are_read_without_running_code(tmp_path: Any) -> None:
    state = torch.nn.Linear(3, 2).state_dict()
    (tmp_path / "a.pt").write_bytes(serialised(state))
    read = torch.load(tmp_path / "a.pt", weights_only=True)
    assert json.dumps({name: value.tolist() for name, value in read.items()}) == json.dumps(
        {name: value.tolist() for name, value in state.items()}
    )
