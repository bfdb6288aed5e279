"""How things stand, in one line for a status bar and in numbers; every key by its id."""

from __future__ import annotations

import calendar
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cockpit.core.runs.glance import RECENT_SECONDS, Glance, glance, line
from engines.contract.events import Alert
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun


def test_the_line_tells_live_runs_and_recent_failures(cockpit: Cockpit, runs: Path) -> None:
    amber = FakeRun(runs, "controls-20261127-201400-amber", created=2.0).begin().started(epochs=150)
    amber.epochs(1, 2, 3, best=3).say(Alert(code="stall", level="error", text="no sign of life"))
    copper = FakeRun(runs, "controls-20261127-201500-copper", created=1.0).begin().started(epochs=9)
    FakeRun(runs, "controls-20261127-201600-ember").begin().started().end("failed", exit_code=1)
    FakeRun(runs, "controls-20261127-201700-delta").begin().started()  # lost: it has no end, and nothing holds it
    FakeRun(runs, "controls-20261127-201800-moss").begin().started().end("finished")
    (runs / "controls-20261127-201900-birch").mkdir()
    (runs / "controls-20261127-201900-birch" / "run.json").write_text("{garbage")
    (runs / "a file").write_text("no run")
    (runs / "controls-20261127-202000-cedar").symlink_to("x" * 300)  # stat fails, as where entering is forbidden
    with amber.locked(), copper.locked():
        assert cockpit("status", "--line").stdout == "● amber 3/150 0.300 ! · ● copper 0/9 · ✖2\n"
        assert cockpit("status", "--line", "--ascii").stdout == "* amber 3/150 0.300 ! . * copper 0/9 . x2\n"
        (told,) = [run for run in json.loads(cockpit("ls", "--json").stdout) if run["alert"]]
        assert (told["id"], told["detail"], told["alert"]) == (amber.id, "stalled in training", "no sign of life")
        assert "running !" in cockpit("ls").stdout
        short = "* amber 3/150 0.300 ! . +1 . x2"
        assert cockpit("--ascii", "status", "--line", "--width", str(len(short))).stdout == short + "\n"


def test_without_runs_the_line_is_empty(cockpit: Cockpit, runs: Path) -> None:
    assert cockpit("status", "--line").stdout == "\n"
    runs.rmdir()
    answer = cockpit("status", "--line")
    assert (answer.stdout, answer.stderr, answer.returncode) == ("\n", "", 0)


def test_a_line_is_never_wider_than_asked_and_steers_no_terminal(runs: Path) -> None:
    fakes = [FakeRun(runs, f"x-20261127-20140{k}-amber\x1b[31m\n{k}", created=k).begin().started() for k in range(4)]
    with fakes[0].locked(), fakes[1].locked(), fakes[2].locked(), fakes[3].locked():
        seen = glance(runs, time.time())
    assert len(seen.live) == 4
    for width in range(1, 90):
        text = line(seen, width)
        assert len(text) <= width
        assert text.isprintable()
    assert line(Glance(seen.live, failed=3), 12) == "+4 · ✖3"


def test_a_failure_is_news_for_a_day(runs: Path) -> None:
    fake = FakeRun(runs).begin().started().end("failed", exit_code=1)
    ended = os.stat(fake.run.attempts).st_mtime
    assert glance(runs, ended + RECENT_SECONDS - 1).failed == 1
    assert glance(runs, ended + RECENT_SECONDS + 1).failed == 0


def test_the_line_loads_no_screen() -> None:
    code = "import sys, cockpit.cli.status; print({'textual', 'torch', 'pydantic', 'numpy'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "set()\n"


def test_counts_and_money(cockpit: Cockpit, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = calendar.timegm((2026, 12, 1, 0, 0, 45))  # a day and a month are three quarters of a minute old
    monkeypatch.setattr(time, "time", lambda: float(now))
    fake = FakeRun(runs).begin().started().end("finished")
    attempt = fake.run.attempt(1)
    assert attempt.ended is not None
    attempt.started, attempt.ended.time, attempt.usd_per_hour = now - 60, now, 60.0  # a minute at a dollar
    fake.run.write_attempt(attempt)
    facts = json.loads(cockpit("status", "--json").stdout)
    assert facts["runs"] == {"finished": 1}
    assert facts["live"] == []
    assert facts["zone"] == "UTC"
    assert facts["usd_today"] == pytest.approx(0.75)
    assert facts["usd_this_month"] == pytest.approx(0.75)
    words = cockpit("status").stdout
    assert "1 finished" in words
    assert "since midnight UTC" in words


def test_a_width_that_is_none_is_refused(cockpit: Cockpit, runs: Path) -> None:
    answer = cockpit("status", "--line", "--width", "0")
    assert answer.returncode == 2
    assert "--width 0" in answer.stderr


def test_every_key_by_its_id_and_as_it_was_chosen(
    cockpit: Cockpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    (home / "cockpit").mkdir(parents=True)
    (home / "cockpit" / "settings.json").write_text('{"keys": {"run.stop": "f8"}}')
    found = {key["id"]: key for key in json.loads(cockpit("keys", "--json").stdout)}
    assert found["run.stop"]["keys"] == "f8"
    assert found["run.pause"]["keys"] == "p"
    assert found["cockpit.leave"]["where"] == "everywhere"
    assert all(key["about"] for key in found.values())
    assert "run.stop" in cockpit("keys").stdout
