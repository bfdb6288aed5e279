"""Logs as the programs of this field write them: each is made here by what that program does, and read back.

What is expected comes from the numbers that went in, never from the reader.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cockpit.core.foreign.importing import import_log
from cockpit.core.foreign.kinds import HEAD, open_logs
from engines.basics.errors import DataError
from engines.contract.steps import read_series
from tests.cockpit.core.foreign.event_files import VERSION, event, record, simple
from tests.cockpit.core.foreign.reading import points, read, read_on

Points = dict[str, list[tuple[float, float]]]


def loss(step: int) -> float:
    """A value for each step that text of six digits holds exactly."""
    return round(4 / (1 + step), 6)


def by(place: str, path: Path) -> Points:
    """Every metric of the log at `path`."""
    return {name: points(series, place) for name, series in read(path).series().items()}  # type: ignore[misc]


# -- tables --------------------------------------------------------------------------------------------------------


class LightningLogger:
    """As `CSVLogger`: rows wait until `save`, which writes the file anew where a metric has come without a column."""

    def __init__(self, path: Path) -> None:
        self.path, self.names, self.rows = path, list[str](), list[dict[str, Any]]()
        self.new: list[dict[str, Any]] = []

    def log(self, step: int, **metrics: float) -> None:
        self.new.append(metrics | {"step": step})

    def save(self) -> None:
        names = sorted({*self.names, *(name for row in self.new for name in row)})
        self.rows += self.new
        anew, self.names = names != self.names, names
        with open(self.path, "w" if anew else "a", newline="") as file:
            writer = csv.DictWriter(file, self.names)
            if anew:
                writer.writeheader()
            writer.writerows(self.rows if anew else self.new)
        self.new = []


@pytest.mark.behaviour("programs-field-write-print")
def test_lightning_rows_have_holes_and_its_header_changes_as_metrics_come(tmp_path: Path) -> None:
    logger = LightningLogger(tmp_path / "metrics.csv")
    logger.log(49, epoch=0, train_loss=loss(49))
    logger.save()
    source = read(logger.path)
    assert points(source.series()["train_loss"]) == [(49.0, loss(49))]
    logger.log(99, epoch=0, train_loss=loss(99))
    logger.log(99, epoch=0, val_loss=loss(100))
    logger.save()
    logger.log(149, epoch=1, train_loss=loss(149))
    logger.save()
    series = read_on(source).series()
    assert points(series["train_loss"]) == [(step, loss(step)) for step in (49, 99, 149)]
    assert points(series["val_loss"]) == [(99.0, loss(100))]
    assert points(series["val_loss"], "epoch") == [(0.0, loss(100))]
    assert all(one.old == () for one in series.values())


def test_ultralytics_pads_its_names(tmp_path: Path) -> None:
    names = ["epoch", "train/box_loss", "metrics/mAP50(B)", "lr/pg0"]
    lines = ["".join(f"{name:>24}," for name in names).rstrip(",")]
    rows = [(epoch, loss(epoch), 0.5, 1e-3) for epoch in range(1, 4)]
    lines += ["".join(f"{value:>24}," for value in row).rstrip(",") for row in rows]
    (tmp_path / "results.csv").write_text("\n".join(lines) + "\n")
    assert by("epoch", tmp_path / "results.csv") == {
        "train/box_loss": [(epoch, loss(epoch)) for epoch in (1, 2, 3)],
        "metrics/mAP50(B)": [(epoch, 0.5) for epoch in (1, 2, 3)],
        "lr/pg0": [(epoch, 1e-3) for epoch in (1, 2, 3)],
    }


@pytest.mark.parametrize("separator", [",", ";"])
def test_keras_csv_logger(separator: str, tmp_path: Path) -> None:
    with open(tmp_path / "training.log", "w", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(["epoch", "accuracy", "loss", "val_loss"])
        writer.writerows([epoch, 0.5, loss(epoch), "NA" if epoch == 1 else loss(epoch)] for epoch in range(3))
    assert by("epoch", tmp_path / "training.log") == {
        "accuracy": [(epoch, 0.5) for epoch in range(3)],
        "loss": [(epoch, loss(epoch)) for epoch in range(3)],
        "val_loss": [(epoch, loss(epoch)) for epoch in (0, 2)],
    }


def stable_baselines_csv(path: Path, rows: Sequence[dict[str, float]]) -> None:
    """As `CSVOutputFormat`: a name that comes later is put behind the others, and lines before get its blank cell."""
    names: list[str] = []
    text = ""
    for row in rows:
        extra = [name for name in row if name not in names]
        if extra:
            names += extra
            _, _, before = text.partition("\n")
            text = ",".join(names) + "\n" + "".join(f"{line}{',' * len(extra)}\n" for line in before.splitlines())
        text += ",".join(str(row.get(name, "")) for name in names) + "\n"
        path.write_text(text)


@pytest.mark.behaviour("programs-field-write-print")
def test_stable_baselines_progress_gets_columns_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    rows = [{"time/iterations": 1.0, "time/total_timesteps": 2048.0}]
    stable_baselines_csv(path, rows)
    source = read(path)
    for n in (2.0, 3.0):
        found = {"rollout/ep_rew_mean": 10 * n, "train/loss": loss(int(n))}
        rows.append({"time/iterations": n, **found, "time/total_timesteps": 2048 * n})
    stable_baselines_csv(path, rows)
    series = read_on(source).series()
    assert points(series["rollout/ep_rew_mean"]) == [(4096.0, 20.0), (6144.0, 30.0)]
    assert points(series["train/loss"]) == [(4096.0, loss(2)), (6144.0, loss(3))]
    assert points(series["time/iterations"]) == [(2048.0, 1.0), (4096.0, 2.0), (6144.0, 3.0)]


def test_episodes_of_a_monitor_stand_at_the_steps_they_end_at(tmp_path: Path) -> None:
    path, episodes = tmp_path / "0.monitor.csv", [(20.5, 11, 0.5), (30.0, 12, 1.25), (-4.0, 200, 9.0)]
    path.write_text('#{"t_start": 1767225600.25, "env_id": "CartPole-v1"}\nr,l,t\n')
    source = read(path)
    assert source.series() == {}
    with open(path, "a") as file:
        file.writelines(f"{reward},{length},{seconds}\n" for reward, length, seconds in episodes)
    series = read_on(source).series()
    assert points(series["r"]) == [(11.0, 20.5), (23.0, 30.0), (223.0, -4.0)]
    assert points(series["r"], "time") == [(1767225600.25 + seconds, reward) for reward, _, seconds in episodes]
    assert source.problems() == []


# -- documents -----------------------------------------------------------------------------------------------------

HISTORY = {"loss": [4.0, 2.0, math.nan], "val_loss": [3.0, 2.5, 2.25], "lr": [1e-3, 1e-3, 5e-4]}


@pytest.mark.parametrize(
    "document",
    [HISTORY, {"history": HISTORY, "epoch": [0, 1, 2], "params": {"epochs": 3, "steps": 10}},
     {"loss": HISTORY["loss"], "val_loss": HISTORY["val_loss"], "lr": ["0.001", "0.001", "0.0005"]}],
    ids=["history", "whole", "words"],
)  # fmt: skip
def test_keras_history(document: object, tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(json.dumps(document))
    assert by("epoch", path) == {
        "loss": [(0.0, 4.0), (1.0, 2.0), (2.0, "nan")], "val_loss": [(0.0, 3.0), (1.0, 2.5), (2.0, 2.25)],
        "lr": [(0.0, 1e-3), (1.0, 1e-3), (2.0, 5e-4)],
    }  # fmt: skip


def test_a_history_longer_than_what_is_looked_at_first(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"loss": [float(n) for n in range(10_000)]}, indent=1))
    assert path.stat().st_size > HEAD
    assert by("epoch", path)["loss"] == [(float(n), float(n)) for n in range(10_000)]


def test_lists_per_data_set_are_a_history_and_a_config_of_lists_is_none(tmp_path: Path) -> None:
    (tmp_path / "evals.json").write_text('{"train": {"rmse": [0.5, 0.25]}, "eval": {"rmse": [0.75, 0.5]}}')
    (tmp_path / "config.json").write_text('{\n "betas": [0.9, 0.99],\n "lr": 0.1\n}\n')
    (found,) = open_logs(tmp_path)
    assert by("epoch", found.path) == {"train.rmse": [(0.0, 0.5), (1.0, 0.25)], "eval.rmse": [(0.0, 0.75), (1.0, 0.5)]}


# -- folders -------------------------------------------------------------------------------------------------------


def mlflow_log(run: Path, name: str, *entries: tuple[int, float, int]) -> None:
    """As the file store: milliseconds, value and step; a `/` in a name is a folder."""
    path = run / "metrics" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.writelines(f"{moment} {value} {step}\n" for moment, value, step in entries)


@pytest.mark.behaviour("programs-field-write-print")
def test_an_mlflow_run_is_one_log_of_all_its_metrics(tmp_path: Path) -> None:
    run, began = tmp_path / "mlruns" / "0" / "0123456789abcdef", 1767225600000
    mlflow_log(run, "loss", *((began + 1000 * step, loss(step), step) for step in range(3)))
    mlflow_log(run, "val/acc", (began + 2000, math.nan, 2))
    mlflow_log(run, "no_steps", *((began + 1000 * n, 0.5 * n, 0) for n in range(3)))
    (run / "meta.yaml").write_text("run_id: 0123456789abcdef\n")
    (tmp_path / "mlruns" / "0" / "meta.yaml").write_text("experiment_id: '0'\n")
    (source,) = open_logs(tmp_path)
    assert (source.kind, source.path) == ("MLflow run", run)
    series = read_on(source).series()
    assert points(series["loss"]) == [(step, loss(step)) for step in range(3)]
    assert points(series["loss"], "time") == [(began / 1000 + step, loss(step)) for step in range(3)]
    assert points(series["val/acc"]) == [(2.0, "nan")]
    assert points(series["no_steps"]) == [(0.0, 0.0), (1.0, 0.5), (2.0, 1.0)]
    mlflow_log(run, "loss", (began + 9000, loss(9), 9))
    mlflow_log(run, "later", (began + 9000, 1.5, 9))
    series = read_on(source).series()
    assert points(series["loss"])[-1] == (9.0, loss(9))
    assert points(series["later"]) == [(9.0, 1.5)]
    assert by("step", run / "metrics" / "loss") == {"loss": [(step, loss(step)) for step in (0, 1, 2, 9)]}


@pytest.mark.behaviour("programs-field-write-print")
def test_event_files_of_one_folder_are_one_run_and_a_restart_supersedes(tmp_path: Path) -> None:
    run = tmp_path / "lightning_logs" / "version_0"
    run.mkdir(parents=True)

    def write(name: str, steps: range, base: float) -> None:
        with open(run / name, "ab") as file:
            file.write(
                b"".join([record(VERSION), *(record(event(simple("loss", base + step), step=step)) for step in steps)])
            )

    write("events.out.tfevents.1767225600.host.1.0", range(5), 0.0)
    (source,) = open_logs(tmp_path)
    assert points(read_on(source).series()["loss"]) == [(step, step) for step in range(5)]
    write("events.out.tfevents.1767229200.host.2.0", range(3, 7), 100.0)
    series = read_on(source).series()["loss"]
    assert points(series) == [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), *((step, 100.0 + step) for step in range(3, 7))]
    assert [(steps.tolist(), values.tolist()) for steps, values in series.old] == [([3.0, 4.0], [3.0, 4.0])]
    (run / "events.out.tfevents.1767225600.host.1.0").write_bytes(record(VERSION))  # cut: all is read again
    assert points(read_on(source).series()["loss"]) == [(step, 100.0 + step) for step in range(3, 7)]


# -- what is printed -----------------------------------------------------------------------------------------------


def test_a_transformers_console_goes_by_its_epochs(tmp_path: Path) -> None:
    """The bar is wiped before each dictionary is printed, and drawn again behind it."""
    out = "Some weights were newly initialized.\n  0%|          | 0/30 [00:00<?, ?it/s]"
    for step in (10, 20, 30):
        out += f"\r {step}%|███       | {step}/30 [00:0{step // 10}<00:02, 10.00it/s]\r" + " " * 60 + "\r"
        out += str({"loss": loss(step), "grad_norm": 1.5, "learning_rate": 5e-05, "epoch": step / 30}) + "\n"
    out += str({"train_runtime": 12.5, "train_loss": 0.25, "epoch": 1.0}) + "\n"
    (tmp_path / "out.log").write_text(out)
    found = by("epoch", tmp_path / "out.log")
    assert found["loss"] == [(step / 30, loss(step)) for step in (10, 20, 30)]
    assert found["learning_rate"] == [(step / 30, 5e-5) for step in (10, 20, 30)]
    assert found["train_loss"] == [(1.0, 0.25)]


@pytest.mark.behaviour("programs-field-write-print")
def test_the_updates_of_a_bar_are_points_though_no_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    bar = "\rEpoch {}: {:3d}%|███ | {}/4 [00:01<00:02,  7.85it/s, v_num=0, train_loss={}]"
    path.write_text("".join(bar.format(0, 25 * step, step, loss(step)) for step in range(1, 5)))
    source = read(path)
    with open(path, "a") as file:
        file.writelines(bar.format(1, 25 * step, step, loss(4 + step)) for step in range(1, 5))
        file.write("\n")
    series = read_on(source).series()
    assert points(series["train_loss"]) == [(step, loss(step)) for step in range(1, 9)]
    assert [epoch for epoch, _ in points(series["train_loss"], "epoch")] == [0.0] * 4 + [1.0] * 4


def test_keras_with_a_line_an_epoch_has_its_steps_one_behind_another(tmp_path: Path) -> None:
    text = ""
    for epoch in (1, 2, 3):
        text += f"Epoch {epoch}/3\n60/60 - 1s - 20ms/step - loss: {loss(epoch)} - val_loss: {loss(9 + epoch)}\n"
    (tmp_path / "keras.log").write_text(text)
    assert by("step", tmp_path / "keras.log") == {
        "loss": [(60.0 * epoch, loss(epoch)) for epoch in (1, 2, 3)],
        "val_loss": [(60.0 * epoch, loss(9 + epoch)) for epoch in (1, 2, 3)],
    }
    assert [place for place, _ in by("epoch", tmp_path / "keras.log")["loss"]] == [1.0, 2.0, 3.0]


def test_nanogpt_console_and_prose_around_it(tmp_path: Path) -> None:
    path = tmp_path / "nohup.out"
    path.write_text("Overriding: batch_size = 12\nparameters: 123.59M\nstep 0: train loss 4.2, val loss 4.3\n")
    source = read(path)
    with open(path, "a") as file:
        for step in range(0, 30, 10):
            file.write(f"iter {step}: loss {loss(step)}, time 23.45ms, mfu -100.00%\n")
        file.write("saving checkpoint to out\nstep 30: train loss nan, val loss 3.5\n")
    series = read_on(source).series()
    assert list(series) == ["train loss", "val loss", "loss", "time", "mfu"]
    assert points(series["loss"]) == [(step, loss(step)) for step in (0, 10, 20)]
    assert points(series["val loss"]) == [(0.0, 4.3), (30.0, 3.5)]
    assert points(series["train loss"]) == [(0.0, 4.2), (30.0, "nan")]
    assert source.problems() == []


@pytest.mark.behaviour("cannot-read-named-do")
def test_a_readme_and_a_config_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "README.txt").write_text("Install 3 things.\nThe best accuracy: 0.91 (see page 4).\n")
    (tmp_path / "config.txt").write_text("lr: 0.1\nbatch_size: 32\nsteps: 1000\nseed: 3\n")
    (tmp_path / "requirements.txt").write_text("torch==2.1\nnumpy==1.26\n")
    with pytest.raises(DataError, match="No log found"):
        open_logs(tmp_path)


# -- what cannot be read -------------------------------------------------------------------------------------------


@pytest.mark.behaviour("cannot-read-named-do")
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("mlflow.db", b"SQLite format 3\x00", "MLFLOW_TRACKING_URI"),
        ("log.jsonl.zst", b"\x28\xb5\x2f\xfd\x00", "gzip"), ("offline.zip", b"PK\x03\x04", "unpack it"),
    ],
)  # fmt: skip
def test_what_is_kept_in_another_way_is_named_with_what_to_do(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words) as error:
        open_logs(tmp_path / name)
    assert str(error.value).startswith(str(tmp_path / name))
    if name != "offline.zip":
        with pytest.raises(DataError, match=words):
            open_logs(tmp_path)


def test_a_repository_of_aim_is_named(tmp_path: Path) -> None:
    (tmp_path / ".aim").mkdir()
    for path in (tmp_path, tmp_path / ".aim"):
        with pytest.raises(DataError, match="aim up"):
            open_logs(path)


# -- runs of them --------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("programs-field-write-print")
def test_each_of_them_makes_a_run_with_the_same_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    run = tmp_path / "mlflow" / "0123"
    mlflow_log(run, "loss", *((1767225600000 + step, loss(step), step) for step in range(1, 6)))
    (run / "meta.yaml").touch()
    logs = {
        "log.jsonl.gz": gzip.compress("".join(f'{{"step": {n}, "loss": {loss(n)}}}\n' for n in range(1, 6)).encode()),
        "log.csv": ("step,loss\r\n" + "".join(f"{n},{loss(n)}\r\n" for n in range(1, 6))).encode("utf-16"),
        "out.log": "".join(f"iter {n}: loss {loss(n)}, time 1ms\n" for n in range(1, 6)).encode(),
        "history.json": json.dumps({"step": list(range(1, 6)), "loss": [loss(n) for n in range(1, 6)]}).encode(),
    }
    for name, data in logs.items():
        (tmp_path / name).write_bytes(data)
    for path in (run, *(tmp_path / name for name in logs)):
        (source,) = open_logs(path)
        steps, values = read_series(import_log(source).steps, "loss")
        assert (path.name, steps.tolist(), values.tolist()) == (
            path.name, [1, 2, 3, 4, 5], [loss(n) for n in range(1, 6)],
        )  # fmt: skip
