"""Where a checkpoint stands and what was in force there, as the file itself says it; read without torch.

Events tell it too, but a moment after the file has got its name: of a run that saves just now only the file is sure.
"""

from __future__ import annotations

import contextlib
import errno
import pickle
import re
import shutil
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engines.basics import files
from engines.basics.errors import DataError
from engines.contract import commands as cmd

if TYPE_CHECKING:
    from engines.contract.config import LoadedConfig


SHARDS = re.compile(r"shards_\d{1,12}_\d{1,6}", re.ASCII)
"""The name of a folder of shards, beside the checkpoint that names it."""
LARGEST = 1 << 26
"""Bytes of a checkpoint's index: all but its tensors' numbers."""
TRIES = 5
"""To take a checkpoint in shards from a run that saves meanwhile."""


@dataclass(frozen=True)
class Saved:
    """Counters and live settings of a checkpoint."""

    step: int
    epoch: int
    """Epochs done."""
    inside: bool
    """It stands inside an epoch, or before an epoch's evaluation."""
    weights: dict[str, float]
    """Loss weights by head."""
    lr_scale: float
    epochs: int
    patience: int | None
    """None where nobody has changed the config's."""
    stage: int = 0
    """Which it stands in, from 0."""
    best_epoch: int = 0
    """Epoch of the best score so far; 0 without one."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the project wrote into it (`Project.metadata`)."""
    shards: str = ""
    """The folder beside it that has most of its tensors; empty for a checkpoint that is whole."""

    def edits(self, recorded: LoadedConfig, attempt: int) -> list[cmd.Edit]:
        """What makes these settings of the recorded ones."""
        configured = recorded.settings.loss_weights.model_dump()
        weights = {head: weight for head, weight in self.weights.items() if configured.get(head) != weight}
        found: list[cmd.Edit] = [cmd.SetLossWeights(attempt=attempt, weights=weights)] if weights else []
        if self.lr_scale != 1:
            found.append(cmd.SetLrScale(attempt=attempt, scale=self.lr_scale))
        if self.epochs != recorded.settings.training.epochs:
            found.append(cmd.SetEpochs(attempt=attempt, epochs=self.epochs))
        if self.patience is not None:
            found.append(cmd.SetPatience(attempt=attempt, patience=self.patience))
        return found


def read_saved(path: Path) -> Saved:
    """What the checkpoint at `path` says of itself. Raises `DataError` for what is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            part = next(part for part in archive.infolist() if part.filename.endswith("/data.pkl"))
            if part.file_size > LARGEST or part.compress_type != zipfile.ZIP_STORED:
                raise DataError("its index is too large, or packed")
            with archive.open(part) as file:
                content = _NumbersAndWords(file).load()
        state, metadata = content["state"], content.get("metadata", {})
        live, shards = state["live"], content.get("shards", {}).get("folder", "")
        if shards and not SHARDS.fullmatch(shards):
            raise DataError("it names a folder that no checkpoint has")
        return Saved(
            step=int(state["step"]), epoch=int(state["epoch"]), inside=state["step_in_epoch"] > 0,
            weights={head: float(weight) for head, weight in live["weights"].items()},
            lr_scale=float(live["lr_scale"]), epochs=int(live["epochs"]), patience=live["patience"],
            stage=int(state.get("stage", 0)), best_epoch=int(state.get("best_epoch", 0)), metadata=metadata,
            shards=shards,
        )  # fmt: skip
    except Exception as error:  # damaged bytes can mean anything to what reads them
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise DataError(f"{path} is not a whole checkpoint of this program ({reason}); choose another one.") from None


def shards_of(path: Path) -> str:
    """The folder of its shards; empty where it has none, or is damaged."""
    try:
        return read_saved(path).shards
    except DataError:
        return ""


def shard_files(path: Path) -> list[Path]:
    """The files of its shards, in order; none of a checkpoint that is whole."""
    return _shards_in(path.parent / folder) if (folder := shards_of(path)) else []


def _shards_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.safetensors") if file.is_file())


def take_checkpoint(source: Path, target: Path) -> None:
    """Make `target` the same checkpoint as `source`, with its shards. Raises OSError.

    A live run replaces last.pt, and only then removes the shards of the older one: while `source` names the same
    shards as `target`, all of these were there.
    """
    for _ in range(TRIES):
        files.replace_by_link(source, target)
        if not (folder := shards_of(target)):
            return
        place = target.parent / folder
        with contextlib.suppress(FileNotFoundError):
            for file in _shards_in(source.parent / folder):
                files.make_directory(place)
                files.replace_by_link(file, place / file.name)
        if shards_of(source) == folder:
            return
        shutil.rmtree(place, ignore_errors=True)
    raise OSError(errno.EBUSY, "the run saves faster than it can be copied", str(source))


def epoch_of(path: Path) -> int | None:
    """Epochs done at the checkpoint at `path`; None where there is none, or it is damaged."""
    try:
        return read_saved(path).epoch
    except DataError:
        return None


class _Nothing:
    """Stands for a tensor, or for whatever else is no number and no word."""

    def __init__(self, *parts: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


class _NumbersAndWords(pickle._Unpickler):
    """Runs no code: whatever names a class or a function gets `_Nothing`.

    It is Python's own, whose memo is a dict: in the one written in C a number in a file of 30 bytes takes gigabytes.
    """

    dispatch = {
        code: load for code, load in pickle._Unpickler.dispatch.items()
        if code != pickle.BYTEARRAY8[0]
    }  # fmt: skip
    """Without the one code that takes memory before it has read what fills it."""

    def find_class(self, module: str, name: str) -> Any:
        return OrderedDict if (module, name) == ("collections", "OrderedDict") else _Nothing

    def persistent_load(self, pid: Any) -> None:
        return None
