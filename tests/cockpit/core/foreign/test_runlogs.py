"""Real logs of other programs open with the right values: each is read a second time here, by other means."""

from __future__ import annotations

import csv
import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cockpit.core.foreign.kinds import open_logs
from tests.cockpit.core.foreign.reading import plain, points, read, read_on

LOGS = Path(__file__).parents[5] / "shared" / "data" / "runlogs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the real logs are not beside this project (../shared/data)")

Points = dict[str, list[tuple[float, float]]]


def test_llmc_train_and_evaluation_share_their_steps() -> None:
    path = LOGS / "01_llmc_gpt2_main_log" / "main.log"
    text = path.read_text()
    source = read(path)
    series = source.series()
    train = re.findall(r"^s:(\d+) trl:([\d.]+) lr:([\d.]+) norm:([\d.]+)\n", text, re.MULTILINE)
    for place, name in enumerate(("trl", "lr", "norm"), 1):
        assert points(series[name]) == [(float(row[0]), float(row[place])) for row in train]
    evaluations = re.findall(r"^s:(\d+) tel:([\d.]+)\n", text, re.MULTILINE)
    assert points(series["tel"]) == [(float(step), float(value)) for step, value in evaluations]
    assert series["trl"].step[-1] == 7512  # line 7513 was cut off within a number, and must not count
    (problem,) = source.problems()
    assert f"({len(text) - text.rindex(chr(10)) - 1} bytes)" in problem


def test_each_of_thirty_trials_is_a_branch_and_the_newest_counts() -> None:
    path = LOGS / "02_modded_nanogpt_29_restarts" / "a26c8aa2.log"
    trials = path.read_text().split("\ntrial:")[1:]
    pattern = r"^step:(\d+)/\d+ val_loss:(\S+) train_time:(\S+)s step_avg:(\S+)ms$"
    expected = [re.findall(pattern, trial, re.MULTILINE) for trial in trials]
    assert sum(map(len, expected)) == 1080
    series = read(path).series()
    for place, name in enumerate(("val_loss", "train_time", "step_avg"), 1):
        branches = [[(float(row[0]), plain([float(row[place])])[0]) for row in trial] for trial in expected]
        assert points(series[name]) == branches[-1]
        old = [list(zip(plain(steps), plain(values), strict=True)) for steps, values in series[name].old]
        assert old == branches[:-1]
    assert series["val_loss"].value[-1] == 3.28038
    assert sum(np.isnan(values[0]) for _, values in series["step_avg"].old) == 29  # "step_avg:nanms"


def test_a_json_list_of_nested_records_goes_by_its_epochs() -> None:
    path = LOGS / "03_mcgesture_training_log" / "training_log.json"
    records = json.loads(path.read_text())
    series = read(path).series()
    for group in ("train", "val"):
        for key in records[0][group]:
            expected = [(record["epoch"], record[group][key]) for record in records]
            assert points(series[f"{group}.{key}"], "epoch") == expected
    assert points(series["val_combined_score"], "epoch") == [
        (record["epoch"], record["val_combined_score"]) for record in records
    ]
    assert len(series["lr"].value) == 45
    assert np.isnan(series["lr"].step).all()
    assert int(series["val_combined_score"].epoch[series["val_combined_score"].value.argmax()]) == 20


def test_a_trainer_state_keeps_every_key_of_rows_that_share_a_step() -> None:
    path = LOGS / "04_hf_trainer_state" / "trainer_state.json"
    expected: Points = defaultdict(list)
    for row in json.loads(path.read_text())["log_history"]:
        for key, value in row.items():
            if key not in ("step", "epoch"):
                expected[key].append((row["step"], value))
    source = read(path)
    series = source.series()
    assert {name: points(one) for name, one in series.items()} == expected
    assert (series["loss"].step[-1], series["loss"].epoch[-1]) == (12030, 30)
    assert not source.problems()


@pytest.mark.parametrize("run", ["exp", "exp3", "exp4", "exp9"])
def test_ultralytics_names_come_without_their_padding(run: str) -> None:
    path = LOGS / "05_yolov5" / run / "results.csv"
    with open(path, newline="") as file:
        rows = [{key.strip(): float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    series = read(path).series()
    assert list(series) == [name for name in rows[0] if name != "epoch"]
    for name, one in series.items():
        assert points(one, "epoch") == [(row["epoch"], row[name]) for row in rows]


def test_lightning_csv_has_its_step_in_the_last_column() -> None:
    path = LOGS / "10_lightning_csv" / "metrics.csv"
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    series = read(path).series()
    assert list(series) == ["train_loss", "train_acc"]
    for name, one in series.items():
        assert points(one) == [(float(row["step"]), float(row[name])) for row in rows]
        assert points(one, "epoch") == [(float(row["epoch"]), float(row[name])) for row in rows]


def test_three_seeds_in_one_csv_are_three_series() -> None:
    path = LOGS / "14_tdmpc_csv" / "dog-walk.csv"
    runs: dict[str, list[list[tuple[float, float]]]] = defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["step"] == "0":
                runs[row["seed"]].append([])
            runs[row["seed"]][-1].append((float(row["step"]), float(row["reward"])))
    series = read(path).series()
    assert {name: points(one) for name, one in series.items()} == {
        f"reward [seed {seed}]": branches[-1] for seed, branches in runs.items()
    }
    total = sum(len(one.value) + sum(len(steps) for steps, _ in one.old) for one in series.values())
    assert total == 505  # seeds 1 and 2 were begun anew: what they had before is old, and there


# TensorBoard files are read here by shape alone: the records of a file without damage, and in each record the scalar
# values as raw bytes behind their tags, found by a pattern.

_SCALAR = re.compile(rb"\x0a(?P<value>.)\x0a(?P<tag>.)(?P<rest>.*)", re.DOTALL)


def _records(path: Path) -> Iterator[bytes]:
    data, place = path.read_bytes(), 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        yield data[place + 12 : place + 12 + length]
        place += 16 + length


def _by_hand(path: Path) -> Points:
    """The scalars of the events of a file, for tags and messages shorter than 128 bytes, as all scalars' here are."""
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for record in _records(path):
        assert record[0] == 0x09  # field 1, eight bytes: the wall time
        rest, step = record[9:], 0
        if rest[:1] == b"\x10":
            shift, place = 0, 1
            while True:
                step |= (rest[place] & 0x7F) << shift
                shift, place = shift + 7, place + 1
                if rest[place - 1] < 0x80:
                    break
            rest = rest[place:]
        if rest[:1] != b"\x2a" or rest[1] >= 0x80:
            continue  # no summary, or one too long for scalars
        summary = rest[2 : 2 + rest[1]]
        while summary:
            match = _SCALAR.match(summary)
            assert match is not None
            value = summary[2 : 2 + match["value"][0]]
            summary = summary[2 + match["value"][0] :]
            size = value[1]
            tag, body = value[2 : 2 + size].decode(), value[2 + size :]
            simple = body[-5:] if body[-5:-4] == b"\x15" else b""
            tensor = re.search(
                rb"\x42.\x08\x01\x12\x00(?:\x22\x04(?P<content>.{4})|\x2a\x04(?P<packed>.{4}))", body, re.DOTALL
            )
            if simple:
                found[tag][step] = struct.unpack("<f", simple[1:])[0]
            elif tensor:
                found[tag][step] = struct.unpack("<f", tensor["content"] or tensor["packed"])[0]
    return {tag: sorted(values.items()) for tag, values in found.items()}


EVENT_FILES = sorted(path for path in LOGS.rglob("*tfevents*") if path.is_file())


@pytest.mark.parametrize("path", EVENT_FILES, ids=[f"{path.parent.name}-{path.name[-12:]}" for path in EVENT_FILES])
def test_event_files_give_every_scalar(path: Path) -> None:
    source = read(path)
    assert {name: points(one) for name, one in source.series().items()} == _by_hand(path)
    assert not source.problems()


def test_event_files_hold_what_their_programs_logged() -> None:
    """Counts and ends that the logs' own description gives, so that the reading above cannot fail in the same way."""
    keras = read(LOGS / "11_tfevents_keras" / "events.out.tfevents.1585769947.cvp").series()
    assert [len(one.value) for one in keras.values()] == [17] * 6
    guild = read(LOGS / "11_tfevents_keras" / "guild_events.out.tfevents.1548797801.omaha").series()
    assert [len(one.value) for one in guild.values()] == [20] * 4
    binn = read(LOGS / "09_tfevents_lightning_binn" / "events.out.tfevents.1682685979.host.1997.0").series()
    assert {len(binn[name].value) for name in ("train_loss", "train_acc", "val_loss", "val_acc", "epoch")} == {89}
    assert binn["epoch"].value.tolist() == list(range(89))
    yolo = read(next((LOGS / "05_yolov5" / "exp4").glob("*tfevents*"))).series()
    with open(LOGS / "05_yolov5" / "exp4" / "results.csv", newline="") as file:
        rows = [{key.strip(): float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    for name, one in yolo.items():  # the same run, logged by other code with five digits
        np.testing.assert_allclose(one.value, [row[name] for row in rows], rtol=1e-4, atol=1e-9)


def test_a_folder_opens_as_its_logs_one_each_and_event_files_of_one_run_as_one() -> None:
    yolo = LOGS / "05_yolov5"
    found = [read_on(source) for source in open_logs(yolo)]
    assert [source.path.relative_to(yolo).as_posix() for source in found] == [
        "exp/results.csv", "exp3/results.csv", "exp4", "exp4/results.csv", "exp5", "exp9/results.csv",
    ]  # fmt: skip
    assert [len(source.series()) for source in found] == [13, 13, 13, 13, 0, 13]
    (both,) = open_logs(LOGS / "09_tfevents_lightning_binn" / "version_0")
    alone = [read(path).series() for path in sorted(both.path.iterdir())]
    assert {name: points(one) for name, one in read_on(both).series().items()} == {
        name: points(one) for series in alone for name, one in series.items()
    }
    files = [path for path in LOGS.rglob("*") if path.is_file() and path.suffix != ".md"]
    assert len(open_logs(LOGS)) == len({path.parent if "tfevents" in path.name else path for path in files})
