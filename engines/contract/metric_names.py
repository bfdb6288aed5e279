"""What the names that people give their metrics say: of which data they are, and which of them is the loss."""

from __future__ import annotations

import re
from collections.abc import Mapping

VALIDATION = frozenset({"val", "valid", "validation", "eval", "evaluation", "test", "dev", "tel"})
"""Words of names that mean validation; `tel` is llm.c's."""
TRAINING = frozenset({"train", "training", "tr"})
RECORDS = frozenset({"best", "lowest", "min", "minimum"})
"""Words of names that tell the best so far, which may begin at infinity."""
_BREAK = re.compile(r"[^A-Za-z]")


def is_validation(name: str) -> bool:
    """By the words of the name, as in `val_loss`, `eval/accuracy`, `epoch_val_acc`."""
    return not VALIDATION.isdisjoint(_words(name))


def is_training(name: str) -> bool:
    """By the words of the name, as in `train_loss`."""
    return not TRAINING.isdisjoint(_words(name))


def is_loss(name: str) -> bool:
    """As in `loss`, `val_loss`, `loss/policy`; not `best_loss`."""
    words = _words(name)
    return "loss" in words and RECORDS.isdisjoint(words)


def whole_loss(values: Mapping[str, float | None]) -> float | None:
    """The loss itself, however its name says of which data: `loss`, `train_loss`, `val/loss`; None without one."""
    return next((value for name, value in values.items() if _words(name) - TRAINING - VALIDATION == {"loss"}), None)


def _words(name: str) -> set[str]:
    return {word for word in _BREAK.split(name.lower()) if word}
