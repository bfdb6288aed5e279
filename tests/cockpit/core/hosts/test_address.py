"""What can be typed for a host, what ssh is given for it, and what is refused."""

from __future__ import annotations

import shlex

import pytest

from cockpit.core.hosts.address import Host
from engines.basics.errors import UserError


@pytest.mark.parametrize(
    ("written", "destination", "runs", "name"),
    [
        ("box", "box", "", "box"),
        ("me@gpu1.example.org", "me@gpu1.example.org", "", "gpu1"),
        ("me@gpu1.example.org:/data/my runs", "me@gpu1.example.org", "/data/my runs", "gpu1"),
        ("root@10.0.0.7:runs", "root@10.0.0.7", "runs", "10.0.0.7"),
        ("me@[fe80::1]:~/runs", "me@fe80::1", "~/runs", "fe80::1"),
    ],
)
def test_an_address_is_read_and_written_again(written: str, destination: str, runs: str, name: str) -> None:
    host = Host.parse(written)
    assert (host.destination, host.runs, host.name, host.written) == (destination, runs, name, written)


@pytest.mark.parametrize(
    "written",
    ["", "-oProxyCommand=touch /tmp/x", "me@-box", "-me@box", "me@", "a b", "box:", "box\n:runs", "box:\x1b[2J",
     "a@b@c", "$(id)", "box;id", "../..", "me@box/..", "x" * 501],
)  # fmt: skip
def test_what_ssh_or_a_shell_could_take_for_more_than_a_host_is_refused(written: str) -> None:
    with pytest.raises(UserError, match="expected user@box"):
        Host.parse(written)


def test_every_host_has_a_folder_of_its_own_below_the_cache() -> None:
    folders = {Host.parse(text).folder({"XDG_CACHE_HOME": "/c"}) for text in ("a", "a:x", "b@a", "a.org", "[::1]:x")}
    assert len(folders) == 5
    assert {str(folder.parent) for folder in folders} == {"/c/cockpit/hosts"}


def test_a_command_for_the_machine_itself_survives_both_shells() -> None:
    here = shlex.split(Host.parse("me@box:/my runs").typed("resume", "it's; id"))
    assert here[:3] == ["ssh", "-t", "me@box"]
    assert shlex.split(here[3]) == ["COCKPIT_RUNS=/my runs", "cockpit", "resume", "it's; id"]
    assert "COCKPIT_RUNS=runs " in Host.parse("box:~/runs").typed(
        "ls"
    )  # from the home there; no shell expands a quoted ~
    assert Host.parse("box").ssh("x")[-3:] == ["--", "box", "x"]
