"""Checkpoints: whole or absent, loaded without running code, last before best."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path
from typing import IO, Any

import torch

from engines.basics import files
from engines.basics.errors import DataError
from engines.contract.events import Checkpoint
from engines.contract.rundir import RunDirectory
from engines.runtime.room import Room

FORMAT = 1


def save(
    run: RunDirectory, content: dict[str, Any], room: Room, *, step: int, epoch: int, best: bool, keep: bool
) -> None:
    """Write `content` once, make it durable, then name it last.pt, then best.pt and epoch_NNN.pt where asked for.

    Raises OSError with the older checkpoints untouched.
    """
    began = time.monotonic()

    def write(file: IO[bytes]) -> None:
        try:
            torch.save({"format": FORMAT, **content}, file)
        except RuntimeError as error:  # what torch's archive writer makes of a disk that is full
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise

    files.replace_with(run.last, write)
    names = [run.last.name]
    wanted = [run.best] * best + [kept(run, epoch)] * keep
    for path in wanted:
        files.replace_by_link(run.last, path)
        names.append(path.name)
    size = run.last.stat().st_size
    room.write(Checkpoint(step=step, epoch=epoch, files=names, size=size, seconds=time.monotonic() - began))


def kept(run: RunDirectory, epoch: int) -> Path:
    """Where the checkpoint of the end of an epoch is kept, if it is."""
    return run.checkpoints / f"epoch_{epoch:03d}.pt"


def looks_whole(path: Path) -> bool:
    """Whether it is there and not cut short or overwritten, without reading all of it: an archive ends in its table."""
    return zipfile.is_zipfile(path)


def resume_point(run: RunDirectory) -> Path | None:
    """The checkpoint to go on from: last.pt, the newest kept epoch, what a fork began with, best.pt, or None."""
    kept = sorted(run.checkpoints.glob("epoch_*.pt"), key=lambda file: int(file.stem.removeprefix("epoch_")))
    return next((file for file in (run.last, *reversed(kept), run.fork, run.best) if file.is_file()), None)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU. Raises `DataError` for one that is cut short, foreign or of another format."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes can mean anything to what reads them
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise DataError(
            f"{path} is not a whole checkpoint (cut short or damaged: {reason}); "
            "move it away to resume from the next older one in its folder."
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"{path} is not a checkpoint of this program (format {FORMAT} expected); choose another file.")
    return content


def same(one: Any, other: Any) -> bool:
    """Whether two parts of a checkpoint are equal to the last bit, wherever their tensors lie."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one.cpu(), other.cpu())
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
