"""Logs that users brought and that were read wrong, by kind, each with neighbours; the values are those of the text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cockpit.core.foreign.kinds import open_logs
from cockpit.core.series import Series
from engines.basics.errors import DataError
from tests.cockpit.core.foreign.event_files import VERSION, event, record, simple
from tests.cockpit.core.foreign.reading import points, read, read_on

CASES = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "cases"


def series_of(folder: Path, name: str, text: str) -> dict[str, Series]:
    (folder / name).write_text(text)
    return dict(read(folder / name).series())


def last(series: Series) -> tuple[float, float]:
    return points(series)[-1]  # type: ignore[return-value]


@pytest.mark.behaviour("lines-without-a-place")
def test_lines_without_a_place_share_that_of_the_last_line_that_has_one(tmp_path: Path) -> None:
    text = "".join(
        f"step {step} loss: {1 / step}\nval loss: 0.5\nval acc: 0.{step}\nval dice: 0.25\n" for step in (10, 50)
    )
    found = series_of(tmp_path, "a.log", text)
    assert {name: last(one)[0] for name, one in found.items()} == dict.fromkeys(found, 50.0)
    assert points(found["val acc"]) == [(10.0, 0.1), (50.0, 0.5)]


@pytest.mark.behaviour("lines-without-a-place")
@pytest.mark.parametrize(
    ("head", "results", "place"),
    [
        ("iter {n}: train loss 0.5\n", "mIoU: 0.25\nFWIoU: 0.5\naAcc: 0.75\n", "step"),
        ("Epoch {n} loss: 0.5\n", "  precision: 0.25\n  recall: 0.5\n  f1: 0.75\n", "epoch"),
        ("2024-01-02 03:04:05 INFO step {n} loss=0.5\n", "2024-01-02 03:04:05 INFO PSNR=0.25\n"
         "2024-01-02 03:04:06 INFO SSIM=0.5\n2024-01-02 03:04:06 INFO LPIPS=0.75\n", "step"),
    ],
)  # fmt: skip
def test_results_of_several_lines_drift_nowhere(tmp_path: Path, head: str, results: str, place: str) -> None:
    found = series_of(tmp_path, "a.log", "".join(head.format(n=n) + results for n in (1, 7)))
    held = {one.value[-1]: points(one, place) for one in found.values() if one.value[-1] != 0.5}
    assert held == {value: [(1.0, value), (7.0, value)] for value in (0.25, 0.75)}


@pytest.mark.behaviour("lines-without-a-place")
def test_the_same_name_again_without_a_place_loses_no_value(tmp_path: Path) -> None:
    found = series_of(tmp_path, "a.log", "step 5 loss: 3.0\nval acc: 0.1\nval acc: 0.2\nval dice: 0.3\nval acc: 0.4\n")
    assert points(found["val acc"]) == [(5.0, 0.1), (6.0, 0.2), (7.0, 0.4)]
    assert points(found["val dice"]) == [(6.0, 0.3)]


@pytest.mark.behaviour("prefixes-of-launchers")
@pytest.mark.parametrize(
    "prefix",
    [
        "[rank0]: ", "[default0]:", "(TrainWorker pid=4711) ", "(TrainWorker pid=4711, ip=10.0.0.2) ",
        "2024-03-04T14:46:00.123456789Z stdout F ", "Mar 04 14:46:00 node7 python[991]: ",
        "I0304 14:46:00.123456 12345 solver.cpp:228] ", "[rank0]: 2024-03-04 14:46:00,123 INFO ",
        "[rank: 0] ", "Rank 0: ", "[trainer0]:", "[1,0]<stdout>:", "[1,mpirank:0,algo-1]<stdout>:", "0: ",
        "[pod/train-0/main] ", "train-worker-0 main ", "trainer-1  | ",
        "2024-03-04T14:46:00.123456789+00:00 stderr P ", "<14>Mar  4 14:46:00 node7 train: ",
        "2024-03-04T14:46:00+0000 node7 python3[991]: ", "W20240304 14:46:00.123456 12345 trainer.cc:99] ",
        "[NeMo I 2024-03-04 14:46:00 trainer:88] ", "[03/04 14:46:00 d2.utils.events]: ", "14:46:00: ",
        "[2024-03-04 14:46:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] ", "INFO:trainer.loop:",
        "2024-03-04 14:46:00.123 PST ", "[somebody's own launcher, worker3] ",
    ],
)  # fmt: skip
def test_what_launchers_and_loggers_put_before_a_line_is_taken_off(tmp_path: Path, prefix: str) -> None:
    found = series_of(tmp_path, "a.log", "".join(f"{prefix}step {n} loss: {n / 4}\n" for n in (2, 4, 6)))
    assert {name: points(one) for name, one in found.items()} == {"loss": [(2.0, 0.5), (4.0, 1.0), (6.0, 1.5)]}


@pytest.mark.behaviour("prefixes-of-launchers")
@pytest.mark.parametrize(
    "mark", ["[rank{}]: ", "[rank: {}] ", "{}: ", "[1,{}]<stdout>:", "[1,mpirank:{},algo-2]<stderr>:"]
)
def test_each_rank_is_a_series_and_none_goes_back_behind_another(tmp_path: Path, mark: str) -> None:
    lines = [(mark.format(rank), step, step + rank / 2) for step in (1, 2) for rank in (0, 1, 3)]
    text = "".join(f"{mark}step {step} loss: {value}\n" for mark, step, value in lines)
    found = series_of(tmp_path, "a.log", text)
    assert {name: points(one) for name, one in found.items()} == {
        "loss": [(1.0, 1.0), (2.0, 2.0)],
        "loss [rank 1]": [(1.0, 1.5), (2.0, 2.5)],
        "loss [rank 3]": [(1.0, 2.5), (2.0, 3.5)],
    }


@pytest.mark.behaviour("rows-of-several-splits")
@pytest.mark.parametrize("column", ["split", "mode", "phase", "type", "dataset"])
def test_rows_of_several_splits_are_series_of_their_own(tmp_path: Path, column: str) -> None:
    rows = [("train", 100, 3), ("val", 1, 3.5), ("train", 200, 2), ("val", 2, 2.5)]
    found = series_of(
        tmp_path, "a.jsonl", "".join(f'{{"{column}": "{part}", "step": {n}, "loss": {x}}}\n' for part, n, x in rows)
    )
    assert points(found["train loss"]) == [(100.0, 3.0), (200.0, 2.0)]
    assert points(found["val loss"]) == [(1.0, 3.5), (2.0, 2.5)]
    assert not any(one.old for one in found.values())


@pytest.mark.behaviour("rows-of-several-splits")
@pytest.mark.parametrize("name", ["val_acc", "eval_loss", "validation/f1"])
def test_validation_that_counts_its_own_steps_takes_nothing_back(tmp_path: Path, name: str) -> None:
    rows = [
        '{"step": 50, "loss": 3, "time": 0.3}', f'{{"step": 1, "{name}": 0.1, "time": 0.1}}',
        '{"step": 100, "loss": 2, "time": 0.4}', f'{{"step": 2, "{name}": 0.2, "time": 0.2}}',
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    source = read(tmp_path / "a.jsonl")
    found = source.series()
    assert points(found["time"]) == [(50.0, 0.3), (100.0, 0.4)]
    assert points(found["val time"]) == [(1.0, 0.1), (2.0, 0.2)]
    assert not any(one.old for one in found.values())
    assert any("its own steps" in problem for problem in source.problems())


@pytest.mark.behaviour("wrapped-numbers")
@pytest.mark.parametrize(
    "written",
    ["np.float64(44.5)", "tensor(44.5)", "tensor(44.5, device='cuda:0')", "tensor(44.5, grad_fn=<MeanBackward0>)",
     "Array(44.5, dtype=float32)", "jnp.float32(44.5)", "tensor([44.5])", "mx.array(44.5)", "Decimal('44.5')",
     "tf.Tensor(44.5, shape=(), dtype=float32)", "<tf.Tensor: shape=(), dtype=float32, numpy=44.5>"],
)  # fmt: skip
def test_numbers_in_the_words_of_array_libraries_are_numbers(tmp_path: Path, written: str) -> None:
    text = "".join(f"{{'loss': 0.5, 'epoch': {n}, 'memory (GB)': {written}}}\n" for n in (1, 2))
    found = series_of(tmp_path, "a.log", text)
    assert set(found) == {"loss", "memory (GB)"}
    assert points(found["memory (GB)"], "epoch") == [(1.0, 44.5), (2.0, 44.5)]


@pytest.mark.behaviour("wrapped-numbers")
def test_an_array_of_several_numbers_is_no_value_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(f"step {n} loss: tensor(0.5) grads: tensor([1., 2.])\n" for n in (1, 2)))
    source = read(tmp_path / "a.log")
    assert {name: points(one) for name, one in source.series().items()} == {"loss": [(1.0, 0.5), (2.0, 0.5)]}
    assert source.problems() == [
        "2 lines have arrays of several numbers, left out: the first is “tensor([1., 2.])” in grads."
    ]


@pytest.mark.behaviour("best-printed-again")
@pytest.mark.parametrize("heading", ["", "Best iteration:\n"])
def test_the_best_said_again_takes_nothing_back(tmp_path: Path, heading: str) -> None:
    text = "".join(f"[{n}]\ttrain-rmse:{(2 - n) / 2}\teval-rmse:{abs(n - 1) + 0.25}\n" for n in range(3))
    found = series_of(tmp_path, "a.log", text + heading + "[1]\ttrain-rmse:0.5\teval-rmse:0.25\n")
    assert points(found["train-rmse"]) == [(0.0, 1.0), (1.0, 0.5), (2.0, 0.0)]
    assert not any(one.old for one in found.values())


@pytest.mark.behaviour("best-printed-again")
@pytest.mark.parametrize(
    "words",
    [
        "Loaded the best model: epoch 2 val_loss: 1.0", "Restoring best checkpoint: epoch 2, val_loss: 1.0",
        "best epoch 2 val_loss: 1.0", "=> best: epoch 2 loss: 0.5 val_loss: 1.0",
        "Loading best (epoch 2, val_loss 1.0)",
    ],
)  # fmt: skip
def test_the_best_model_said_in_words_takes_nothing_back(tmp_path: Path, words: str) -> None:
    text = "".join(f"epoch {n} loss: {1 / n} val_loss: {2 / n}\n" for n in (1, 2, 4))
    found = series_of(tmp_path, "a.log", f"{text}{words}\n")
    assert points(found["val_loss"], "epoch") == [(1.0, 2.0), (2.0, 1.0), (4.0, 0.5)]


@pytest.mark.behaviour("steps-by-many-names")
@pytest.mark.parametrize(
    "line", ["[{n}/100] loss={x}", "{n}: loss: {x}", "epoch=0/micro_step={n}/global_step={n}, loss={x}"]
)
def test_steps_in_brackets_before_a_colon_and_between_slashes(tmp_path: Path, line: str) -> None:
    found = series_of(tmp_path, "a.log", "".join(line.format(n=n, x=n / 8) + "\n" for n in (10, 20)))
    assert points(found["loss"]) == [(10.0, 1.25), (20.0, 2.5)]


@pytest.mark.behaviour("steps-by-many-names")
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


# -- event files written at once -----------------------------------------------------------------------------------


def write_events(path: Path, base: float, began: float, steps: range, tag: str = "loss", every: float = 1.0) -> None:
    """Add steps, one in `every` seconds from `began` on, whose values are `base` and their step."""
    new = b"" if path.exists() else record(VERSION)
    for step in steps:
        new += record(event(simple(tag, base + step), step=step, time=began + every * step))
    with open(path, "ab") as file:
        file.write(new)


def everything(found: Mapping[str, Series]) -> dict[str, object]:
    return {name: (points(one), [(a.tolist(), b.tolist()) for a, b in one.old]) for name, one in found.items()}


@pytest.mark.behaviour("event-files-written-at-once")
@pytest.mark.parametrize("pieces", [[range(8)], [range(3), range(3, 8)], [range(n, n + 1) for n in range(8)]])
def test_event_files_written_at_once_are_told_apart_live_as_afterwards(tmp_path: Path, pieces: list[range]) -> None:
    files = [tmp_path / f"events.out.tfevents.{time}.host.{time}.0" for time in (100, 101)]
    write_events(files[0], 0.0, 100.0, range(1))
    (source,) = open_logs(tmp_path)
    read_on(source)
    for piece in pieces:
        for number, file in enumerate(files):
            write_events(file, 1000.0 * number, 100.5 + number / 2, piece)
            read_on(source)
    found = everything(source.series())
    assert found == {
        "loss": ([(step, step) for step in range(8)], []),
        "loss [writer 2]": ([(step, 1000 + step) for step in range(8)], []),
    }
    (afterwards,) = open_logs(tmp_path)
    assert everything(read_on(afterwards).series()) == found
    assert source.problems() == afterwards.problems()
    assert source.problems()[0].startswith("2 programs wrote into this folder at the same time")


@pytest.mark.behaviour("event-files-written-at-once")
@pytest.mark.parametrize(
    ("began", "tag", "names"),
    [
        (300.0, "loss", {"loss"}),  # a restart
        (102.5, "accuracy", {"loss", "accuracy"}),  # one program with a file for each
        (102.5, "loss", {"loss", "loss [writer 2]"}),
    ],
)
def test_a_restart_and_files_of_other_metrics_are_one_run(
    tmp_path: Path, began: float, tag: str, names: set[str]
) -> None:
    write_events(tmp_path / "events.out.tfevents.100.a", 0.0, 100.0, range(8))
    write_events(tmp_path / "events.out.tfevents.101.b", 9.0, began, range(4), tag)
    (source,) = open_logs(tmp_path)
    assert set(read_on(source).series()) == names


# -- what cannot be read is said -----------------------------------------------------------------------------------


@pytest.mark.behaviour("printed-tables-are-named")
@pytest.mark.parametrize(
    "text",
    [
        "epoch  loss   acc\n" + "".join(f"{n}      0.{n}    0.9{n}\n" for n in range(1, 9)),
        "| 1 | 0.50 | 0.91 |\n| 2 | 0.40 | 0.92 |\n| 3 | 0.30 | 0.93 |\n",
        "1 0.5\n2 0.4\n3 0.3\n4 0.2\n",
    ],
)
def test_a_printed_table_is_not_called_a_file_without_numbers(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.log").write_text(text)
    (problem,) = read(tmp_path / "a.log").problems()
    held = sum(any(letter.isdigit() for letter in line) for line in text.splitlines())
    assert problem.startswith(f"{held} of its {len(text.splitlines())} lines hold numbers, in a form that is not read")


@pytest.mark.behaviour("text-cells-are-counted")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step,loss\n1,0.5\n2,abc\n3,0.3\n",
         ["1 cell is text in a column of numbers and left out: the first is “abc” in loss."]),
        ("step;loss;acc\n1;0,5;0,1\n2;-;x9\n3;oops;y\n",
         ["3 cells are text in a column of numbers and left out: the first is “x9” in acc."]),
        ("step,loss,note\n1,0.5,begun\n2,,\n3,N/A,over\n", []),
        ("step,loss\n1,0.5\n2,0.4,9\n3,0.3,7,8\n",
         ["2 damaged lines skipped, the first is line 3: it has 3 cells under 2 names."]),
    ],
)  # fmt: skip
def test_cells_that_are_no_numbers_and_rows_that_do_not_fit_are_said(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    (tmp_path / "a.csv").write_text(text)
    source = read(tmp_path / "a.csv")
    assert source.problems() == said
    assert points(source.series()["loss"])[0] == (1.0, 0.5)


# -- Parquet -------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("parquet-is-read")
def test_a_parquet_history_is_read_and_read_again(tmp_path: Path) -> None:
    """As W&B exports it: holes where a metric was not logged, media as structures, system columns with slashes."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def table(count: int) -> Any:
        steps = list(range(count))
        return pa.table({
            "_step": steps, "_timestamp": [1.7e9 + step for step in steps], "loss": [1 / (step + 1) for step in steps],
            "val/acc": [step / 10 if step % 2 else None for step in steps], "epoch": [step // 2 for step in steps],
            "picture": [{"_type": "image", "path": "x"}] * count, "note": ["text"] * count,
        })  # fmt: skip

    path = tmp_path / "0000.parquet"
    pq.write_table(table(4), path)
    (source,) = open_logs(tmp_path)
    found = read_on(source).series()
    assert set(found) == {"loss", "val/acc"}
    assert points(found["loss"]) == [(step, 1 / (step + 1)) for step in range(4)]
    assert points(found["val/acc"]) == [(1.0, 0.1), (3.0, 0.3)]
    assert found["loss"].time.tolist() == [1.7e9 + step for step in range(4)]
    path.write_bytes(b"PAR1 half written")
    assert points(read_on(source).series()["loss"])[-1] == (3.0, 0.25)
    assert "cannot be read" in source.problems()[0]
    pq.write_table(table(6), path)
    assert len(read_on(source).series()["loss"].value) == 6
    assert source.problems() == []


@pytest.mark.behaviour("parquet-is-read")
def test_without_pyarrow_a_sentence_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    for place in (tmp_path, tmp_path / "a.parquet"):
        with pytest.raises(DataError, match="needs pyarrow to be read: `pip install pyarrow`"):
            open_logs(place)
