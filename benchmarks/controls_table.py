"""The demo model of controls beside all its baselines, on sessions that nothing was chosen by.

Trains `configs/controls_demo.yaml` with three seeds, each as a run of the engine, and scores the best weights of each
on fresh test sessions. With `--minerl` the sessions are those of a player's log, the last quarter of it for the test.
The last rows are of the first minute of each session, with the player's past and with the predictor's own (self-fed).
Boosted trees are among the baselines where scikit-learn is installed; they take more time than a training.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from engines.basics.errors import DataError
from engines.contract.config import load_config
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runtime.listener import CommandListener
from engines.training import engine
from engines.training.comparison import comparison
from engines.training.project import ENLARGE, Cell, Table
from engines.training.trained import open_reviewed
from projects.controls.baselines import Baselines, at_targets, target_rows
from projects.controls.batches import WindowSource
from projects.controls.demo.session import make_session
from projects.controls.demo.task import CEILING
from projects.controls.importers.task import parse
from projects.controls.metrics import Prediction, Scores, Thresholds, score_controls
from projects.controls.predictions import predict
from projects.controls.project import ControlsProject
from projects.controls.recordings import Recording, read_folder, write_recording
from projects.controls.report import PERFECT
from projects.controls.self_fed import Answer, answers, first_windows, self_fed
from projects.controls.split import read_split
from projects.controls.tuning import tuned
from projects.controls.window_linear import window_rows

CONFIG = Path(__file__).parents[1] / "configs/controls_demo.yaml"
MINERL = Path(__file__).parents[2] / "shared/data/minecraft/minerl_study_mc-0.jsonl"
MINERL_SESSIONS, MINERL_TEST = 8, 2
MINERL_SETTINGS = ("training.epochs=6", "data.augmentation.warp=0")
"""A twelfth of the demo's frames: as many epochs as there would learn them by heart."""
SEEDS = (42, 43, 44)
TRAIN_SEED, TRAIN_SESSIONS = 0, 12
"""Of `cockpit demo`."""
TEST_SEED, TEST_SESSIONS = 57721, 8
MINUTES = 3.0
PROCESSES = 2
"""With a thread each."""
SHOWN = ("action_f1", "action_change_f1", "look_mse", "cursor_pixels", "hotbar_accuracy", "score")


class Fed(NamedTuple):
    """Scores on the first minute of each session."""

    forced: Scores
    """With the player's past."""
    own: Scores


class Trained(NamedTuple):
    """Scores of one training on the test."""

    plain: Scores
    exported: Scores
    """At the thresholds of its export."""
    fed: Fed


class _Context:
    """Of a task that nobody watches."""

    def progress(self, done: float, total: float, unit: str) -> None: ...

    def log(self, text: str) -> None:
        say(text)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(minerl: bool = False) -> Table:
    """A row each for the model's mean, its spread, its mean at exported thresholds, and every baseline.

    Raises `DataError` where the log for `minerl` is not here.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (_minerl if minerl else _demo)(folder)
        settings = [f"data.path={folder / 'train'}", "launch.threads=1", *(MINERL_SETTINGS if minerl else ())]
        with ProcessPoolExecutor(PROCESSES, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
            beside = pool.submit(_baselines, folder, settings)
            found = list(pool.map(partial(_trained, folder, settings), SEEDS))
            baselines, linear = beside.result()
        sessions = len(read_folder(folder / "test"))
    return _beside(found, baselines, linear, sessions)


def _demo(folder: Path) -> None:
    """Training sessions as `cockpit demo` makes them, and test sessions of a seed that nothing was chosen by."""
    for part, seed, sessions in (("train", TRAIN_SEED, TRAIN_SESSIONS), ("test", TEST_SEED, TEST_SESSIONS)):
        (folder / part / CEILING).mkdir(parents=True)
        for number in range(sessions):
            session = make_session(seed, number, MINUTES)
            write_recording(folder / part / f"{session.recording.name}.npz", session.recording)
            np.savez(folder / part / CEILING / f"{session.recording.name}.npz", expected=session.ceiling)


def _minerl(folder: Path) -> None:
    if not MINERL.is_file():
        raise DataError(f"{MINERL}: does not exist; this table needs the log of a player there.")
    order: dict[str, Any] = {"source": str(MINERL), "out": str(folder / "train"), "sessions": MINERL_SESSIONS}
    parse(order, _Context())  # type: ignore[arg-type]
    (folder / "test").mkdir()
    for path in sorted((folder / "train").glob("*.npz"))[-MINERL_TEST:]:
        path.rename(folder / "test" / path.name)


def _baselines(folder: Path, settings: list[str]) -> tuple[dict[str, Scores], Fed]:
    """Scores of all, and of window-linear on its own past."""
    known, _ = read_split(load_config(CONFIG, settings).settings.data)  # type: ignore[arg-type]
    fitted, test = Baselines(known, trees=True), read_folder(folder / "test")
    linear = fitted.window_linear
    forced = linear.predict(at_targets(test, window_rows))
    scores = fitted.scores(test, folder / "test" / CEILING)
    return scores, _fed(test, forced, linear.answer, linear.thresholds)


def _fed(test: Sequence[Recording], forced: Prediction, answer: Answer, thresholds: Thresholds | None = None) -> Fed:
    """forced: of all windows."""
    thresholds, source = thresholds or Thresholds(), WindowSource(test, torch.device("cpu"), 0.0)
    rows, truth = first_windows(source.sessions), target_rows(test).truth
    own = self_fed(answer, test, thresholds)
    return Fed(*(score_controls(each, truth[rows], thresholds) for each in (forced[rows], own)))


def _trained(folder: Path, settings: list[str], seed: int) -> Trained:
    """Train one model, and score its best weights on the test at the thresholds of the training and of its export."""
    run = launch.prepare_training(CONFIG, [*settings, f"training.seed={seed}"], run_dir=folder / f"run_{seed}")
    began = time.process_time()
    _train(run)
    seconds = time.process_time() - began
    trained, review = open_reviewed(run, lambda: None)
    cfg: Any = trained.settings
    model, test = trained.load_into(ControlsProject().build(cfg)), read_folder(folder / "test")
    prediction, truth = predict(model, WindowSource(test, torch.device("cpu"), 0.0), ENLARGE * cfg.training.batch_size)
    plain, exported = score_controls(prediction, truth), score_controls(prediction, truth, tuned(cfg, review.arrays))
    say(f"{run.path.name}: {seconds:.0f} CPU s, best epoch {trained.log.best_epoch}, " + _figures(plain))
    return Trained(plain, exported, _fed(test, prediction, answers(model)))


def _train(run: RunDirectory) -> None:
    """The engine's own loop, without the report at its end, which has all baselines in it."""
    events = EventWriter(run.events, 1)
    with contextlib.redirect_stdout(sys.stderr), CommandListener(run, 1, events) as listener:
        engine.load(run, load_config(run.config), events, listener).train()


def _figures(scores: Scores) -> str:
    values = _values(scores)
    return ", ".join(f"{name} {values[name]:.4f}" for name in SHOWN if values[name] is not None)


def _values(scores: Scores) -> dict[str, float | None]:
    return {name: scores.score if name == "score" else scores.values.get(name) for name in SHOWN}


def _beside(found: list[Trained], baselines: Mapping[str, Scores], linear: Fed, sessions: int) -> Table:
    values = {name: _values(scores) for name, scores in baselines.items()}
    bounds = {CEILING: values.pop(CEILING)} if CEILING in values else {}
    plain = _spread([one.plain for one in found])
    mean = {name: value for name, (value, _) in plain.items()}
    note = f"Means of {len(found)} seeds on {sessions} test sessions."
    made = comparison(mean, values, {name: PERFECT[name] for name in SHOWN}, bounds=bounds, note=note)

    def row(title: str, scores: list[Scores]) -> tuple[Cell, ...]:
        return (title, *(value for value, _ in _spread(scores).values()), "")

    more = [
        ("± of the seeds", *(deviation for _, deviation in plain.values()), ""),
        row("this run, exported thresholds", [one.exported for one in found]),
    ]
    fed = [
        row("first minute: this run", [one.fed.forced for one in found]),
        row("this run, self-fed", [one.fed.own for one in found]),
        row("window-linear", [linear.forced]),
        row("window-linear, self-fed", [linear.own]),
    ]
    return Table(made.columns, (made.rows[0], *more, *made.rows[1:], *fed), made.note)


def _spread(scores: list[Scores]) -> dict[str, tuple[float | None, float | None]]:
    """Mean and standard deviation (of a sample) of each value; None where a seed has none, or of a single one."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for name in SHOWN:
        numbers = [value for one in scores if (value := _values(one)[name]) is not None]
        whole = len(numbers) == len(scores)
        deviation = float(np.std(numbers, ddof=1)) if whole and len(numbers) > 1 else None
        found[name] = float(np.mean(numbers)) if whole else None, deviation
    return found
