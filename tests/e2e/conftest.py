"""The real program in a real terminal: a tmux server of our own, a home of our own, small demo data."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engines.basics.lock import lock_holder
from engines.runs.store import list_runs

ROOT = Path(__file__).resolve().parents[2]
COCKPIT = Path(sys.executable).with_name("cockpit")
PATIENCE = 180.0


def wait_for(what: str, condition: Callable[[], object], shown: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE:.0f} s in vain for {what}\n{shown()}")


class Terminal:
    """One tmux session with the program in it."""

    def __init__(
        self, socket: str, name: str, command: str, cwd: Path, env: dict[str, str], size: tuple[int, int]
    ) -> None:
        self._tmux = ["tmux", "-S", socket, "-f", "/dev/null"]
        self._name = name
        width, height = size
        subprocess.run(
            [*self._tmux, "new-session", "-d", "-s", name, "-x", str(width), "-y", str(height), command],
            cwd=cwd, env={**env, "TERM": "tmux-256color"}, check=True,
        )  # fmt: skip

    def screen(self, *, colours: bool = False) -> str:
        escapes = ["-e"] if colours else []
        shown = subprocess.run(
            [*self._tmux, "capture-pane", *escapes, "-p", "-t", self._name], capture_output=True, text=True, check=False
        )
        return shown.stdout

    def press(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", "-t", self._name, *keys], check=True)

    def wait_text(self, *texts: str) -> None:
        wait_for(f"{texts} on the screen", lambda: any(text in self.screen() for text in texts), self.screen)

    def kill(self) -> None:
        """As a closed terminal does: the program's group gets SIGHUP, its tty is gone."""
        subprocess.run([*self._tmux, "kill-session", "-t", self._name], check=True)


@pytest.fixture(scope="session")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small demo recordings, made by the command a user types."""
    folder = tmp_path_factory.mktemp("demo")
    made = subprocess.run(
        [COCKPIT, "data", "make", "controls", "recordings", "--sessions", "8", "--minutes", "0.5"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return folder / "recordings"


def environment(home: Path) -> dict[str, str]:
    """A home and a runs folder apart from the user's, and from what other tests have looked at and chosen."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**inherited, "HOME": str(home), "COCKPIT_RUNS": str(home / "runs")}


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a test's programs; what they leave running is ended."""
    yield environment(tmp_path)
    end_runs(tmp_path / "runs")


def end_runs(folder: Path) -> None:
    """Kill what still runs there, and wait until it is gone."""
    for run in list_runs(folder):
        if (holder := lock_holder(run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)
            wait_for("the engine to be gone", lambda run=run: lock_holder(run.lock) is None)  # type: ignore[misc]


@pytest.fixture
def terminal(tmp_path: Path, env: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals: `terminal("cockpit demo", size=(80, 24))`."""
    if shutil.which("tmux") is None:
        if os.environ.get("CI"):
            pytest.fail("tmux is missing, and CI must run the end-to-end tests")
        pytest.skip("tmux is not installed")
    # A server for each test, whose environment sessions get, and that stays when its last session ends: one that is
    # about to exit takes no new session. It leaves its socket behind.
    with tempfile.TemporaryDirectory(prefix="tmux-", ignore_cleanup_errors=True) as folder:
        socket = f"{folder}/socket"
        tmux = ["tmux", "-S", socket, "-f", "/dev/null"]
        subprocess.run([*tmux, "start-server", ";", "set-option", "-s", "exit-empty", "off"], env=env, check=True)
        count = iter(range(100))

        def open_terminal(command: str, size: tuple[int, int] = (80, 24)) -> Terminal:
            return Terminal(socket, f"t{next(count)}", command, tmp_path, env, size)

        yield open_terminal
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)
