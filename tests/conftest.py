"""What holds for every test: the runs folder of whoever runs the tests is none of their business."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def runs_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs that a test makes, and links to those it makes elsewhere, are in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COCKPIT_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield
