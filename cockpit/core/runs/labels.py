"""The user's own words on a run: its label, notes and tags, in its record; its directory keeps its name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from cockpit.core.hosts.links import link_of
from cockpit.core.text import plain
from engines.basics.errors import UserError
from engines.basics.lock import alone_with
from engines.contract.rundir import RunDirectory

LONGEST_LABEL = 80
LONGEST_NOTES = 1000
LONGEST_TAG = 40
MOST_TAGS = 20


def describe(
    run: RunDirectory, *, label: str | None = None, notes: str | None = None, tags: Iterable[str] | None = None
) -> None:
    """Give a run, live or not, a label, notes or tags; None leaves what is there.

    Escape sequences and invisible marks are taken out. Raises `UserError` for what is too long, `DataError` for a run
    without a readable record, OSError where it cannot be written.
    """
    changes: dict[str, Any] = {}
    for name, text, longest in (("label", label, LONGEST_LABEL), ("notes", notes, LONGEST_NOTES)):
        if text is None:
            continue
        changes[name] = plain(text).strip()
        if (length := len(changes[name])) > longest:
            raise UserError(f"The {name} of {run.path.name} has {length} characters; at most {longest} are allowed.")
    if tags is not None:
        changes["tags"] = _few(run, read_tags(tags))
    _write(run, lambda: changes)


def tag(run: RunDirectory, add: Iterable[str] = (), remove: Collection[str] = ()) -> list[str]:
    """Add tags to a run and take others off it; the tags it has then. Raises as `describe`."""
    added, gone = read_tags(add), {one.casefold() for one in remove}

    def change() -> dict[str, Any]:
        kept = [one for one in run.info.tags if one.casefold() not in gone]
        return {"tags": _few(run, read_tags([*kept, *added]))}

    return list(_write(run, change)["tags"])


def read_tags(words: Iterable[str]) -> list[str]:
    """Single words, each once whatever its case, from words and lists with spaces or commas. Raises `UserError`."""
    found: dict[str, str] = {}
    for word in " ".join(words).replace(",", " ").split():
        one = plain(word).removeprefix("#")
        if len(one) > LONGEST_TAG:
            raise UserError(f"The tag {one[:LONGEST_TAG]}… has {len(one)} characters; at most {LONGEST_TAG} fit.")
        if one:
            found.setdefault(one.casefold(), one)
    return list(found.values())


def _few(run: RunDirectory, tags: list[str]) -> list[str]:
    if len(tags) > MOST_TAGS:
        raise UserError(f"{run.path.name} would have {len(tags)} tags; at most {MOST_TAGS} fit.")
    return tags


def _write(run: RunDirectory, change: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Read, change and write the record, alone with it; what was changed."""
    if (link := link_of(run.path)) is not None:
        changes = change()
        link.describe(run.path.name, changes)
        return changes
    _ = run.info  # a run without a record says so, before its directory is opened
    with alone_with(run.path):
        changes = change()
        run.write_info(msgspec.structs.replace(run.info, **changes))
    return changes
