"""What holds for every test: runs, settings and terminal of whoever runs the tests are none of their business."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: the workers have no more than a core each
THEIRS = re.compile("COCKPIT_(?!GPU_TESTS)|LC_|LANGUAGE|NO_COLOR|COLORTERM|COLUMNS|LINES|TMUX")
"""Variables by which whoever runs the tests has their own cockpit, their language and their terminal."""
for name in filter(THEIRS.match, list(os.environ)):
    del os.environ[name]
os.environ |= {"LANG": "C.UTF-8", "TERM": "xterm-256color"}
# How fast examples are made is the machine's business. The quick ones are the same every time: what a change breaks is
# seen with that change. The slow ones are new every time.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", UNTIMED, derandomize=True, max_examples=40)
settings.register_profile("slow", UNTIMED, derandomize=False, max_examples=400)


@pytest.fixture(scope="session", autouse=True)
def folders_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs that a test makes, links to those it makes elsewhere, and choices are in folders of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COCKPIT_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setenv("COCKPIT_QUEUE", str(tmp_path_factory.mktemp("queue")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("choices")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("seen")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """An engine that ran in the test's process leaves its handlers: Ctrl-C must still end the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("slow" if config.option.markexpr in ("slow", "slow or not slow") else "quick")
    # Ctrl-C reaches the tests' programs, also where a shell started the tests in the background and so ignores it
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest come first: with several workers none of them is left for the end, alone."""
    items.sort(key=lambda item: (not item.path.match("e2e/*"), not item.path.match("engines/*")))
