"""`cockpit doctor` on this machine."""

from __future__ import annotations

import json

from tests.cockpit.cli.conftest import Cockpit


def test_every_finding_has_a_sentence_and_a_fault_has_a_fix(cockpit: Cockpit) -> None:
    answer = cockpit("doctor", "--json")
    found = {one["name"]: one for one in json.loads(answer.stdout)}
    assert {"disk", "locks", "clock", "memory", "/dev/shm", "open files", "locale", "GPU", "torch"} <= found.keys()
    assert answer.returncode == int(any(one["level"] == "fail" for one in found.values()))
    assert all(one["text"].endswith(".") and one["level"] in ("ok", "warn", "fail") for one in found.values())
    assert all(one["fix"] for one in found.values() if one["level"] != "ok")
    assert found["torch"]["level"] == "ok", found["torch"]  # it runs the tests
