"""A notice to somewhere else: an alert posted to the address that a person has chosen in their settings, if any."""

from __future__ import annotations

import contextlib

import msgspec

from engines.basics.reading import read_json
from engines.contract.rundir import RunInfo
from engines.host.preferences import ADDRESS, settings_path

SECONDS = 5.0
"""How long the address may take; what goes wrong is nobody's business but the address's."""


class _Choice(msgspec.Struct):
    notify: str = ""


def _address() -> str:
    """As the settings have it now, so that a change counts at once; empty for none."""
    try:
        chosen = read_json(settings_path(), _Choice).notify
    except (OSError, msgspec.DecodeError):
        return ""
    return chosen if chosen.startswith(ADDRESS) else ""


def is_wanted() -> bool:
    """Whether a person has chosen an address."""
    return bool(_address())


def post(info: RunInfo, code: str, level: str, text: str, step: int = 0) -> None:
    """POST one JSON object, once, if an address is chosen. Raises nothing, and the address is in no log.

    `text` is a whole sentence, which chat services show as it is; the other keys are for programs.
    """
    if not (address := _address()):
        return
    import urllib.request  # 30 ms that a run without an address need not spend

    name = f"{info.id} ({info.label})" if info.label else info.id
    content = {"text": f"{name}: {text}", "run": info.id, "code": code, "level": level, "step": step}
    with contextlib.suppress(Exception):
        request = urllib.request.Request(
            address, msgspec.json.encode(content), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass
