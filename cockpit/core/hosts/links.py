"""The links of this process to other machines, and which of them a run that is read here came through.

Most cockpits have none: what connects is imported with the first one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.core.text import run_word
from engines.basics.errors import UserError
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs.state import Status

if TYPE_CHECKING:
    from cockpit.core.hosts.address import Host
    from cockpit.core.hosts.link import Link

_LINKS: dict[Path, Link] = {}
"""By the folder that each one fills."""


def open_links(hosts: Iterable[Host]) -> list[Link]:
    """Connect to each host. Raises OSError where nothing can be written here."""
    from cockpit.core.hosts.link import Link

    for host in dict.fromkeys(hosts):
        link = Link(host)
        _LINKS[link.folder] = link
        link.start()
    return links()


def close_links() -> None:
    """Close every link; all runs go on."""
    for link in links():
        link.stop()
    _LINKS.clear()  # not before: until then a run of theirs is none of this machine


def links() -> list[Link]:
    return list(_LINKS.values())


def link_of(run: Path) -> Link | None:
    """The link that the run at `run` came through; None for a run of this machine."""
    return _LINKS.get(run.parent) if _LINKS else None


def host_of(run: Path) -> str:
    """The name of the machine that the run at `run` is on; empty for this one."""
    link = link_of(run)
    return link.host.name if link is not None else ""


def on_host(host: str, words: str) -> str:
    """`words` after the name of the machine that `host_of` gives, where it is another one: `gpu1:amber`."""
    return f"{host}:{words}" if host else words


def want(run: Path) -> None:
    """Curves and output of the run are looked at: they come from another machine only then."""
    if (link := link_of(run)) is not None:
        link.want(run.name)


def as_heard(link: Link | None, status: Status) -> Status:
    """The state of a run of `link`: while that is down nobody knows whether a live run still lives."""
    if link is not None and status.live and (stale := link.stale):
        return Status("stale", stale)
    return status


# -- what can be done to a run wherever it is --------------------------------------------------------------------------


def send(run: RunDirectory, command: cmd.Command) -> None:
    """Append a command for the engine, here or there. Raises OSError, and `DataError` where it does not arrive."""
    from engines.runs import launch

    if (link := link_of(run.path)) is not None:
        link.send(run.path.name, command)
    else:
        launch.send(run, command)


def send_stop(run: RunDirectory, order: cmd.Stop) -> None:
    """Ask a run to stop, here or there. Raises as `send`."""
    from engines.runs import launch

    if link_of(run.path) is not None:
        send(run, order)
    else:
        launch.send_stop(run, order)


def only_there(run: Path, *command: str) -> str:
    """A sentence for what can be done to a run only on its own machine; empty for a run of this one."""
    if (link := link_of(run)) is None:
        return ""
    typed = link.host.typed(*command, run.name)
    return f"{run_word(run.name)} is on {link.host.name}; run `{typed}`."


def require_here(run: Path, *command: str) -> None:
    """Raises `UserError` with that sentence for a run of another machine."""
    if sentence := only_there(run, *command):
        raise UserError(sentence)
