"""The tables of a finished run: the model beside its baselines, and what its numbers are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from engines.basics.errors import DataError
from engines.training.holdout import MOST_NAMED
from engines.training.project import ENLARGE, Table
from engines.training.reliability import reliability
from projects.controls.baselines import Baselines, at_targets, target_rows
from projects.controls.batches import WindowSource
from projects.controls.calibration import calibration, judged_buttons, undo_weight
from projects.controls.config import ControlsConfig
from projects.controls.demo.task import CEILING
from projects.controls.editions import NEWEST, scoring
from projects.controls.evaluation import ControlsResult, review_arrays, sending_arrays
from projects.controls.leaks import TRAINED, logistic_leaks, predict_shown
from projects.controls.losses import PosWeights
from projects.controls.metrics import Prediction, Rows, Scores, Thresholds, score_controls
from projects.controls.predictions import predict
from projects.controls.recordings import Recording
from projects.controls.report import baseline_table, comparison_table, counted, heads_table, score_tables
from projects.controls.run_tables import (
    calibration_table,
    change_table,
    gap_table,
    leak_table,
    not_made,
    reliability_table,
    sent_table,
    session_table,
)
from projects.controls.self_fed import answers, first_windows, self_fed
from projects.controls.sending import presses
from projects.controls.split import read_parts
from projects.controls.state_leaks import flags, leaks_table, state_leaks
from projects.controls.tuning import configured, decided, decisions, tuned, tuned_on_others, tuned_through
from projects.controls.window_linear import WindowLinear, window_rows

PARTS = 4
"""Of a report, each with a line in the log; with test sessions one more."""


class RunReport:
    """Everything that `docs/controls.md` explains, of one trained model on its validation windows, in fp32.

    Args:
        model: in eval mode, with the weights to report on.
        result: its evaluation on `source`, the validation windows. names: the sessions of these.
        weights: what positives weighed in the training.
        edition: whose definitions the run keeps (`projects.controls.editions`).
        progress: hears how many parts are done, and of how many.
    """

    def __init__(
        self,
        cfg: ControlsConfig,
        model: nn.Module,
        source: WindowSource,
        result: ControlsResult,
        names: Sequence[str],
        weights: PosWeights,
        edition: int = NEWEST,
        progress: Callable[[float, float, str], None] = lambda done, total, unit: None,
    ) -> None:
        self._cfg, self._model, self._source, self._names, self._weights = cfg, model, source, names, weights
        self._prediction, self._truth, self._off = result.prediction, result.truth, result.off
        self._progress, self._parts, self._said = progress, PARTS, 0
        self._edition, self._scoring = edition, scoring(cfg, edition)
        self._rules = cfg.post_processing.rules
        self._review = {
            **review_arrays(result.prediction, result.truth, source.sessions),
            "times": source.times,
            **sending_arrays(source.times, source.fps, tuned_through(cfg)),
        }
        self._default = configured(cfg)
        self._tuned = tuned(cfg, self._review)

    def tables(self) -> dict[str, Table]:
        """All tables by name. Those that need the recordings again say so where these have gone."""
        try:
            compared = self._from_recordings()
        except DataError as error:
            compared = {"baselines": not_made(error)}
        self._say("thresholds")
        return {
            **compared,
            "sessions": self._sessions(),
            "tuned thresholds": self._tuning(),
            "as sent": self._sending(),
            "calibration": self._calibration(),
            "reliability": self._reliability(),
        }

    def _score(self, prediction: Prediction, thresholds: Thresholds, rows: Rows = slice(None)) -> Scores:
        return score_controls(prediction, self._truth[rows], thresholds, self._off, self._scoring)

    # -- from the validation windows in memory -------------------------------------------------------------------

    def _sessions(self) -> Table:
        rows = [self._source.sessions == session for session in range(len(self._names))]
        scores = [self._score(self._prediction[mine], self._default, mine) for mine in rows]
        return session_table(
            dict(zip(self._names, scores, strict=True)),
            [int(mine.sum()) for mine in rows],
            self._score(self._prediction, self._default),
        )

    def _tuning(self) -> Table:
        rows = {
            "as trained": self._score(self._prediction, self._default),
            "as trained, as sent": self._sent(self._everywhere(self._default)),
            "tuned on these sessions": self._score(self._prediction, self._tuned),
            "tuned on these sessions, as sent": self._sent(self._everywhere(self._tuned)),
        }
        note = (
            "As sent: what the policy's rules (margin, pulses, cooldown, auto-release) leave of what is on. "
            "Tuned on these sessions: in-sample, so better than new sessions will be. "
        )
        if others := tuned_on_others(self._cfg, self._review):
            on = decided(self._prediction, decisions(self._review, others))
            rows["tuned on the others"] = self._score(on, Thresholds())
            rows["tuned on the others, as sent"] = self._sent(others)
            note += "Tuned on the others: each session with thresholds from all the other ones, an honest estimate."
        else:
            note += "With one session there are no others to tune on."
        return comparison_table(rows, note, "thresholds")

    def _everywhere(self, thresholds: Thresholds) -> dict[int, Thresholds]:
        """The same in each session."""
        return dict.fromkeys(np.unique(self._source.sessions).tolist(), thresholds)

    def _sent(self, thresholds: Mapping[int, Thresholds]) -> Scores:
        """Of what is sent at the thresholds of each session."""
        return self._score(decided(self._prediction, decisions(self._review, thresholds, self._rules)), Thresholds())

    def _sending(self) -> Table:
        """Each control as it is on and as it is sent, at the thresholds that the export holds."""
        raw, sent = self._score(self._prediction, self._tuned), self._sent(self._everywhere(self._tuned))
        return sent_table(raw, sent, self._rules, presses(self._review))

    def _calibration(self) -> Table:
        raw, on, judged = judged_buttons(self._prediction, self._truth)
        return calibration_table(calibration(raw, on, judged, self._pos_weights))

    def _reliability(self) -> Table:
        raw, on, judged = judged_buttons(self._prediction, self._truth)
        fair = undo_weight(raw, self._pos_weights)
        return reliability_table(reliability(raw[judged], on[judged]), reliability(fair[judged], on[judged]))

    @property
    def _pos_weights(self) -> NDArray[np.float64]:
        return torch.cat([self._weights.action, self._weights.inv]).cpu().double().numpy()

    # -- from the recordings -------------------------------------------------------------------------------------

    def _from_recordings(self) -> dict[str, Table]:
        """They are read again, so that a run need not keep its data twice. Raises `DataError`."""
        parts = read_parts(self._cfg.data, self._edition)
        train, validation = parts.train, parts.validation
        if not np.array_equal(target_rows(validation).truth.targets, self._truth.targets):
            raise DataError(f"{self._cfg.data.path} no longer holds the sessions that this run was validated on.")
        self._parts += bool(parts.test)
        self._say("baselines")
        fitted = Baselines(train, trees=self._cfg.report.trees)
        baselines = self._baselines(fitted, validation)
        run = self._score(self._prediction, self._default)
        compared = {"this run": run, **baselines}
        note = f"On the {len(self._truth)} validation windows of {len(validation)} sessions. {counted(run)}"
        return {
            **(self._test(fitted, parts.test) if parts.test else {}),
            "baselines": baseline_table(run, baselines, note),
            "change frames": change_table(compared),
            "self-fed history": self._self_fed(validation, fitted.window_linear),
            **self._leaks(train, validation),
        }

    def _baselines(self, fitted: Baselines, held_out: Sequence[Recording]) -> dict[str, Scores]:
        return self._counted(fitted.scores(held_out, Path(self._cfg.data.path).expanduser() / CEILING))

    def _test(self, fitted: Baselines, test: Sequence[Recording]) -> dict[str, Table]:
        """The headline: sessions that nothing was chosen on, at the thresholds chosen on validation."""
        self._say("test")
        source = WindowSource(test, next(self._model.parameters()).device, 0.0)
        prediction, truth = predict(self._model, source, ENLARGE * self._cfg.training.batch_size)
        run = score_controls(prediction, truth, self._tuned, self._off, self._scoring)
        columns = {
            "test": run,
            "validation": self._score(self._prediction, self._tuned),
            "validation, as trained": self._score(self._prediction, self._default),
        }
        about = f"{len(truth)} windows of {len(test)} sessions that nothing was chosen on: {_names(test)}"
        note = (
            f"Test: {about}. Weights and thresholds were chosen on validation, which flatters its own values. As "
            f"trained: at the thresholds of the training. {counted(run)}"
        )
        return {
            "heads": heads_table(columns, note),
            "test controls": score_tables(run, self._weights.unsupported)["controls"],
            "test baselines": baseline_table(run, self._baselines(fitted, test), f"On {about}. {counted(run)}"),
        }

    def _self_fed(self, validation: Sequence[Recording], linear: WindowLinear) -> Table:
        """Of the run and of window-linear, which sees the same."""
        self._say("self-fed history")
        rows = first_windows(self._source.sessions)
        device = next(self._model.parameters()).device
        own, others = self._prediction[rows], linear.predict(at_targets(validation, window_rows)[rows])
        pairs = {}
        for name, answer, forced, thresholds in (
            ("as trained", answers(self._model), own, self._default),
            ("tuned", answers(self._model), own, self._tuned),
            ("window-linear", linear.answer, others, linear.thresholds),
        ):
            fed = self_fed(answer, validation, thresholds, device)
            pairs[name] = self._score(forced, thresholds, rows), self._score(fed, thresholds, rows)
        return gap_table(pairs, int(rows.sum()))

    def _leaks(self, train: Sequence[Recording], validation: Sequence[Recording]) -> dict[str, Table]:
        self._say("leaking state")
        columns = state_leaks(train, validation)
        batch_size = ENLARGE * self._cfg.training.batch_size
        predictions = {TRAINED: self._prediction}
        predictions |= predict_shown(self._model, self._source, validation, batch_size)
        model = {shown: self._score(prediction, self._default) for shown, prediction in predictions.items()}
        logistic = self._counted(logistic_leaks(train, validation))
        return {
            "leaking state": leak_table({"this run": model, "logistic, refitted": logistic}, flags(columns)),
            "state columns": leaks_table(columns),
        }

    def _say(self, what: str) -> None:
        """How far it is, and a line in the log of the run: a report of a large model takes a while."""
        print(f"report: {what}", flush=True)
        self._progress(self._said, self._parts, "parts")
        self._said += 1

    def _counted(self, scores: Mapping[str, Scores]) -> dict[str, Scores]:
        """Put together as the run's."""
        return {name: one.by(self._scoring) for name, one in scores.items()}


def _names(recordings: Sequence[Recording]) -> str:
    more = f" and {len(recordings) - MOST_NAMED} more" if len(recordings) > MOST_NAMED else ""
    return ", ".join(one.name for one in recordings[:MOST_NAMED]) + more
