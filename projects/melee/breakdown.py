"""How well the next action is known when the frames before are true: by action, by category, and the worst five."""

from __future__ import annotations

import torch
from torch import Tensor

from engines.training.project import Table
from projects.melee.actions import CATEGORIES, COUNT, NAMES, OTHER, category

WORST = 5
SUPPORT = 20
"""Frames that an action needs to be among the worst."""
COLUMNS = ("action", "frames", "right", "as it begins", "begins right")


class ActionBreakdown:
    """Counts of the true actions, how many were predicted, and the same where the action has just begun."""

    def __init__(self, counts: Tensor | None = None) -> None:
        """counts: (4, 400) sums of `count_actions`; none where None."""
        self._counts = counts

    def accuracy(self) -> tuple[float | None, float | None]:
        """Of all frames, and of those where an action begins; None where there is none."""
        frames, right, begins, begins_right = self._totals().sum(dim=1).tolist()
        return right / frames if frames else None, begins_right / begins if begins else None

    def _totals(self) -> Tensor:
        return torch.zeros(4, COUNT) if self._counts is None else self._counts.cpu()

    def tables(self) -> dict[str, Table]:
        """Every action that occurs, the categories, and the worst actions with enough frames."""
        totals = self._totals()
        rows = {action: totals[:, action].tolist() for action in range(COUNT) if totals[0, action] > 0}
        often = sorted(rows, key=lambda action: -rows[action][0])
        worst = sorted((a for a in often if rows[a][0] >= SUPPORT), key=lambda a: rows[a][1] / rows[a][0])[:WORST]
        of_category = {name: torch.zeros(4) for name in (*CATEGORIES, OTHER)}
        for action in rows:
            of_category[category(action)] += totals[:, action]
        return {
            "Actions by category": _table(
                [(name, counts.tolist()) for name, counts in of_category.items()], "category"
            ),
            "Worst actions": _table(
                [(NAMES[a], rows[a]) for a in worst], note=f"of those with {SUPPORT} frames or more"
            ),
            "Actions": _table([(f"{a} {NAMES[a]}", rows[a]) for a in often]),
        }


def count_actions(said: Tensor, truth: Tensor, begins: Tensor) -> Tensor:
    """Of each action: frames, those that are right, those where it begins, and the right ones of these: (4, 400).

    Predicted and true actions, and whether the true one begins there; of one shape, on the device.
    """
    right = said == truth
    rows = [torch.ones_like(right), right, begins, begins & right]
    return torch.stack([_count(truth, row) for row in rows])


def _count(actions: Tensor, counted: Tensor) -> Tensor:
    """How often each action is counted: (400,)."""
    return torch.zeros(COUNT, device=actions.device).index_add_(0, actions.flatten(), counted.flatten().float())


def _table(rows: list[tuple[str, list[float]]], first: str = "action", note: str = "") -> Table:
    def share(part: float, whole: float) -> float | None:
        return round(part / whole, 4) if whole else None

    cells = tuple(
        (name, int(frames), share(right, frames), int(begins), share(begins_right, begins))
        for name, (frames, right, begins, begins_right) in rows
    )
    said = "share of frames whose action is right, one step after true frames"
    return Table((first, *COLUMNS[1:]), cells, f"{said}; {note}" if note else said)
