"""The web server: textual-serve's terminal page and sessions, behind the guard, with nothing from another network."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
import socket
import sys
from pathlib import Path
from string import Template

from aiohttp import web
from aiohttp.web_runner import GracefulExit
from textual_serve.app_service import AppService
from textual_serve.server import Server

from cockpit.serve.access import HEADERS, guard

PAGE = Path(__file__).with_name("page.html")
SESSION = ("-P", "-m", "cockpit.serve.session")
LEAVE_SECONDS = 5.0
"""How long sessions get to leave when the server ends; then they are killed."""
LARGEST = 1000, 400
"""Columns and lines of a page: a screen of more takes gigabytes."""
TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONIOENCODING": "utf-8"}
"""What a browser's terminal can do, whatever the server was started in."""


class CockpitServer(Server):
    """Each page is a cockpit process of its own, which leaves when the page is closed; runs go on."""

    def __init__(self, listening: socket.socket, host: str, token: str) -> None:
        super().__init__(shlex.join(("exec", sys.executable, *SESSION, str(os.getpid()))), host=host, title="cockpit")
        self._listening = listening
        self._token = token
        self._sessions: set[asyncio.Task[object]] = set()
        self._services: dict[object, AppService] = {}
        """Of the sessions, by their tasks."""
        self._page = Template(PAGE.read_text())

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or a hang-up. Prints and logs nothing: addresses carry the token."""
        os.environ.update(TERMINAL)  # handed on to the sessions
        web.run_app(self._make_app(), sock=self._listening, print=None, access_log=None, shutdown_timeout=LEAVE_SECONDS)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(guard(self._token, self.host))
        return app

    async def on_startup(self, app: web.Application) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _leave)

    async def on_shutdown(self, app: web.Application) -> None:
        """Have every session leave, and kill those that do not."""
        for session in self._sessions:
            session.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=LEAVE_SECONDS)
        for service in self._services.values():
            if service._process is not None and service._process.returncode is None:
                service._process.kill()

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page; leaves the token in a cookie that scripts cannot read and other sites cannot send."""
        nonce = secrets.token_urlsafe(16)
        text = self._page.substitute(nonce=nonce)
        response = web.Response(text=text, content_type="text/html", headers={**HEADERS, **_policy(nonce)})
        response.set_cookie(request["cookie"], self._token, httponly=True, samesite="Strict", path="/")
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A session. Known while it lasts, so that the end of the server can be the end of it."""
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        width, height = bounded(request.query.get("width", "80"), request.query.get("height", "24"))
        asked = request.rel_url.update_query(width=str(width), height=str(height))
        try:
            return await super().handle_websocket(request.clone(rel_url=asked))
        finally:
            self._sessions.discard(task)
            self._services.pop(task, None)

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        """Carry out what a page sends, until it is closed."""
        resize = app_service.set_terminal_size

        async def resize_bounded(width: object, height: object) -> None:
            await resize(*bounded(width, height))

        app_service.set_terminal_size = resize_bounded  # type: ignore[method-assign]
        self._services[asyncio.current_task()] = app_service
        await super()._process_messages(websocket, app_service)


def bounded(width: object, height: object) -> tuple[int, int]:
    """A size that a screen may have, from what a page says it has; 80 × 24 where that is no number."""
    try:
        columns, lines = int(str(width)[:9]), int(str(height)[:9])
    except ValueError:
        return 80, 24
    return min(max(columns, 1), LARGEST[0]), min(max(lines, 1), LARGEST[1])


def _leave() -> None:
    raise GracefulExit


def _policy(nonce: str) -> dict[str, str]:
    """Nothing but what this server gives; not inside another page."""
    rules = (
        "default-src 'self'", f"script-src 'self' 'nonce-{nonce}'", "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:", "base-uri 'none'", "frame-ancestors 'none'",
    )  # fmt: skip
    return {"Content-Security-Policy": "; ".join(rules)}
