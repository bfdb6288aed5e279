"""Other machines whose runs are listed too: remembered, asked whether they answer, forgotten."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from cockpit.cli import codes
from cockpit.cli.printing import say, show, show_json, show_table
from cockpit.core.hosts.address import Host
from cockpit.core.hosts.link import Link
from cockpit.core.hosts.links import close_links, open_links
from cockpit.core.settings import SettingsFile, settings_path
from cockpit.core.states import is_live
from cockpit.core.typed import typed
from engines.basics.errors import UserError, nearest
from engines.runs.store import list_runs

CONNECT_SECONDS = 60.0
"""For the first look at all runs of a host."""


def hosts(arguments: Namespace) -> int:
    """Show which answer, or forget some. Exit code 1 where one does not answer."""
    settings = _settings()
    if arguments.forget:
        return _forget(settings, arguments.forget)
    links = connected(_remembered(settings))
    facts = [_facts(link) for link in links]
    if arguments.json:
        show_json(facts)
    elif not facts:
        say(typed("no other machines; `cockpit --host user@box` lists the runs of one"))
    else:
        show_table(("host", "runs", "live", ""), [tuple(map(str, one.values())) for one in facts])
    failed = any(link.fault for link in links)
    close_links()
    return codes.FAILED if failed else codes.DONE


def connected(them: Sequence[Host]) -> list[Link]:
    """The links to these hosts, after the first look at each or its failure."""
    links = open_links(them)
    for link in links:
        link.wait(CONNECT_SECONDS)
    return links


def remember(written: Sequence[str]) -> None:
    """Show the runs of these hosts from now on. Raises `UserError`."""
    settings = _settings()
    new = dict.fromkeys(Host.parse(one).written for one in written)
    if known := [one for one in new if one not in settings.value.hosts]:
        _change(settings, [*settings.value.hosts, *known])


def _settings() -> SettingsFile:
    settings = SettingsFile(settings_path())
    if settings.problem:
        raise UserError(settings.problem)
    return settings


def _change(settings: SettingsFile, hosts: list[str]) -> None:
    settings.change(hosts=hosts)
    if settings.problem:
        raise UserError(settings.problem)


def _remembered(settings: SettingsFile) -> list[Host]:
    try:
        return [Host.parse(written) for written in settings.value.hosts]
    except UserError as error:
        raise UserError(f"{settings.path}: {error}") from None


def _facts(link: Link) -> dict[str, str | int]:
    from cockpit.core.runs.summary import look

    runs = [look(run.path) for run in list_runs(link.folder)]
    live = sum(is_live(run.state) for run in runs)
    return {"host": link.host.written, "runs": len(runs), "live": live, "problem": link.fault}


def _forget(settings: SettingsFile, names: Sequence[str]) -> int:
    """Each by its address or the name that it has in lists."""
    kept, gone = _remembered(settings), []
    for name in names:
        found = [host for host in kept if name in (host.written, host.destination, host.name)]
        if not found:
            known = [host.name for host in kept]
            raise UserError(f"No host is called {name!r}{nearest(name, known)}; `cockpit hosts` lists them.")
        for host in found:
            kept.remove(host)
        gone += found
    _change(settings, [host.written for host in kept])
    for host in gone:
        host.forget()
        show(f"{host.written} is forgotten; its runs stay there")
    return codes.DONE
