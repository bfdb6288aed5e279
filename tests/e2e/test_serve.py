"""`cockpit serve`: with its token a browser has the cockpit; without it nobody has anything."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import aiohttp
import psutil
import pytest

from cockpit.serve.server import bounded
from engines.basics.lock import lock_holder
from tests.e2e.browser import browse
from tests.e2e.conftest import COCKPIT, PATIENCE, wait_for
from tests.engines.conftest import alive
from tests.support.fake_run import FakeRun

NAMES = ("controls-20261127-201400-amber", "controls-20261127-211400-birch", "controls-20261127-221400-cedar")


class Served(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    token: str

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.origin}/?token={self.token}"

    def sessions(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def visitor() -> aiohttp.ClientSession:
    """A client that keeps cookies, of bare addresses too."""
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


@pytest.fixture
def live(tmp_path: Path) -> Iterator[FakeRun]:
    """Three runs, the newest of them held by a supervisor."""
    for name in NAMES[:2]:
        FakeRun(tmp_path / "runs", name).begin().started().epochs(1, 2).end("finished")
    run = FakeRun(tmp_path / "runs", NAMES[2]).begin().started().epochs(1)
    with run.locked():
        yield run


@pytest.fixture
def served(live: FakeRun, env: dict[str, str], tmp_path: Path) -> Iterator[Served]:
    process = subprocess.Popen(
        [COCKPIT, "serve", "--port", "0"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", process.stdout.readline())
    assert found
    yield Served(process, int(found[1]), found[2])
    process.kill()
    process.wait()
    process.stdout.close()


async def test_a_browser_shows_the_runs_and_takes_keys(served: Served, live: FakeRun, tmp_path: Path) -> None:
    async with browse(served.address, tmp_path / "profile") as page:
        shown = await page.wait(lambda screen: all(name.split("-")[-1] in screen for name in NAMES))
        assert "overview" not in shown.lower()
        await page.press("Enter", 13)
        await page.wait(lambda screen: NAMES[2] in screen and "pause" in screen)
        assert await page.value("location.href") == f"{served.origin}/", "the token stayed in the address"
        assert await page.value("document.cookie") == "", "a script can read the token"
        asked = [url for url in page.requested if not url.startswith(("data:", "about:"))]
        assert any(url.startswith("ws://") for url in asked)
        strange = [url for url in asked if not url.startswith((served.origin, served.origin.replace("http", "ws")))]
        assert not strange, "the page needs the network"
        (session,) = served.sessions()
        assert served.token not in " ".join(session.cmdline())
        assert "COCKPIT_TOKEN" not in session.environ()
    wait_for("the closed page's session to leave", lambda: not served.sessions())
    assert lock_holder(live.run.lock) is not None, "closing a page ended a run"


async def test_two_pages_are_two_sessions_that_end_with_the_server(served: Served, live: FakeRun) -> None:
    async with visitor() as client:
        async with client.get(served.address) as page:
            assert page.status == 200
        async with client.ws_connect(f"{served.origin}/ws") as one, client.ws_connect(f"{served.origin}/ws") as two:
            for socket in (one, two):
                assert (await socket.receive()).type is aiohttp.WSMsgType.BINARY  # the terminal's first bytes
            sessions = served.sessions()
            assert len(sessions) == 2
            served.process.send_signal(signal.SIGINT)
            while (await one.receive()).type is aiohttp.WSMsgType.BINARY:
                pass
    assert served.process.wait(timeout=PATIENCE) == 0
    wait_for("both sessions to leave", lambda: not any(alive(session.pid) for session in sessions))
    assert lock_holder(live.run.lock) is not None, "ending the server ended a run"


@pytest.mark.behaviour("pages-are-bounded")
async def test_a_page_has_no_more_cells_than_a_screen(served: Served) -> None:
    """Whatever size it says; and a session that is deaf to its end is killed with the server."""
    async with visitor() as client:
        async with client.get(served.address):
            pass
        async with client.ws_connect(f"{served.origin}/ws?width=99999999&height=99999999") as socket:
            await socket.receive()
            (session,) = served.sessions()
            assert (session.environ()["COLUMNS"], session.environ()["ROWS"]) == ("1000", "400")
            await socket.send_json(["resize", {"width": "9" * 5000, "height": -3}])
            await socket.send_json(["stdin", "?"])
            assert (await socket.receive()).type is aiohttp.WSMsgType.BINARY
            session.suspend()
            served.process.send_signal(signal.SIGTERM)
            wait_for("the session to be killed", lambda: not alive(session.pid))
    assert served.process.wait(timeout=PATIENCE) == 0


@pytest.mark.behaviour("pages-are-bounded")
@pytest.mark.parametrize(
    ("said", "size"),
    [(("120", "35"), (120, 35)), ((99999999, 99999999), (1000, 400)), ((-1, 0), (1, 1)), ((None, "x"), (80, 24)),
     (("9" * 5000, 24), (1000, 24)), (([1], {}), (80, 24))],
)  # fmt: skip
def test_the_size_of_a_page_is_bounded(said: tuple[object, object], size: tuple[int, int]) -> None:
    assert bounded(*said) == size


async def test_a_killed_server_leaves_no_session_behind(served: Served) -> None:
    async with visitor() as client:
        async with client.get(served.address):
            pass
        async with client.ws_connect(f"{served.origin}/ws") as socket:
            await socket.receive()
            (session,) = served.sessions()
            served.process.kill()
            wait_for("the session to leave", lambda: not alive(session.pid))


async def test_without_the_token_there_is_nothing(served: Served) -> None:
    places = ("/", "/static/js/textual.js", "/static/", "/download/x", "/ws", "/nowhere", "/?token=", "/?token=é%00")
    async with visitor() as stranger:
        for place in (*places, f"/?token={served.token[:-1]}", f"/ws?token={served.token}x"):
            async with stranger.get(served.origin + place) as answer:
                assert answer.status == 403, place
                assert "Set-Cookie" not in answer.headers
                assert "cockpit serve" in await answer.text()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await stranger.ws_connect(f"{served.origin}/ws")
    assert not served.sessions()


async def test_the_token_is_of_no_use_to_another_site(served: Served) -> None:
    async with visitor() as browser:
        async with browser.get(served.address) as page:
            cookie = page.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            policy = page.headers["Content-Security-Policy"]
        async with browser.get(f"{served.origin}/static/js/textual.js") as script:
            assert script.status == 200  # by the cookie alone
        for headers in (
            {"Origin": "http://elsewhere.example"},
            {"Origin": "null"},
            {"Host": f"elsewhere.example:{served.port}"},  # DNS rebinding: a stranger's name for this address
            {"Host": "[", "Origin": "http://["},
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError, match=r"403|400"):
                await browser.ws_connect(f"{served.origin}/ws", headers=headers)
        async with browser.get(f"{served.origin}/", headers={"Host": "localhost:9000"}) as tunnelled:
            assert tunnelled.status == 200
    assert "default-src 'self'" in policy
    assert not served.sessions()


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (["--port", "70000"], None, "from 0 to 65535"),
        (["--host", "no.such.host.invalid"], None, "choose another address"),
        ([], "short", "at least 16"),
        ([], "a token with spaces in it", "at least 16"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(
    arguments: list[str], token: str | None, said: str, env: dict[str, str]
) -> None:
    extra = {} if token is None else {"COCKPIT_TOKEN": token}
    done = subprocess.run(
        [COCKPIT, "serve", *arguments], env={**env, **extra}, capture_output=True, text=True, timeout=99, check=False
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_in_use_is_said_and_a_wide_address_warned_of(served: Served, env: dict[str, str]) -> None:
    taken = subprocess.run(
        [COCKPIT, "serve", "--port", str(served.port)], env=env, capture_output=True, text=True, timeout=99, check=False
    )
    assert taken.returncode == 2
    assert f"--port {served.port}: Address already in use" in taken.stderr

    given = {**env, "COCKPIT_TOKEN": "chosen-by-hand_0123"}
    wide = subprocess.Popen(
        [COCKPIT, "serve", "--host", "0.0.0.0", "--port", "0"], env=given, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert wide.stdout is not None
    assert wide.stderr is not None
    assert wide.stdout.readline().endswith("/?token=chosen-by-hand_0123\n")
    assert "ssh -L" in wide.stderr.readline()
    os.kill(wide.pid, signal.SIGKILL)
    wide.communicate()
