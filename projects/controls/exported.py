"""What an export's config says, in both forms: ours, nested, and the flat one of the older document. Torch-free.

Nothing is guessed: sizes that this program cannot run, names in another order and numbers that are none are refused
with a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError, nearest
from engines.basics.reading import decoded, read_bytes
from projects.controls.layout import (
    ACTION,
    BINARY,
    CONTROL_NAMES,
    CURSOR,
    FEATURE_SIZE,
    HISTORY,
    HOTBAR,
    INV,
    LOOK,
    STATE_NAMES,
    STATE_SIZE,
    WINDOW,
)
from projects.controls.sending import Rules

POLICY_FILE = "control_policy_v2.pt"
CONFIG_FILE = "control_config_v2.json"
LOG_FILE = "training_log_v2.json"
GRAPH_FILE = "control_policy_v2.pt2"
OLD_POLICY_FILE = "control_policy.pt"
OLD_CONFIG_FILE = "control_config.json"
OLD_LOG_FILE = "training_log.json"
"""Names without the version are those of the older document, whose config is flat."""

DEFAULT_THRESHOLD = 0.5
DEFAULT_HOTBAR_CONFIDENCE = 0.3
SLOWEST, FASTEST = 2.5, 1000.0
"""Frames a second: a stream is broken after half a second without a frame."""
LARGEST_CONFIG = 4 * 2**20
"""Bytes; a real one has under 100 kB."""
_OUTPUTS = {"action": ACTION, "look": LOOK, "hotbar": HOTBAR, "cursor": CURSOR, "inv_click": INV}
FLAT_OUTPUTS = {
    "num_action_controls": ACTION, "num_look_controls": LOOK, "num_hotbar_slots": HOTBAR,
    "num_cursor_controls": CURSOR, "num_inv_controls": INV,
}  # fmt: skip
"""Numbers of outputs in a flat config."""
FLAT_POST = {
    "look_deadzone": "look_deadzone", "look_ema_alpha": "look_smoothing_alpha", "look_rate_limit": "look_rate_limit",
    "cursor_ema_alpha": "cursor_ema_alpha", "hysteresis_margin": "hysteresis_margin", "pulse_margin": "pulse_margin",
}  # fmt: skip
"""Our names of the post-processing → those in a flat config."""
_MODEL_LIMITS = {"d_model": 8192, "nhead": 256, "num_layers": 128, "dim_feedforward": 65536, "max_seq_len": 4096}
"""Larger values are damage or malice: a config must not be able to fill the memory."""
_MODEL_OPTIONS: dict[str, tuple[Any, ...]] = {
    "readout": ("mean", "filter"),
    "whiten": (False, True),
}
"""What each may be; the first is what an export without it means."""
_RESIDUALS = ("look_residual", "cursor_residual")
_OTHER_INPUTS = {
    446: "446 features are these without the 225 velocities",
    551: "551 features are a version-1 model's, of 16 state values and 10 controls",
    559: "559 features are a version-1 model's, of 24 state values and 10 controls",
}


@dataclass(frozen=True)
class PostProcessing:
    """From the model's answers to what the game is sent; the rules are in `docs/controls.md`."""

    hysteresis_margin: float = 0.05
    look_deadzone: float = 0.08
    look_ema_alpha: float = 0.35
    look_rate_limit: float = 0.3
    cursor_ema_alpha: float = 0.5
    pulse_margin: float | None = None
    """None: pulses have `hysteresis_margin`, as in exports of earlier versions."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """`pulse` or `hold` by the name of a control; those that are not named are what `PULSES` says."""

    @property
    def rules(self) -> Rules:
        return Rules.of(self.hysteresis_margin, self.pulse_margin, self.kinds)


@dataclass(frozen=True)
class ExportedConfig:
    """How to run an exported policy."""

    policy: Path
    """The weights beside the config."""
    model: Mapping[str, Any]
    """Sizes and options of the ControlTransformer."""
    action: NDArray[np.float64]
    """Thresholds of the 12 actions."""
    inv: NDArray[np.float64]
    """Thresholds of the three inventory controls."""
    hotbar_confidence: float
    post: PostProcessing = field(default_factory=PostProcessing)
    lagged_state: tuple[int, ...] = ()
    """State columns that are taken from the frame before."""
    statistics: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    """Mean and deviation of the features, (671,) each, where the config holds them and not the weights."""
    fps: float | None = None
    """Frames a second that the model was trained at; None in an export of an earlier version."""
    policy_sha256: str | None = None
    """Digest of the weights this config belongs to."""


def read_exported(folder: Path) -> ExportedConfig:
    """The config in `folder`. Raises `DataError` with a sentence where it is missing, damaged or another model's."""
    names = ((CONFIG_FILE, POLICY_FILE), (OLD_CONFIG_FILE, OLD_POLICY_FILE))
    for config, policy in names:
        if (folder / config).is_file():
            return _Reader(folder / config).read(folder / policy)
    raise DataError(
        f"{folder}: holds no exported policy ({CONFIG_FILE} or {OLD_CONFIG_FILE} expected); "
        "make one with `cockpit export RUN`."
    )


class _Reader:
    """One config file and the sentences about it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, policy: Path) -> ExportedConfig:
        config = self._mapping(self._decode(), "the file")
        if config.get("version") != 2:
            self._refuse("version", config.get("version"), "2; a version-1 policy has other inputs: train it again")
        return self._nested(config, policy) if "model" in config else self._flat(config, policy)

    def _decode(self) -> Any:
        try:
            return decoded(read_bytes(self._path, LARGEST_CONFIG), dict[str, Any])
        except (OSError, msgspec.DecodeError) as error:
            raise DataError(f"{self._path}: cannot be read as a policy's config ({error}); export it again.") from None

    def _nested(self, config: dict[str, Any], policy: Path) -> ExportedConfig:
        model = self._mapping(config["model"], "model")
        sizes = self._sizes(model, {f"num_{name}": columns for name, columns in _OUTPUTS.items()})
        thresholds = self._mapping(config.get("thresholds", {}), "thresholds")
        features = self._mapping(config.get("features", {}), "features")
        self._equal(features, "history_frames", HISTORY)
        post = self._mapping(config.get("post_processing", {}), "post_processing")
        return ExportedConfig(
            policy=policy,
            model=sizes | self._options(model),
            action=self._numbers(thresholds.get("action"), "thresholds.action", len(ACTION)),
            inv=self._numbers(thresholds.get("inv_click"), "thresholds.inv_click", len(INV)),
            hotbar_confidence=self._number(thresholds, "hotbar_min_confidence", DEFAULT_HOTBAR_CONFIDENCE),
            post=self._post(post, {name: name for name in PostProcessing.__dataclass_fields__ if name != "kinds"}),
            lagged_state=self._state_columns(features.get("state_lagged_one_frame", [])),
            fps=self._rate(features),
            policy_sha256=self._digest(config),
        )

    def _flat(self, config: dict[str, Any], policy: Path) -> ExportedConfig:
        sizes = self._sizes(config, FLAT_OUTPUTS)
        self._equal(config, "action_history_length", HISTORY)
        self._equal(config, "game_state_dim", STATE_SIZE)
        self._check_names(config.get("control_names"))
        named = self._mapping(config.get("thresholds", {}), "thresholds")
        known = [CONTROL_NAMES[column] for column in BINARY]
        for name in named:
            if name not in known and name != "hotbar_min_confidence":
                self._refuse("thresholds", name, f"names of controls{nearest(str(name), known)}")
        chosen = np.array([self._number(named, name, DEFAULT_THRESHOLD) for name in known])
        return ExportedConfig(
            policy=policy,
            model=sizes,
            action=chosen[: len(ACTION)],
            inv=chosen[len(ACTION) :],
            hotbar_confidence=self._number(named, "hotbar_min_confidence", DEFAULT_HOTBAR_CONFIDENCE),
            post=self._post(config, FLAT_POST),
            lagged_state=self._state_columns(config.get("state_lagged_one_frame", [])),
            statistics=self._statistics(config),
            fps=self._rate(config),
            policy_sha256=self._digest(config),
        )

    def _sizes(self, model: Mapping[str, Any], outputs: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """The transformer's sizes, with everything that is fixed checked."""
        given = model.get("input_dim")
        if given != FEATURE_SIZE:
            known = _OTHER_INPUTS.get(given, "") if isinstance(given, int) else ""
            self._refuse("input_dim", given, f"{FEATURE_SIZE}" + (f" ({known})" if known else "") + ": train it again")
        for key, columns in outputs.items():
            self._equal(model, key, len(columns))
        sizes = {}
        for key, most in _MODEL_LIMITS.items():
            size = model.get(key, WINDOW if key == "max_seq_len" else None)
            if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= most:
                self._refuse(key, size, f"a whole number from 1 to {most}")
            sizes[key] = size
        if sizes["d_model"] % sizes["nhead"]:
            self._refuse("nhead", sizes["nhead"], f"a divisor of d_model {sizes['d_model']}")
        if sizes["max_seq_len"] < WINDOW:
            self._refuse("max_seq_len", sizes["max_seq_len"], f"at least {WINDOW}")
        return sizes

    def _options(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """How the transformer reads its rows; what an older export does not say is as it was then."""
        found = {key: model.get(key, known[0]) for key, known in _MODEL_OPTIONS.items()}
        for key, known in _MODEL_OPTIONS.items():
            if not any(found[key] == value and type(found[key]) is type(value) for value in known):
                self._refuse(f"model.{key}", found[key], " or ".join(repr(value) for value in known))
        for key in _RESIDUALS:
            found[key] = self._number(model, key, 0.0)
            if not 0 <= found[key] <= 1:
                self._refuse(f"model.{key}", found[key], "a number from 0 to 1")
        return found

    def _check_names(self, names: Any) -> None:
        """A list of control names, if given, must be ours in our order: the outputs are read by position."""
        ours = (CONTROL_NAMES, tuple(CONTROL_NAMES[c] for c in ACTION), tuple(CONTROL_NAMES[c] for c in BINARY))
        if names is not None and not (isinstance(names, list) and tuple(names) in ours):
            self._refuse("control_names", names, f"{', '.join(CONTROL_NAMES[:3])}, … in the order of the recordings")

    def _state_columns(self, names: Any) -> tuple[int, ...]:
        if not isinstance(names, list):
            self._refuse("state_lagged_one_frame", names, "a list of names")
        for name in names:
            if name not in STATE_NAMES:
                self._refuse("state_lagged_one_frame", name, f"state names{nearest(str(name), STATE_NAMES)}")
        return tuple(STATE_NAMES.index(name) for name in names)

    def _statistics(self, config: Mapping[str, Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        if config.get("feature_mean") is None and config.get("feature_std") is None:
            return None
        mean, std = (self._numbers(config.get(key), key, FEATURE_SIZE) for key in ("feature_mean", "feature_std"))
        if not (std > 0).all():
            self._refuse("feature_std", float(std.min()), "numbers above 0")
        return mean.astype(np.float32), std.astype(np.float32)

    def _post(self, given: Mapping[str, Any], names: Mapping[str, str]) -> PostProcessing:
        defaults = PostProcessing()
        said = {ours: theirs for ours, theirs in names.items() if ours != "pulse_margin" or theirs in given}
        values = {ours: self._number(given, theirs, getattr(defaults, ours)) for ours, theirs in said.items()}
        for ours, value in values.items():
            if value < 0 or (value == 0 and not ours.endswith(("margin", "deadzone"))):
                self._refuse(names[ours], value, "a number above 0")  # 0 would hold look or cursor still for ever
            if value > 1 and ours != "look_rate_limit":
                self._refuse(names[ours], value, "a number up to 1")
        return PostProcessing(**values, kinds=self._kinds(given.get("kinds", {})))

    def _kinds(self, given: Any) -> dict[str, str]:
        """Which on-off controls are pulses and which are held."""
        known = [CONTROL_NAMES[column] for column in BINARY]
        for name, kind in self._mapping(given, "post_processing.kinds").items():
            if name not in known:
                self._refuse("post_processing.kinds", name, f"names of controls{nearest(str(name), known)}")
            if kind not in ("pulse", "hold"):
                self._refuse(f"post_processing.kinds.{name}", kind, "pulse or hold")
        return dict(given)

    def _rate(self, features: Mapping[str, Any]) -> float | None:
        if "frames_per_second" not in features:
            return None
        fps = self._number(features, "frames_per_second", 0.0)
        if not SLOWEST <= fps <= FASTEST:
            self._refuse("frames_per_second", fps, f"a number from {SLOWEST:g} to {FASTEST:g}")
        return fps

    def _digest(self, config: Mapping[str, Any]) -> str | None:
        digest = config.get("policy_sha256")
        if digest is not None and not isinstance(digest, str):
            self._refuse("policy_sha256", digest, "a digest as text")
        return digest

    def _mapping(self, value: Any, key: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._refuse(key, value, "a table of keys and values")
        return value

    def _number(self, given: Mapping[str, Any], key: str, default: float) -> float:
        value = given.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._refuse(key, value, "a number")
        return float(value)

    def _numbers(self, values: Any, key: str, count: int) -> NDArray[np.float64]:
        if not isinstance(values, list) or len(values) != count:
            found = f"{len(values)} values" if isinstance(values, list) else values
            self._refuse(key, found, f"{count} numbers")
        return np.array([self._number({key: value}, key, 0.0) for value in values])

    def _equal(self, given: Mapping[str, Any], key: str, expected: int) -> None:
        if given.get(key, expected) != expected:
            self._refuse(key, given[key], str(expected))

    def _refuse(self, key: str, found: Any, expected: str) -> NoReturn:
        shown = repr(found) if len(repr(found)) < 60 else f"{repr(found)[:60]}…"
        raise DataError(f"{self._path}: {key} is {shown}, expected {expected}.")
