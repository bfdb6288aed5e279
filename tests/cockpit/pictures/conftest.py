"""What every test of pictures has: the camera, and screens that hold still."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from cockpit.app import CockpitApp
from tests.cockpit.conftest import NOW
from tests.cockpit.looks import STILL, Pictures


@pytest.fixture
def pictures(snapshot: SnapshotAssertion, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pictures:
    monkeypatch.setattr(CockpitApp, "CSS", STILL)
    return Pictures(snapshot, request)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock that writers of events and attempts read, in seconds before now."""
    return lambda before: monkeypatch.setattr(time, "time", lambda: NOW - before)
