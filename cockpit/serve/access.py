"""Who is let in: whoever carries the token, from a page of our own, by an address that no one else can claim."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

REFUSED = "No access. Open the address that `cockpit serve` printed: it carries the token.\n"
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


def guard(token: str, host: str) -> Middleware:
    """Answers 403 for everything unless the request carries `token`, as `?token=` or in the cookie that this leaves.

    `host`: the name or address that the server was told to listen on.
    """
    # Named after the token, so that servers on other ports, or on other machines behind tunnels, keep their own.
    cookie = "cockpit_" + hashlib.sha256(token.encode()).hexdigest()[:12]
    names = {"localhost", host.lower(), socket.gethostname().lower()}

    @web.middleware
    async def let_in(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.query.get("token") or request.cookies.get(cookie, "")
        known = hmac.compare_digest(given.encode(errors="surrogatepass"), token.encode())
        if not (known and _is_ours(request.host, names) and _same_origin(request)):
            return web.Response(status=403, text=REFUSED, headers=HEADERS)
        request["cookie"] = cookie
        return await handler(request)

    return let_in


def _is_ours(host: str, names: set[str]) -> bool:
    """Whether a Host header is an address or one of `names`. A stranger's name that leads here is DNS rebinding."""
    name = _host_name(host)
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in names
    return True


def _same_origin(request: web.Request) -> bool:
    """Whether a browser says that a page of this very server asks. What is no browser says nothing."""
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host


def _host_name(host: str) -> str:
    """`[::1]:8000` → `::1`."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
