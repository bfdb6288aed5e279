"""Review arrays as an evaluation of the controls writes them, and a run that has them and an exported config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.thresholds.review import About, write_review
from projects.controls.sending import Rules
from projects.controls.thresholds import NAMES, THRESHOLDS, search_thresholds
from tests.support.fake_run import FakeRun

ABOUT = About(checkpoint="best.pt", step=20, epoch=2, score=0.5)
CONFIG = """\
project: controls
data:
  path: recordings/demo
thresholds:
  action: 0.5
  inv: 0.4
  hotbar_min_confidence: 0.3
"""


def review_arrays(frames: int = 600, sessions: int = 8, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Of rarer and rarer controls; swap_offhand is never pressed."""
    random = np.random.default_rng(seed)
    targets = random.random((frames, len(NAMES))) < np.geomspace(0.3, 0.02, len(NAMES))
    targets[:, NAMES.index("swap_offhand")] = False
    logits = 1.2 * random.normal(size=targets.shape) + 3 * targets - 2
    screen = random.random(frames) < 0.3
    masks = np.repeat(~screen[:, None], len(NAMES), axis=1)
    masks[:, 11], masks[:, 12:] = True, screen[:, None]
    return {
        "names": np.array(NAMES),
        "scores": (1 / (1 + np.exp(-logits))).astype(np.float32),
        "targets": targets,
        "masks": masks,
        "idle": ~screen & ~targets[:, :12].any(axis=1),
        "groups": np.repeat(np.arange(sessions), frames // sessions),
        "hotbar_confidence": random.random(frames).astype(np.float32),
        "hotbar_correct": random.random(frames) < 0.7,
        "hotbar_mask": random.random(frames) < 0.1,
    }


def sent_arrays(frames: int = 600, sessions: int = 8, seed: int = 0) -> dict[str, NDArray[Any]]:
    """The same of a run whose thresholds are tuned as they are sent, at 20 frames a second."""
    rules = Rules.of(0.05, 0.0, {})
    times = np.arange(frames) % (frames // sessions) / 20
    return {
        **review_arrays(frames, sessions, seed), "times": times, "margins": rules.margins, "holds": rules.holds,
    }  # fmt: skip


def exported_config(arrays: dict[str, NDArray[Any]], epoch: int = 2, step: int = 20) -> dict[str, Any]:
    """With one threshold, that of move_backward, far from its best."""
    found = search_thresholds(arrays, 0.3, "grid")
    found["thresholds"]["action"][1] = 0.1
    training = {"best_epoch": epoch, "best_step": step}
    return {"version": 2, "model": {"d_model": 16}, **found, "thresholds_reviewed": False, "training": training}


def reviewed_run(folder: Path, arrays: dict[str, NDArray[Any]], *, exported: bool = True) -> FakeRun:
    """A finished run whose best epoch was the second."""
    fake = FakeRun(folder).begin().started().epochs(1, 2, best=2).end("finished")
    fake.run.config.write_text(CONFIG)
    write_review(fake.run.review, arrays, ABOUT)
    if exported:
        (fake.run.export / THRESHOLDS.file).write_bytes(msgspec.json.encode(exported_config(arrays)))
    return fake
