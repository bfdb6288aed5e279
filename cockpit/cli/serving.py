"""The cockpit in a browser."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
from argparse import Namespace

from cockpit.cli import codes
from cockpit.cli.printing import say
from engines.basics.errors import UserError

TOKEN = "COCKPIT_TOKEN"
SHORTEST_TOKEN = 16


def serve(arguments: Namespace) -> int:
    """Serve until Ctrl-C. Raises `UserError` for an address that cannot be had or a weak token."""
    token = _token()
    listening = _listen(arguments.host, arguments.port)
    from cockpit.serve.server import CockpitServer

    port = listening.getsockname()[1]
    print(f"The cockpit is at http://{_name(listening)}:{port}/?token={token}")
    print("Anyone with this address can steer your runs. Ctrl-C stops the server; runs keep running.", flush=True)
    if not ipaddress.ip_address(listening.getsockname()[0]).is_loopback:
        say(
            f"this is plain HTTP, open to all who can reach {arguments.host}; safer: no --host here, and on your own "
            f"machine `ssh -L {port}:localhost:{port} {socket.gethostname()}`."
        )
    CockpitServer(listening, arguments.host, token).run()
    return codes.DONE


def _token() -> str:
    """From the environment, where `ps` does not show it; else a new one. Sessions and runs do not inherit it."""
    token = os.environ.pop(TOKEN, None)
    if token is None:
        return secrets.token_urlsafe(32)
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.replace("-", "").replace("_", "").isalnum():
        raise UserError(
            f"${TOKEN} must be at least {SHORTEST_TOKEN} letters, digits, - or _: set a longer one, or unset it and "
            "have one generated."
        )
    return token


def _listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address; port 0 is any free one."""
    where = f"--host {host} --port {port}"
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(address[0]), port), family=family)
    except OverflowError:
        raise UserError(f"{where}: a port is a number from 0 to 65535.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise UserError(f"{where}: {reason}; choose another address, or --port 0 for any free port.") from None


def _name(listening: socket.socket) -> str:
    """How the address is written where a browser on this machine, or behind a tunnel to it, can use it."""
    address = ipaddress.ip_address(listening.getsockname()[0])
    if address.is_unspecified:
        return socket.gethostname()
    return f"[{address}]" if address.version == 6 else str(address)
