"""The whole story of a training, by keys in a real terminal with a real engine; then once more, by replay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engines.contract.rundir import RunDirectory
from engines.runs.store import list_runs
from tests.e2e.conftest import COCKPIT, Terminal
from tests.e2e.person import Person, answers, lines_of, logged, write_config
from tests.engines.conftest import tensors

WEIGHTS = {"action": 1.0, "look": 0.5, "hotbar": 0.3, "cursor": 0.5, "inv": 0.3, "idle": 0.3}


def weighted(run: RunDirectory, step: int, weights: dict[str, float]) -> float:
    """The loss of a step by these weights, from the raw losses of its heads."""
    return sum(weight * logged(run, head).get(step, 0.0) for head, weight in weights.items())


@pytest.mark.behaviour("started-form-weights-rate")
def test_start_steer_stop_resume_fork_review_and_replay(
    terminal: Callable[..., Terminal], tmp_path: Path, demo_data: Path
) -> None:
    write_config(tmp_path, demo_data)
    shell = terminal("sh", (120, 36))
    shell.press(str(COCKPIT), "Enter")
    me = Person(shell, tmp_path / "runs")

    run = me.start_from_a_form()
    reweighted = me.change_weights(look=0.8, hotbar=2)
    rescaled = me.change_rate(0.5)
    paused, continued = me.pause_and_continue()
    me.see(r"epoch ([2-9]|\d\d+)/")
    me.stop()
    for kind, step in (("set_loss_weights", reweighted), ("set_lr_scale", rescaled), ("pause", paused)):
        assert [answer for answer in answers(run, kind) if answer[0] != "seen"] == [("applied", step)]
    assert paused == continued
    losses, rates = logged(run, "loss"), logged(run, "lr")
    assert losses[reweighted - 1] == pytest.approx(weighted(run, reweighted - 1, WEIGHTS), rel=1e-5)
    assert losses[reweighted] == pytest.approx(
        weighted(run, reweighted, WEIGHTS | {"look": 0.8, "hotbar": 2}), rel=1e-5
    )
    assert rates[rescaled] / rates[rescaled - 1] == pytest.approx(0.5, rel=0.05)

    me.resume(patience=1)
    me.see("✓ early-stopped")
    epochs = [event for event in lines_of(run.events) if event["type"] == "epoch"]
    assert [event["epoch"] for event in epochs] == list(range(1, len(epochs) + 1))
    assert epochs[-1]["score"] <= max(event["score"] for event in epochs[:-1])

    fork = me.fork(epoch=2)
    me.see(r"epoch ([3-9]|\d\d+)/")
    me.stop()
    assert (fork.info.parent, fork.info.fork_step) == (run.info.id, epochs[1]["step"])
    assert next(event for event in lines_of(fork.events) if event["type"] == "epoch")["epoch"] == 3

    me.open(run, place=1)
    exported = run.export / "control_config_v2.json"
    before = json.loads(exported.read_text())
    threshold = me.raise_a_threshold_and_save()
    after = json.loads(exported.read_text())
    assert after["thresholds"]["action"] == [threshold, *before["thresholds"]["action"][1:]]
    assert (before["thresholds_reviewed"], after["thresholds_reviewed"]) == (False, True)
    (saving,) = lines_of(run.review / "history.jsonl")
    assert saving["old"]["move_forward"] == before["thresholds"]["action"][0]
    assert saving["epoch"] == max(epochs, key=lambda event: event["score"])["epoch"]

    me.leave()
    shell.press(f"{COCKPIT} replay {run.path.name}", "Enter")
    me.see(f" equals {run.info.id}")
    replay = next(one for one in list_runs(tmp_path / "runs") if one.info.replay_of == run.info.id)
    ours, theirs = tensors(run.last), tensors(replay.last)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[place], theirs[place]) for place in ours if place.startswith("/model"))
