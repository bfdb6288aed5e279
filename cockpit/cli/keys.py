"""Every key of every screen by its id, as the settings name them."""

from __future__ import annotations

from argparse import Namespace

from cockpit.cli import codes
from cockpit.cli.printing import show_json, show_table


def keys(arguments: Namespace) -> int:
    from cockpit.app import CockpitApp
    from cockpit.core.settings import SettingsFile, settings_path
    from cockpit.keys import catalogue, completed

    known = catalogue(CockpitApp)
    chosen = completed(SettingsFile(settings_path()).value.keys, known)
    rows = [(key.id, chosen.get(key.id, ",".join(key.keys)), key.where, key.about) for key in known]
    if arguments.json:
        show_json([dict(zip(("id", "keys", "where", "about"), row, strict=True)) for row in rows])
    else:
        show_table(("id", "keys", "where", "action"), rows)
    return codes.DONE
