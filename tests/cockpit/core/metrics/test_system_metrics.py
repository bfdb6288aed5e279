"""The machine over time: units, gaps, and the speed of training, worked out here a second time by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cockpit.core.metrics.system_metrics import SystemMetrics
from cockpit.core.plot.lines import ChartLines, Look
from engines.contract.rundir import RunDirectory
from engines.contract.steps import ABSENT, StepWriter

T = 1_795_812_000.0


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.make()
    run.system.mkdir()
    run.config.write_text("training: {batch_size: 64}\n")
    return run


def record(run: RunDirectory, columns: list[str], *rows: tuple[float, ...]) -> None:
    writer = StepWriter(run.system, columns)
    writer.append(np.array(rows))
    writer.close()


def test_units_are_those_of_the_titles_and_gpus_come_first(run: RunDirectory) -> None:
    columns = ["cores_busy", "memory_used", "disk_free", "gpu0.utilisation", "gpu0.memory_used", "gpu0.watts", "x"]
    record(run, columns, (T, 1, 5.5, 21e9, 164e9, 0.97, 41e9, 604.0, 3.0))
    metrics = SystemMetrics(run)
    assert metrics.poll()
    assert not metrics.poll()
    assert {name: one.value.tolist() for name, one in metrics.series().items()} == {
        "GPU 0 busy %": [pytest.approx(97.0)], "GPU 0 memory GB": [pytest.approx(41.0)], "GPU 0 power W": [604.0],
        "CPU cores busy": [5.5], "memory GB": [pytest.approx(21.0)], "disk free GB": [pytest.approx(164.0)],
        "x": [3.0],
    }  # fmt: skip
    assert list(metrics.series())[:3] == ["GPU 0 busy %", "GPU 0 memory GB", "GPU 0 power W"]


def test_hours_in_which_nothing_ran_are_a_gap_and_no_fault(run: RunDirectory) -> None:
    times = [T, T + 5, T + 10, T + 7200, T + 7205]
    record(run, ["cores_busy"], *((time, 1 + (time > T + 100), 2.0) for time in times))
    metrics = SystemMetrics(run)
    metrics.poll()
    one = metrics.series()["CPU cores busy"]
    (line,) = ChartLines().make([("logged", one)], Look(axis="time", origin=T))
    assert line.points.x.tolist() == [0, 5, 10, 7200, 7205]
    assert line.points.gap.tolist() == [False, False, False, True, False]
    assert not len(line.bad)


def test_a_card_without_a_word_for_a_while_is_no_reading(run: RunDirectory) -> None:
    record(run, ["gpu0.watts"], (T, 1, 300.0), (T + 5, 1, ABSENT), (T + 10, 1, 310.0))
    metrics = SystemMetrics(run)
    metrics.poll()
    assert metrics.series()["GPU 0 power W"].value.tolist() == [300.0, 310.0]
    assert not metrics.missing


def test_speed_is_samples_a_second_and_nothing_while_stopped(run: RunDirectory) -> None:
    writer = StepWriter(run.steps, ["epoch", "time", "lr", "loss"])
    first = [(n, 1, 1, T + n * 0.5, 0.1, 1.0) for n in range(100)]  # two steps a second
    second = [(n, 2, 1, T + 9000 + (n - 100) * 0.25, 0.1, 1.0) for n in range(100, 200)]  # four, after a stop
    writer.append(np.array(first + second))
    metrics = SystemMetrics(run)
    metrics.poll()
    assert metrics.missing
    one = metrics.series()["samples/s"]
    known = one.value[np.isfinite(one.value)]
    assert known[:8] == pytest.approx(2 * 64)
    assert known[-4:] == pytest.approx(4 * 64)
    assert np.isnan(one.value).sum() == 1
    run.config.write_text("nothing\n")
    metrics = SystemMetrics(run)
    metrics.poll()
    assert "steps/s" in metrics.series()


def test_the_share_of_time_spent_on_data(run: RunDirectory) -> None:
    """A fifth of every step at first, three quarters from the hundredth step on."""
    steps = [(n, 1, 1, T + n * 0.5, 0.1 if n < 100 else 0.375) for n in range(200)]
    StepWriter(run.steps, ["epoch", "time", "data_wait"]).append(np.array(steps))
    metrics = SystemMetrics(run)
    metrics.poll()
    share = metrics.series()["data wait %"].value
    assert share[:9] == pytest.approx(20.0)
    assert share[-9:] == pytest.approx(75.0)


def test_a_run_of_which_nothing_was_recorded_is_empty(tmp_path: Path) -> None:
    metrics = SystemMetrics(RunDirectory(tmp_path / "none"))
    assert not metrics.missing  # nobody has looked
    assert not metrics.poll()
    assert (metrics.missing, dict(metrics.series()), list(metrics.problems())) == (True, {}, [])
