"""An OpenSSH server of the test's own: on loopback, with keys that are thrown away and a port that was free."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import wait_for

CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/person.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
StrictModes no
PidFile none
"""
TRIES = 5
"""Ports: between being found free and being listened at, one can be taken."""
FOR_ROOT = Path("/run/sshd")
"""A server that root starts wants this empty folder; elsewhere whatever starts the machine's own server makes it."""


class SshServer:
    def __init__(self, folder: Path, port: int, process: psutil.Process) -> None:
        self._folder, self._port, self._process = folder, port, process
        self._serving: list[psutil.Process] = []

    def command(self, program: str, cwd: Path, env: dict[str, str]) -> str:
        """What a shell takes to run `program` at the other end of a connection, in a terminal."""
        given = shlex.join(f"{name}={value}" for name, value in env.items())
        there = f"cd {shlex.quote(str(cwd))} && exec env {given} {shlex.quote(program)}"
        options = ("BatchMode=yes", "IdentitiesOnly=yes", f"UserKnownHostsFile={self._folder / 'known'}")
        return shlex.join(
            ["ssh", "-tt", "-F", "/dev/null", "-i", str(self._folder / "person"), "-p", str(self._port),
             *(part for option in options for part in ("-o", option)), f"{getpass.getuser()}@127.0.0.1", there]
        )  # fmt: skip

    def client_config(self, name: str) -> str:
        """What a client's configuration says of this server, for `ssh name`."""
        return (
            f"Host {name}\n  HostName 127.0.0.1\n  Port {self._port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {self._folder / 'person'}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self._folder / 'known'}\n"
        )

    def at_the_other_end(self) -> list[psutil.Process]:
        """What runs in the terminals of its connections."""
        below = self._process.children(recursive=True)
        return [process for process in below if not _serves(process) and process.terminal()]

    def cut(self) -> None:
        """Kill what serves the connections: neither end gets to say anything more."""
        for process in self._process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # one of a pair may go with the other
                if _serves(process):
                    process.kill()

    def freeze(self) -> None:
        """Stop what serves the connections: nothing comes through, and nobody is told."""
        self._serving = [process for process in self._process.children(recursive=True) if _serves(process)]
        for process in self._serving:
            process.suspend()

    def thaw(self) -> None:
        """Let the frozen connections go on."""
        for process in self._serving:
            with suppress(psutil.NoSuchProcess):  # a link that was given up may have ended it
                process.resume()


def _serves(process: psutil.Process) -> bool:
    return process.name().startswith("sshd")  # `sshd-session` since OpenSSH 9.8


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """Skips the test where there is no OpenSSH server; not where CI must run it."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh") is None:
        if os.environ.get("CI"):
            pytest.fail("OpenSSH's server is missing, and CI must run the end-to-end tests")
        pytest.skip("OpenSSH's server and client are not installed")
    if os.geteuid() == 0:
        FOR_ROOT.mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "person"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    for _ in range(TRIES):
        port = _free_port()
        (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
        (folder / "config").write_text(CONFIG.format(port=port, folder=folder))
        with open(folder / "log", "wb") as log:
            started = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "config")], stdin=log, stderr=log)
        try:
            wait_for("the SSH server", lambda: _listens(folder) or started.poll() is not None)  # noqa: B023
            if started.poll() is None:
                server = SshServer(folder, port, psutil.Process(started.pid))
                try:
                    yield server
                finally:
                    server.thaw()
                return
        finally:
            started.send_signal(signal.SIGTERM)
            started.wait()
    pytest.fail((folder / "log").read_text())


def client_with(folder: Path, servers: Mapping[str, SshServer]) -> Path:
    """A folder for the front of PATH, with an ssh that knows these servers by name and nothing of the user's."""
    config, client = folder / "client_config", folder / "bin" / "ssh"
    config.write_text("".join(server.client_config(name) for name, server in servers.items()))
    client.parent.mkdir()
    client.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {shlex.quote(str(config))} "$@"\n')
    client.chmod(0o755)
    return client.parent


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(folder: Path) -> bool:
    """By its own word: whoever took the port before it could answer there too."""
    return "Server listening" in (folder / "log").read_text()
