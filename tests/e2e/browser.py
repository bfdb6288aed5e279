"""Headless Chromium, driven through its DevTools protocol over the websocket that aiohttp brings."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PATIENCE = 180.0
FLAGS = (
    "--headless=new", "--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
    "--window-size=1100,700",
)  # fmt: skip
CATCH_TERMINAL = """
Object.defineProperty(Object.prototype, "fitAddon", { configurable: true, set(addon) {
  window.shown = this;
  Object.defineProperty(this, "fitAddon", { value: addon, writable: true });
}});
"""
"""The page keeps its terminal to itself: it is caught as it gets its first add-on."""
SCREEN = """
(() => {
  const buffer = window.shown?.terminal?.buffer.active;
  if (!buffer) return "";
  return Array.from({ length: window.shown.terminal.rows },
    (_, row) => buffer.getLine(row)?.translateToString(true) ?? "").join("\\n");
})()
"""

A_MOMENT = "new Promise(done => setTimeout(done, 50))"


def find_chromium() -> str:
    """Skips where there is none, except in CI, whose script installs it."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI"):
        pytest.fail("chromium is missing, and CI must run the end-to-end tests")
    pytest.skip("chromium is not installed (on Debian the package chromium)")


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.requested: list[str] = []
        """Every address that the page asked for."""

    async def tell(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send one command and give its result."""
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE):
            while True:
                answer = json.loads((await self._socket.receive()).data)
                if answer.get("method") in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                    told = answer["params"]
                    self.requested.append(told["request"]["url"] if "request" in told else told["url"])
                elif answer.get("id") == number:
                    assert "result" in answer, answer
                    return answer["result"]  # type: ignore[no-any-return]

    async def value(self, expression: str) -> Any:
        """What a JavaScript expression gives."""
        return (await self.tell("Runtime.evaluate", expression=expression))["result"].get("value")

    async def screen(self) -> str:
        """The text on the terminal of the page."""
        return str(await self.value(SCREEN))

    async def wait(self, condition: Callable[[str], object]) -> str:
        """The screen, once the condition holds for it."""
        last = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition(last := await self.screen()):
                    await self.tell("Runtime.evaluate", expression=A_MOMENT, awaitPromise=True)
        except TimeoutError:
            raise AssertionError("waited in vain; the screen:\n" + last) from None
        return last

    async def press(self, key: str, code: int = 0) -> None:
        text = {"Enter": "\r"}.get(key, key)
        for kind in ("keyDown", "keyUp"):
            await self.tell("Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code)


async def _tab(session: aiohttp.ClientSession, listing: str) -> dict[str, Any]:
    """What the browser says of its first tab, which it may open only after it listens."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with session.get(listing) as answer:
                for one in await answer.json():
                    if one["type"] == "page":
                        return one  # type: ignore[no-any-return]
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def browse(url: str, profile: Path) -> AsyncIterator[Page]:
    """A browser with `url` in its one tab, and gone afterwards."""
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()  # Chromium refuses to run as root with it
    browser = await asyncio.create_subprocess_exec(
        find_chromium(), *FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert browser.stderr is not None
        async with asyncio.timeout(PATIENCE):
            while b"DevTools listening on" not in (line := await browser.stderr.readline()):
                assert line, "chromium ended before it listened"
        draining = asyncio.create_task(browser.stderr.read())
        port = line.decode().split(":")[2].split("/")[0]
        async with aiohttp.ClientSession() as session:
            tab = await _tab(session, f"http://127.0.0.1:{port}/json/list")
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                await page.tell("Page.enable")
                await page.tell("Network.enable")
                await page.tell("Page.addScriptToEvaluateOnNewDocument", source=CATCH_TERMINAL)
                await page.tell("Page.navigate", url=url)
                yield page
        draining.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            browser.kill()
        await browser.wait()
