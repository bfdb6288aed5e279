"""What the loss weights of a run are, and what share of the loss and of the gradient each head has."""

from __future__ import annotations

from cockpit.cli import codes
from cockpit.cli.printing import say, show_json, show_table
from cockpit.core.config.run_config import read_config
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.steering.loss_weights import WeightDraft, configured, recent_means, scaled, shares
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader


def show_weights(run: RunDirectory, *, json: bool) -> int:
    """A line or an object a head. Raises `UserError` where the run's config cannot be read or has no weights."""
    reader, metrics = RunReader(run), RunMetrics(run, run.path.name)
    reader.poll()
    metrics.poll()
    series = metrics.series()
    draft = WeightDraft(configured(read_config(run).tree))
    if not draft.heads:
        raise UserError(f"{run.info.id} has no loss weights in its config.")
    draft.follow(reader.history)
    losses = recent_means(series, draft.heads)
    measured = reader.history.gradients
    share, pull = shares(draft.now, scaled(losses, series)), shares(draft.now, measured.norms if measured else {})
    if json:
        heads = [
            {"head": head, "default": draft.default[head], "now": draft.now[head], "raw_loss": losses[head],
             "share": share[head], "gradient_share": pull[head]}
            for head in draft.heads
        ]  # fmt: skip
        show_json({"heads": heads, "gradient_step": measured.step if measured else None})
        return codes.DONE
    rows = [
        (head, f"{draft.default[head]:g}", f"{draft.now[head]:g}", _number(losses[head]), _share(share[head]),
         _share(pull[head]))
        for head in draft.heads
    ]  # fmt: skip
    show_table(("head", "default", "now", "raw loss", "share", "gradient"), rows)
    if measured is None and reader.status().live:
        say(f"gradient not measured yet; `cockpit weights {run.info.id} --measure` does")
    return codes.DONE


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "—" if value is None else f"{value * 100:.1f} %"
