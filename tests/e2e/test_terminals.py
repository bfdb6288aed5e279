"""On every kind of terminal: words readable, keys at work, the terminal left as it was found."""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import COCKPIT, Terminal, wait_for
from tests.support.fake_run import FakeRun

LEFT = "the shell is back"
PATIENCE = 180.0


@pytest.fixture
def amber(tmp_path: Path) -> Iterator[FakeRun]:
    """A running run with one line of log."""
    (tmp_path / "runs").mkdir()
    fake = FakeRun(tmp_path / "runs").begin().started(epochs=9).epochs(1, 2, 3, best=3)
    fake.run.stdout.write_text("grüße → one line of log\n")
    with fake.locked():
        yield fake


@pytest.mark.behaviour("tmux-screen-xterm-dumb")
@pytest.mark.parametrize(
    "setting",
    ["TERM=xterm-256color", "TERM=screen", "TERM=dumb", "TERM=screen NO_COLOR=1"],
)
def test_words_are_readable_keys_work_and_the_shell_comes_back(
    terminal: Callable[..., Terminal], amber: FakeRun, setting: str
) -> None:
    plain = "dumb" in setting
    shell = terminal(f"sh -c 'env {setting} LANG=C.UTF-8 {COCKPIT}; echo {LEFT}; cat'")
    shell.wait_text(("*" if plain else "●") + " running")
    wanted = ("cockpit", "1 running", "State", "Score", amber.run.path.name, "3/9", "0.300", "quit")
    wait_for("the whole list", lambda: all(words in shell.screen() for words in wanted), shell.screen)
    cursor = re.compile(r"^..\s*>.*amber", re.MULTILINE)
    wait_for("the cursor", lambda: cursor.search(shell.screen()), shell.screen)
    shell.press("Enter")
    shell.wait_text("TrLoss")
    on_it = ("running", "epoch 3/9", "Score", "0.300", "pause", "stop", "quit")
    wait_for("the whole run", lambda: all(words in shell.screen() for words in on_it), shell.screen)
    run = shell.screen()
    assert run.isascii() is plain
    shell.press("Escape")
    shell.wait_text("1 run ")
    shell.press("q")
    shell.wait_text(LEFT)
    assert "1 run " not in shell.screen()


class Line:
    """The program on a terminal of which every byte is seen."""

    def __init__(self, cwd: Path, env: dict[str, str]) -> None:
        self.sent = b""
        self._fd, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(inner)
        self.process = subprocess.Popen(
            [COCKPIT], cwd=cwd, env=env, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        self._inner = inner

    def wait(self, condition: Callable[[bytes], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition(self.sent):
            assert time.monotonic() < deadline, self.sent[-3000:]
            if select.select([self._fd], [], [], 0.1)[0]:
                self.sent += os.read(self._fd, 65536)

    def press(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def leave(self) -> None:
        self.press(b"q")
        self.ended(0)

    def ended(self, code: int) -> None:
        """Wait for the end, which gave the terminal back."""
        self.wait(lambda sent: self.process.poll() is not None and not select.select([self._fd], [], [], 0)[0])
        assert self.process.returncode == code
        assert termios.tcgetattr(self._inner) == self.before
        for file in (self._fd, self._inner):
            os.close(file)


def words(sent: bytes) -> bytes:
    """Without control sequences."""
    return re.sub(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07", b"", sent)


@pytest.mark.behaviour("terminal-cannot-show-more")
@pytest.mark.parametrize(
    "setting",
    [
        {"TERM": "dumb"},
        {"TERM": "linux"},
        {"TERM": "xterm", "LC_ALL": "C"},
    ],
    ids=" ".join,
)
def test_plain_terminals_get_no_byte_above_ascii(
    tmp_path: Path, env: dict[str, str], amber: FakeRun, setting: dict[str, str]
) -> None:
    bare = {name: value for name, value in env.items() if name not in ("LANG", "LC_ALL", "LC_CTYPE")}
    line = Line(tmp_path, bare | setting)
    line.wait(lambda sent: b"* running" in words(sent))
    line.press(b"\r")
    line.wait(lambda sent: b"TrLoss" in words(sent))
    line.leave()
    assert line.sent.isascii()
    if setting["TERM"] in ("dumb", "linux"):
        assert b"\x1b]0;" not in line.sent


def pasted(text: bytes) -> bytes:
    return b"\x1b[200~" + text + b"\x1b[201~"


@pytest.mark.behaviour("keys-arrive-together-over", "pasted-text-whatever-escapes")
def test_keys_and_pastes_sent_in_one_go_filter_the_list_and_open_what_is_left(
    tmp_path: Path, env: dict[str, str], amber: FakeRun
) -> None:
    birch = FakeRun(tmp_path / "runs", "controls-20261127-210000-birch").begin().started(epochs=9).epochs(1, 2)
    line = Line(tmp_path, env | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    line.wait(lambda sent: b"2 runs" in words(sent))
    line.press(pasted(b"\x1b[31mnew\x1b[0m \x1b") + b"/" + pasted(b"\x1b[1mbir\x1b[0m") + b"ch\r\r")
    line.wait(lambda sent: b"TrLoss" in words(sent) and birch.run.path.name.encode() in words(sent))
    line.leave()


def test_ctrl_z_gives_the_shell_back_until_it_goes_on(tmp_path: Path, env: dict[str, str], amber: FakeRun) -> None:
    line = Line(tmp_path, env | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    line.wait(lambda sent: "● running".encode() in words(sent))
    line.press(b"\x1a")
    line.wait(lambda sent: "T" in Path(f"/proc/{line.process.pid}/stat").read_text().rpartition(")")[2].split()[0])
    assert termios.tcgetattr(line._inner) == line.before
    line.wait(lambda sent: b"\x1b[?1049l" in sent)
    line.sent = b""
    line.process.send_signal(signal.SIGCONT)
    line.wait(lambda sent: b"\x1b[?1049h" in sent and "● running".encode() in words(sent))
    line.leave()


def test_clipboard_and_title_on_the_wire(tmp_path: Path, env: dict[str, str], amber: FakeRun) -> None:
    line = Line(tmp_path, env | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    line.wait(lambda sent: "● running".encode() in words(sent))
    line.wait(lambda sent: b"\x1b[22;0t\x1b]0;" in sent and b"\x1b]0;cockpit . 1 running\x07" in sent)
    line.press(b"\x19")  # ctrl+y
    copied = base64.b64encode(amber.run.path.name.encode())
    line.wait(lambda sent: b"\x1b]52;c;" + copied + b"\x07" in sent)
    line.leave()
    for sequence in (b"\x1b]0;\x07\x1b[23;0t", b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l"):
        assert sequence in line.sent[-400:]  # title, screen, cursor and mouse are given back


@pytest.mark.behaviour("terminal-given-back-on-signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(
    tmp_path: Path, env: dict[str, str], amber: FakeRun, number: signal.Signals
) -> None:
    line = Line(tmp_path, env | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    line.wait(lambda sent: "● running".encode() in words(sent))
    line.process.send_signal(number)
    line.ended(128 + number)
    for sequence in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l"):
        assert sequence in line.sent[-400:]


@pytest.mark.behaviour("size-of-terminal-wins")
def test_the_size_of_the_terminal_wins_over_the_environment(
    tmp_path: Path, env: dict[str, str], amber: FakeRun
) -> None:
    line = Line(tmp_path, env | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLUMNS": "30", "LINES": "0"})
    line.wait(lambda sent: "● running".encode() in words(sent) and b"\x1b[24;" in sent)  # the footer is in line 24
    line.leave()


@pytest.mark.behaviour("work-done-with-closed-streams")
@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&- <&-"])
def test_work_is_done_without_somewhere_to_say_so(tmp_path: Path, env: dict[str, str], closed: str) -> None:
    fake = FakeRun(tmp_path / "runs").begin().started().epochs(1, 2).end("finished")
    done = subprocess.run(["sh", "-c", f"{COCKPIT} label last mine {closed}"], cwd=tmp_path, env=env, check=False)
    assert done.returncode == 0
    assert fake.run.info.label == "mine"
