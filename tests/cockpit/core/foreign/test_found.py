"""Logs that users brought and that were read wrong, by kind, each with neighbours; the values are those of the text."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cockpit.core.series import Series
from tests.cockpit.core.foreign.reading import points, read

CASES = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "cases"


def series_of(folder: Path, name: str, text: str) -> dict[str, Series]:
    (folder / name).write_text(text)
    return dict(read(folder / name).series())


def last(series: Series) -> tuple[float, float]:
    return points(series)[-1]  # type: ignore[return-value]


def test_lines_without_a_place_share_that_of_the_last_line_that_has_one(tmp_path: Path) -> None:
    text = "".join(
        f"step {step} loss: {1 / step}\nval loss: 0.5\nval acc: 0.{step}\nval dice: 0.25\n" for step in (10, 50)
    )
    found = series_of(tmp_path, "a.log", text)
    assert {name: last(one)[0] for name, one in found.items()} == dict.fromkeys(found, 50.0)
    assert points(found["val acc"]) == [(10.0, 0.1), (50.0, 0.5)]


def test_the_same_name_again_without_a_place_loses_no_value(tmp_path: Path) -> None:
    found = series_of(tmp_path, "a.log", "step 5 loss: 3.0\nval acc: 0.1\nval acc: 0.2\nval dice: 0.3\nval acc: 0.4\n")
    assert points(found["val acc"]) == [(5.0, 0.1), (6.0, 0.2), (7.0, 0.4)]
    assert points(found["val dice"]) == [(6.0, 0.3)]


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank0]: ", "[default0]:", "(TrainWorker pid=4711) ", "(TrainWorker pid=4711, ip=10.0.0.2) ",
        "2024-03-04T14:46:00.123456789Z stdout F ", "Mar 04 14:46:00 node7 python[991]: ",
        "I0304 14:46:00.123456 12345 solver.cpp:228] ", "[rank0]: 2024-03-04 14:46:00,123 INFO ",
    ],
)  # fmt: skip
def test_what_launchers_and_loggers_put_before_a_line_is_taken_off(tmp_path: Path, prefix: str) -> None:
    found = series_of(tmp_path, "a.log", "".join(f"{prefix}step {n} loss: {n / 4}\n" for n in (2, 4, 6)))
    assert {name: points(one) for name, one in found.items()} == {"loss": [(2.0, 0.5), (4.0, 1.0), (6.0, 1.5)]}


def test_each_rank_is_a_series_and_none_goes_back_behind_another(tmp_path: Path) -> None:
    text = "".join(f"[rank{rank}]: step {step} loss: {step + rank / 2}\n" for step in (1, 2) for rank in (0, 1, 3))
    found = series_of(tmp_path, "a.log", text)
    assert {name: points(one) for name, one in found.items()} == {
        "loss": [(1.0, 1.0), (2.0, 2.0)],
        "loss [rank 1]": [(1.0, 1.5), (2.0, 2.5)],
        "loss [rank 3]": [(1.0, 2.5), (2.0, 3.5)],
    }


@pytest.mark.parametrize("column", ["split", "mode", "phase"])
def test_rows_of_several_splits_are_series_of_their_own(tmp_path: Path, column: str) -> None:
    rows = [("train", 100, 3), ("val", 1, 3.5), ("train", 200, 2), ("val", 2, 2.5)]
    found = series_of(
        tmp_path, "a.jsonl", "".join(f'{{"{column}": "{part}", "step": {n}, "loss": {x}}}\n' for part, n, x in rows)
    )
    assert points(found["train loss"]) == [(100.0, 3.0), (200.0, 2.0)]
    assert points(found["val loss"]) == [(1.0, 3.5), (2.0, 2.5)]
    assert not any(one.old for one in found.values())


def test_validation_that_counts_its_own_steps_takes_nothing_back(tmp_path: Path) -> None:
    rows = [
        '{"step": 50, "loss": 3, "time": 0.3}', '{"step": 1, "val_acc": 0.1, "time": 0.1}',
        '{"step": 100, "loss": 2, "time": 0.4}', '{"step": 2, "val_acc": 0.2, "time": 0.2}',
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    source = read(tmp_path / "a.jsonl")
    found = source.series()
    assert points(found["time"]) == [(50.0, 0.3), (100.0, 0.4)]
    assert points(found["val time"]) == [(1.0, 0.1), (2.0, 0.2)]
    assert not any(one.old for one in found.values())
    assert any("its own steps" in problem for problem in source.problems())


@pytest.mark.parametrize(
    "written",
    ["np.float64(44.5)", "tensor(44.5)", "tensor(44.5, device='cuda:0')", "tensor(44.5, grad_fn=<MeanBackward0>)",
     "Array(44.5, dtype=float32)", "jnp.float32(44.5)"],
)  # fmt: skip
def test_numbers_in_the_words_of_array_libraries_are_numbers(tmp_path: Path, written: str) -> None:
    text = "".join(f"{{'loss': 0.5, 'epoch': {n}, 'memory (GB)': {written}}}\n" for n in (1, 2))
    found = series_of(tmp_path, "a.log", text)
    assert set(found) == {"loss", "memory (GB)"}
    assert points(found["memory (GB)"], "epoch") == [(1.0, 44.5), (2.0, 44.5)]


@pytest.mark.parametrize("heading", ["", "Best iteration:\n"])
def test_the_best_said_again_takes_nothing_back(tmp_path: Path, heading: str) -> None:
    text = "".join(f"[{n}]\ttrain-rmse:{(2 - n) / 2}\teval-rmse:{abs(n - 1) + 0.25}\n" for n in range(3))
    found = series_of(tmp_path, "a.log", text + heading + "[1]\ttrain-rmse:0.5\teval-rmse:0.25\n")
    assert points(found["train-rmse"]) == [(0.0, 1.0), (1.0, 0.5), (2.0, 0.0)]
    assert not any(one.old for one in found.values())


def test_the_best_model_said_in_words_takes_nothing_back(tmp_path: Path) -> None:
    text = "".join(f"epoch {n} loss: {1 / n} val_loss: {2 / n}\n" for n in (1, 2, 4))
    found = series_of(tmp_path, "a.log", text + "Loaded the best model: epoch 2 val_loss: 1.0\n")
    assert points(found["val_loss"], "epoch") == [(1.0, 2.0), (2.0, 1.0), (4.0, 0.5)]


@pytest.mark.parametrize(
    "line", ["[{n}/100] loss={x}", "{n}: loss: {x}", "epoch=0/micro_step={n}/global_step={n}, loss={x}"]
)
def test_steps_in_brackets_before_a_colon_and_between_slashes(tmp_path: Path, line: str) -> None:
    found = series_of(tmp_path, "a.log", "".join(line.format(n=n, x=n / 8) + "\n" for n in (10, 20)))
    assert points(found["loss"]) == [(10.0, 1.25), (20.0, 2.5)]


@pytest.mark.parametrize("name", ["num_updates", "current_steps", "steps"])
def test_other_names_of_steps_and_no_chart_of_the_plan(tmp_path: Path, name: str) -> None:
    rows = "".join(f'{{"{name}": {n}, "loss": {n / 2}, "total_steps": 9, "percentage": {n}}}\n' for n in (3, 6))
    found = series_of(tmp_path, "a.jsonl", rows)
    assert {name: points(one) for name, one in found.items()} == {"loss": [(3.0, 1.5), (6.0, 3.0)]}


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this project (../shared/data)")
@pytest.mark.parametrize(
    ("file", "metric", "step", "epoch", "value"),
    [
        ("01_lines_without_place/drift_many.log", "class t IoU", 50, None, 0.55),
        ("02_launcher_prefixes/default_iter.log", "lm loss [rank 7]", 40, None, 3.2),
        ("02_launcher_prefixes/kubectl.log", "loss", 40, None, 3.2),
        ("02_launcher_prefixes/caffe.log", "Test loss", 500, None, 0.812),
        ("04_rows_of_several_splits/split_column.jsonl", "val loss", 300, None, 1.5),
        ("04_rows_of_several_splits/val_own_counter.jsonl", "time", 300, None, 0.3),
        ("07_wrapped_numbers/np_mixed.log", "memory_allocated (GB)", None, 1, 44.5),
        ("21_best_told_again/xgb_stop.log", "train-rmse", 10, None, 0.5),
        ("21_best_told_again/loaded_best.log", "val_loss", None, 10, 0.58),
    ],
)
def test_the_cases_end_where_they_should(
    file: str, metric: str, step: float | None, epoch: float | None, value: float
) -> None:
    found = read(CASES / file).series()
    series = found[metric]
    assert series.value[-1] == value
    assert (series.step if epoch is None else series.epoch)[-1] == (step if epoch is None else epoch)
    assert not any(one.old for one in found.values())
    assert "solver.cpp" not in found
    assert all(math.isfinite(one.value[-1]) for one in found.values())
