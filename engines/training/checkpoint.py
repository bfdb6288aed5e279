"""Checkpoints: whole or absent, loaded without running code, last before best."""

from __future__ import annotations

import shutil
import time
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from engines.basics import files
from engines.basics.errors import DataError
from engines.contract.events import Checkpoint
from engines.contract.rundir import RunDirectory
from engines.runs.saved import SHARDS, shards_of

if TYPE_CHECKING:
    from engines.training.shards import Like

FORMAT = 1


def write(run: RunDirectory, content: dict[str, Any], *, step: int, epoch: int, best: bool, keep: bool) -> Checkpoint:
    """Write `content` once, make it durable, then name it last.pt, then best.pt and epoch_NNN.pt where asked for.

    The event that says so, to be written. In any thread. Raises OSError with the older checkpoints untouched.
    """
    began = time.monotonic()

    def fill(file: IO[bytes]) -> None:
        try:
            torch.save({"format": FORMAT, **content}, file)
        except RuntimeError as error:  # what torch's archive writer makes of a disk that is full
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise

    files.replace_with(run.last, fill)
    names = [run.last.name]
    wanted = [run.best] * best + [kept(run, epoch)] * keep
    for path in wanted:
        files.replace_by_link(run.last, path)
        names.append(path.name)
    size = run.last.stat().st_size + sum(content.get("shards", {}).get("files", {}).values())
    _remove_older_shards(run, step)
    return Checkpoint(step=step, epoch=epoch, files=names, size=size, seconds=time.monotonic() - began)


def _remove_older_shards(run: RunDirectory, step: int) -> None:
    """Of steps before `step`, or of the same one and not named by last.pt; those that a fork began with stay."""
    folders = [folder for folder in run.checkpoints.glob("shards_*") if SHARDS.fullmatch(folder.name)]
    if not folders:
        return
    number = int(name.rpartition("_")[2]) if (name := shards_of(run.last)) else 0
    for folder in folders:
        of_step, of_number = map(int, folder.name.split("_")[1:])
        if (of_step, of_number) < (step, number) and folder.name != shards_of(run.fork):
            shutil.rmtree(folder, ignore_errors=True)


class Snapshot:
    """A copy of `content` in the host's memory, taken without waiting for a device: training may go on at once."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._copies: dict[tuple[Any, ...], Tensor] = {}
        self._taken: torch.cuda.Event | None = None
        self._content = tree_map_only(Tensor, self._copied, content)
        if any(tensor.is_cuda for tensor in tree_leaves(content) if isinstance(tensor, Tensor)):
            self._taken = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._taken.record()

    def _copied(self, tensor: Tensor) -> Tensor:
        """One copy of what is the same tensor under several names."""
        tensor = tensor.detach()
        key = tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype
        if key not in self._copies:
            if tensor.is_cuda:
                host = torch.empty_like(tensor, device="cpu", pin_memory=True)
                self._copies[key] = host.copy_(tensor, non_blocking=True)
            else:
                self._copies[key] = tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()
        return self._copies[key]

    def content(self) -> dict[str, Any]:
        """The copy, once it is whole."""
        if self._taken is not None:
            self._taken.synchronize()
        return self._content  # type: ignore[no-any-return]


def kept(run: RunDirectory, epoch: int) -> Path:
    """Where the checkpoint of the end of an epoch is kept, if it is."""
    return run.checkpoints / f"epoch_{epoch:03d}.pt"


def looks_whole(path: Path) -> bool:
    """Whether it is there and not cut short or overwritten, without reading all of it: an archive ends in its table."""
    return zipfile.is_zipfile(path)


def resume_point(run: RunDirectory) -> Path | None:
    """The checkpoint to go on from: last.pt, the newest kept epoch, what a fork began with, best.pt, or None."""
    epochs = {file: file.stem.removeprefix("epoch_") for file in run.checkpoints.glob("epoch_*.pt")}
    kept = sorted((file for file, epoch in epochs.items() if epoch.isdecimal()), key=lambda file: int(epochs[file]))
    return next((file for file in (run.last, *reversed(kept), run.fork, run.best) if file.is_file()), None)


def load(path: Path, like: Like | None = None, *, joined: bool = True) -> dict[str, Any]:
    """Read a checkpoint onto the CPU, one in shards as `like` makes its tensors; not `joined`, without its shards.

    Raises `DataError` for one that is cut short, foreign or of another format.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        if joined and isinstance(content, dict) and content.get("format") == FORMAT and "shards" in content:
            from engines.training import shards

            content = shards.join(path, content, like)
    except DataError:
        raise
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
