"""Which runs were made by this user: a seal in `run.json`, made with a key that lies beside their settings.

A run directory from elsewhere has no such seal, whatever else its files say. On a rented machine the key lasts as long
as `$XDG_CONFIG_HOME` does: on a network volume it outlives the machine.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import hmac
import os
import platform
import secrets
from pathlib import Path

from engines.basics.files import FILE_MODE, make_directory, temporary_name
from engines.host.preferences import settings_path

KEY_BYTES = 32
_SEAL_BYTES = 16


def seal(run_id: str) -> str:
    """What `run.json` holds of a run that was made, or is trusted, here; empty where no key can be kept."""
    key = _key()
    return hashlib.blake2b(run_id.encode(), key=key, digest_size=_SEAL_BYTES).hexdigest() if key else ""


def is_sealed(run_id: str, found: str) -> bool:
    """Whether the seal `found` in a run's record was made here."""
    return bool(found) and hmac.compare_digest(seal(run_id).encode(), found.encode())


def maker() -> str:
    """`user@host`, to name where a run was made; says nothing about whether that is true."""
    name = ""
    with contextlib.suppress(KeyError, OSError):  # a user id without a name
        name = getpass.getuser()
    return f"{name or os.getuid()}@{platform.node()}"


def _key() -> bytes:
    """The user's key, made on first use; empty where it can be neither read nor made."""
    path = settings_path().with_name("identity.key")
    with contextlib.suppress(OSError):
        if len(key := path.read_bytes()) == KEY_BYTES:
            return key
    with contextlib.suppress(OSError):
        return _make_key(path)
    return b""


def _make_key(path: Path) -> bytes:
    """Of several processes that make it at once all give the first one's."""
    make_directory(path.parent)
    own = temporary_name(path)
    with open(own, "xb", opener=lambda name, flags: os.open(name, flags, FILE_MODE)) as file:
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(own, path)
    except FileExistsError:
        if path.stat().st_size != KEY_BYTES:  # damaged: runs sealed with it ask again
            os.replace(own, path)
    finally:
        own.unlink(missing_ok=True)
    return path.read_bytes()
