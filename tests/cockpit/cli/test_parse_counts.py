"""`cockpit data parse --json` ends with one document that says at its top what was read, taken and left."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cockpit.cli.conftest import Cockpit
from tests.projects.melee.tables import columns, write_table


def test_what_was_read_and_left_lies_at_the_top(cockpit: Cockpit, tmp_path: Path) -> None:
    folder = tmp_path / "games"
    folder.mkdir()
    for k in range(2):
        write_table(folder / f"{k}.parquet", columns(200, k))
    (folder / "bad.slp").write_bytes(b"no replay")
    answer = cockpit("data", "parse", "games", "out", "--set", "least_frames=100", "--set", "workers=1", "--json")
    assert answer.returncode == 0
    found = json.loads(answer.stdout)
    assert {name: found[name] for name in ("project", "task", "state", "files", "taken", "frames", "left")} == {
        "project": "melee", "task": "parse", "state": "finished", "files": 3, "taken": 2, "frames": 400,
        "left": {"damaged": 1, "players": 0, "computer": 0, "length": 0, "copy": 0},
    }  # fmt: skip
    shown = cockpit("data", "stats", "out").stdout
    assert "Battlefield" in shown
