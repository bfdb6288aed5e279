"""Runs side by side: what each reached, what differs, and what stays right when one is broken or gone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from cockpit.core.compare.columns import direction
from cockpit.core.compare.tables import config_table, metric_rows, values_table
from cockpit.core.hosts import links
from engines.contract import commands as cmd
from engines.contract import events as ev
from tests.support.compared import configured, drawn, model_of
from tests.support.fake_run import CONFIG, FakeRun, epoch


def run(folder: Path, word: str, *scores: float, weight: float = 0.5, label: str = "") -> FakeRun:
    fake = configured(folder, word, *scores, label=label)
    fake.run.config.write_text(CONFIG.replace("look: 0.5", f"look: {weight}"))
    return fake


@pytest.fixture
def two(tmp_path: Path) -> tuple[FakeRun, FakeRun]:
    return run(tmp_path, "amber", 0.1, 0.7, 0.4), run(tmp_path, "birch", 0.2, 0.6, weight=0.75, label="K=60")


def cells(table: object, name: str) -> list[tuple[str, bool]]:
    row = next(row for row in table.rows if row[0].text == name)  # type: ignore[attr-defined]
    return [(cell.text + cell.aside, cell.strong) for cell in row[1:]]


def test_the_best_is_marked_with_its_epoch_and_nothing_guessed(two: tuple[FakeRun, FakeRun]) -> None:
    table = values_table(drawn(two))
    assert table.header == ("", "amber", "K=60")
    assert [row[0].text for row in table.rows] == ["score", "validation.action_f1", "train.loss", "train.action"]
    assert cells(table, "score") == [(" 0.7000 ★ ep 2", True), (" 0.6000   ep 2", False)]
    assert cells(table, "train.loss") == [(" 0.3333 ★ ep 3", True), (" 0.5000   ep 2", False)]
    assert cells(table, "validation.action_f1") == [(" 0.2500", False)] * 2


def test_runs_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    words = [("amber", ""), ("amber", "seed"), ("birch", "seed"), ("cedar", "other"), ("delta-amber", "")]
    fakes = [run(tmp_path / str(n), word, 0.1, label=label) for n, (word, label) in enumerate(words)]
    long = "controls-20261127-201400-"
    names = [f"{long}amber", "amber · seed", "birch · seed", "other", f"{long}delta-amber"]
    assert [entry.name for entry in model_of(fakes).compared.entries] == names
    assert values_table(drawn(fakes)).header == ("", *names)


def test_runs_of_another_machine_have_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    link = SimpleNamespace(host=SimpleNamespace(name="box"), stale="", want=lambda name: None)
    monkeypatch.setitem(links._LINKS, there, link)
    labels = {"amber": "", "birch": "seed"}
    fakes = [run(folder, word, 0.1, label=label) for folder in (here, there) for word, label in labels.items()]
    names = [entry.name for entry in model_of(fakes).compared.entries]
    assert names == ["amber", "birch · seed", "box:amber", "box:birch · seed"]


def test_only_keys_that_differ_are_shown_the_others_counted(two: tuple[FakeRun, FakeRun]) -> None:
    table = config_table(drawn(two))
    assert [[cell.text for cell in row] for row in table.rows] == [["loss_weights.look", "0.5", "0.75"]]
    assert [cell.strong for cell in table.rows[0]] == [False, False, True]
    assert table.note == "5 keys are equal"  # project, data.path, model, loss_weights.action, cost.usd_per_hour


def test_a_run_that_measured_nothing_finite_loses(tmp_path: Path) -> None:
    first, second = run(tmp_path, "amber", 0.3), run(tmp_path, "birch")
    second.say(msgspec.structs.replace(epoch(1), score=None, nonfinite=["score"]))
    table = values_table(drawn([first, second, run(tmp_path, "cedar")]))
    assert cells(table, "score") == [(" 0.3000   ep 1", False), ("nan", False), ("—", False)]


def test_equal_values_are_all_the_best(tmp_path: Path) -> None:
    row = metric_rows(drawn([run(tmp_path, "amber", 0.3), run(tmp_path, "birch", 0.1, 0.3)]))[0]
    assert (row.name, row.best) == ("score", frozenset({0, 1}))
    assert [value.epoch for value in row.values if value] == [1, 2]


def test_runs_of_several_projects_compare_by_what_they_share(tmp_path: Path) -> None:
    ours, other = run(tmp_path, "amber", 0.3), FakeRun(tmp_path, "melee-20261127-201400-birch").begin().started()
    other.run.write_info(msgspec.structs.replace(other.run.info, project="melee"))
    other.say(msgspec.structs.replace(epoch(1), train={"loss": 2.0}, validation={"rollout": 3.0}))
    compared = drawn([ours, other])
    assert compared.metrics == ("score", "train.loss")
    assert values_table(compared).note.startswith("controls and melee share 2 metrics")


def test_a_broken_run_and_one_without_a_config_say_why(two: tuple[FakeRun, FakeRun], tmp_path: Path) -> None:
    first, second = two
    second.run.info_file.write_text("{garbage")
    third = run(tmp_path, "cedar", 0.5)
    third.run.config.unlink()
    table = config_table(drawn([first, second, third]))
    assert "run.json" in table.note
    assert f"{third.id} has no config_resolved.yaml" in table.note
    assert (table.rows, table.instead) == ((), "")  # of one config nothing can be said


@pytest.mark.parametrize(
    ("metric", "better"),
    [("score", "highest"), ("validation.loss", "lowest"), ("train.aux_loss", "lowest"), ("loss", "lowest"),
     ("validation.f1", None), ("glossary", None), ("lr", None)],
)  # fmt: skip
def test_what_is_better_is_known_of_score_and_losses_alone(metric: str, better: str | None) -> None:
    assert direction(metric) == better


def test_a_live_edit_counts_as_the_setting_it_changed(two: tuple[FakeRun, FakeRun]) -> None:
    first, second = two
    edit = cmd.SetLossWeights(attempt=1, weights={"look": 0.75})
    first.say(ev.CommandAnswer(command=edit, state="applied", step=5))
    table = config_table(drawn([first, second]))
    assert (table.rows, table.instead) == ((), "No setting differs.")
