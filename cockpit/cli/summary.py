"""Everything `show` tells of a run, as plain values."""

from __future__ import annotations

import time
from typing import Any

from cockpit.core.config.run_config import read_config
from cockpit.core.steering.loss_weights import configured
from engines.basics.errors import DataError
from engines.contract import commands as cmd
from engines.contract.rundir import Attempt, RunDirectory
from engines.runs import spending
from engines.runs.history import History
from engines.runs.state import RunReader, describe_end
from engines.runs.trust import is_from_elsewhere


def summarise(run: RunDirectory) -> dict[str, Any]:
    """Facts of a run; None where it has none. Raises `DataError` for one whose records cannot be read."""
    info, reader, now = run.info, RunReader(run), time.time()
    status = reader.status()
    attempts = [run.attempt(number) for number in run.attempt_numbers()]
    history = reader.history
    newest, best, started = history.newest, history.to_beat, history.started
    saved = history.checkpoints[-1] if history.checkpoints else None
    spans = spending.spans_of(attempts, {history.attempt: history.last_event}, live=status.live)
    return {
        "id": info.id,
        "state": status.state,
        "detail": status.detail,
        "project": info.project,
        "kind": info.kind,
        "title": info.title,
        "label": info.label,
        "notes": info.notes,
        "tags": info.tags,
        "created": info.created,
        "elsewhere": is_from_elsewhere(info),
        "made_by": info.made_by,
        "parent": info.parent,
        "fork_step": info.fork_step,
        "path": str(run.path),
        "device": started.device if started else attempts[-1].device if attempts else "",
        "epoch": newest.epoch if newest else None,
        "epochs": history.planned or None,
        "step": newest.step if newest else None,
        "score": newest.score if newest else None,
        "best_score": best.score if best else None,
        "best_epoch": best.epoch if best else None,
        "best_of_parent": bool(best and best.inherited),
        "weights": _loss_weights(run, history),
        "checkpoint": {"step": saved.step, "files": saved.files, "size": saved.size} if saved else None,
        "seconds": spending.seconds_spent(spans, now),
        "usd": spending.usd_spent(spans, now),
        "resumed_from_steps": history.resumes,
        "attempts": [_attempt(attempt) for attempt in attempts],
        "edits": [
            {"step": edit.step, "attempt": edit.attempt, "what": cmd.describe(edit.command)} for edit in history.edits()
        ],
        "refused": [
            {
                "step": answer.step,
                "attempt": answer.attempt,
                "what": cmd.describe(answer.command),
                "reason": answer.reason,
            }
            for answer in history.answers
            if answer.state == "refused"
        ],
        "alerts": [
            {"time": alert.time, "step": alert.step, "level": alert.level, "code": alert.code, "text": alert.text}
            for alert in history.alerts
        ],
        "damaged_lines": reader.damaged_lines,
    }


def _loss_weights(run: RunDirectory, history: History) -> dict[str, float] | None:
    """Those in force: the newest epoch may have had others. Of a run without a config what its epochs tell."""
    try:
        told = configured(read_config(run).tree)
    except DataError:
        told = {}
    told = told or (history.newest.weights if history.newest else {})
    return history.loss_weights(told) or None


def _attempt(attempt: Attempt) -> dict[str, Any]:
    ended = attempt.ended
    return {
        "number": attempt.number,
        "started": attempt.started,
        "host": attempt.host,
        "supervisor_pid": attempt.supervisor.pid,
        "engine_pid": attempt.engine.pid if attempt.engine else None,
        "git": attempt.git,
        "versions": attempt.versions,
        "ended": ended.time if ended else None,
        "reason": ended.reason if ended else None,
        "exit_code": ended.exit_code if ended else None,
        "signal": ended.signal if ended else None,
        "error": ended.error if ended else None,
        "detail": describe_end(ended) if ended else None,
    }
