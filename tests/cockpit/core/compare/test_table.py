"""The table of any number of runs: values, seeds on one line, order, differences to a baseline."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import msgspec
import pytest

from cockpit.core.compare.entries import PIECE
from cockpit.core.compare.model import CompareModel
from cockpit.core.compare.table import Choice, LineTable, facts, find_source, plain_rows, turned
from cockpit.core.runs import baseline, fleet
from cockpit.core.runs.fleet import Fleet
from engines.basics.errors import UserError
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.spec import Column
from tests.support.compared import configured, model_of
from tests.support.fake_run import FakeRun, epoch

RAW = {(1e-3, 1): 0.71, (1e-3, 2): 0.75, (1e-3, 3): 0.70, (1e-4, 1): 0.60, (1e-4, 2): 0.66}
"""Best score by rate and seed."""


def sweep(folder: Path) -> list[FakeRun]:
    return [
        configured(folder, "amber", 0.2, score, 0.1, label=f"lr={lr} seed={seed}", at=n, lr=lr, seed=seed)
        for n, ((lr, seed), score) in enumerate(RAW.items())
    ]


def column(table: LineTable, title: str) -> list[str]:
    titles, rows = plain_rows(table)
    return [row[titles.index(title)] for row in rows]


@pytest.mark.behaviour("seeds-are-one-line")
def test_runs_that_differ_in_the_seed_alone_are_one_line_with_mean_and_deviation(tmp_path: Path) -> None:
    model = model_of(sweep(tmp_path))
    found = facts(model.compared, model.table)
    assert found["settings"] == ["training.lr", "training.seed"]
    assert [line["name"] for line in found["lines"]] == ["lr=0.001", "lr=0.0001"]
    for line, rate in zip(found["lines"], (1e-3, 1e-4), strict=True):
        scores = [score for (lr, _), score in RAW.items() if lr == rate]
        mean = sum(scores) / len(scores)
        deviation = math.sqrt(sum((score - mean) ** 2 for score in scores) / (len(scores) - 1))
        assert line["values"]["score"] == pytest.approx({"mean": mean, "sd": deviation, "n": len(scores)})
        assert line["settings"] == {"training.lr": rate, "training.seed": [seed for lr, seed in RAW if lr == rate]}
    assert column(model.table, "Score") == ["0.720 ±0.026", "0.630 ±0.042"]
    assert column(model.table, "Run") == ["lr=0.001 ×3", "lr=0.0001 ×2"]


def test_a_group_opens_to_its_runs_and_seeds_can_be_apart(tmp_path: Path) -> None:
    fakes = sweep(tmp_path)
    closed = model_of(fakes)
    open_ = model_of(fakes, Choice(open=frozenset({closed.table.lines[0].key})))
    assert [name.strip(" ·") for name in column(open_.table, "Run")] == [
        "lr=0.001 ×3", "seed=2", "seed=1", "seed=3", "lr=0.0001 ×2",
    ]  # fmt: skip
    assert column(open_.table, "Score")[1:4] == ["0.750", "0.710", "0.700"]
    apart = model_of(fakes, Choice(apart=True, order="score"))
    assert column(apart.table, "Score") == ["0.600", "0.660", "0.700", "0.710", "0.750"]
    assert column(apart.table, "seed") == ["1", "2", "3", "1", "2"]


def test_what_is_no_seed_is_no_group_and_a_seed_counts_once(tmp_path: Path) -> None:
    one = configured(tmp_path, "amber", 0.5, at=1, seed=1)
    again = configured(tmp_path, "birch", 0.9, at=2, seed=1)  # the same once more: it counts, being newer
    other = configured(tmp_path, "cedar", 0.7, at=3, seed=2)
    failed = configured(tmp_path, "dune", at=4, seed=2)  # newer, without a score
    edited = configured(tmp_path, "ember", 0.1, at=5, seed=3)
    edited.say(ev.CommandAnswer(command=cmd.SetLossWeights(attempt=1, weights={"look": 9.0}), state="applied", step=5))
    model = model_of([one, again, other, failed, edited])
    lines = {tuple(entry.run.path.name[-5:] for entry in line.entries) for line in model.table.lines}
    assert lines == {("birch", "cedar"), ("amber",), ("-dune",), ("ember",)}
    assert facts(model.compared, model.table)["settings"] == ["loss_weights.look", "training.seed"]


@pytest.mark.behaviour("any-number-compared")
def test_values_are_those_of_the_best_epoch(tmp_path: Path) -> None:
    fake = configured(tmp_path, "amber", 0.1, 0.9, 0.5, lr=1)  # loss is 1 / epoch
    other = configured(tmp_path, "birch", 0.3, lr=2)
    model = model_of([fake, other])
    assert column(model.table, "TrLoss") == ["0.500", "1.000"]
    assert column(model.table, "Ep") == ["2", "1"]
    assert column(model.table, "State") == ["? lost", "? lost"]
    strong = [[cell.strong for cell in row] for row in model.table.cells]
    titles = [title.text for title in model.table.titles]
    assert [dict(zip(titles, row, strict=True))["TrLoss"] for row in strong] == [True, False]


def test_any_column_orders_and_what_has_no_value_comes_last(tmp_path: Path) -> None:
    fakes = [
        configured(tmp_path, "amber", 0.5, lr=10, at=1),
        configured(tmp_path, "birch", 0.7, lr=9, at=2),
        configured(tmp_path, "cedar", lr="auto", at=3),
        FakeRun(tmp_path, "controls-20261127-201404-dune"),
    ]
    fakes[3].run.info_file.write_text("{garbage")

    def words(order: str) -> str:
        return " ".join(name[0] for name in column(model_of(fakes, Choice(order=order)).table, "Run"))

    assert words("") == words("-score") == "b a c d"
    assert words("score") == "a b c d"
    assert words("setting.training.lr") == "b a c d"
    assert words("-setting.training.lr") == "c a b d"
    assert words("name") == "a b c d"
    assert words("-name") == "d c b a"
    assert words("nothing") == words("")
    table = model_of(fakes).table
    assert [find_source(typed, table) for typed in ("lr", "training.lr", "SCORE", "trloss", "train.loss", "run")] == [
        "setting.training.lr", "setting.training.lr", "score", "train.loss", "train.loss", "name",
    ]  # fmt: skip
    with pytest.raises(UserError, match=r"No column is called 'scor'.*did you mean 'score'"):
        find_source("scor", table)
    assert [turned(source, ("score", True)) for source in ("score", "train.loss", "validation.f1", "seconds")] == [
        "score", "train.loss", "-validation.f1", "seconds",
    ]  # fmt: skip
    assert turned("score", ("score", False)) == "-score"


@pytest.mark.behaviour("differences-to-a-baseline")
def test_differences_to_the_pinned_run_have_a_sign_and_a_run_that_is_gone_is_said(tmp_path: Path) -> None:
    fakes = sweep(tmp_path)
    base = fakes[3]  # 0.60
    baseline.pin(tmp_path, base.run)
    model = model_of(fakes, Choice(apart=True))
    assert column(model.table, "Δ Score") == ["+0.150", "+0.110", "+0.100", "+0.060", "pinned"]
    assert {cell.tone for row in model.table.cells for cell in row} == {"", "good", "quiet"}
    assert model.table.note == "Δ to lr=0.0001 seed=1"
    losses = model_of(fakes, Choice(apart=True, columns={"controls": ["delta.train.loss"]}))
    assert set(column(losses.table, "Δ TrLoss")) == {"+0.000", "pinned"}
    others = model_of(fakes[:3], Choice(apart=True))  # also of a run that is not among them
    assert column(others.table, "Δ Score") == ["+0.150", "+0.110", "+0.100"]
    shutil.rmtree(base.run.path)
    assert model.poll()
    assert "Δ Score" not in plain_rows(model.table)[0]
    assert f"The baseline {base.id} is gone; pin another run" in model.table.note
    baseline.unpin(tmp_path, "controls")
    model.poll()
    assert "is gone" not in model.table.note


def test_runs_of_several_projects_share_columns_and_only_their_own_baseline_counts(tmp_path: Path) -> None:
    ours = [configured(tmp_path, "amber", 0.5, lr=1, at=1), configured(tmp_path, "birch", 0.6, lr=2, at=2)]
    other = FakeRun(tmp_path, "melee-20261127-201403-cedar", project="melee").begin().started()
    other.run.config.write_text("project: melee\ntraining:\n  lr: 3\n  own: 1\n")
    other.say(msgspec.structs.replace(epoch(1, best=True), train={"loss": 2.0}, validation={"rollout": 3.0}))
    baseline.pin(tmp_path, ours[0].run)
    model = model_of([*ours, other])
    titles, rows = plain_rows(model.table)
    assert "lr" in titles
    assert "own" not in titles
    assert "TrLoss" in titles
    assert not {"VlF1", "Act", "vl.rollout"} & set(titles)
    assert [row[titles.index("Δ Score")] for row in rows] == ["+0.100", "pinned", "—"]
    assert set(column(model.table, "Project")) == {"controls", "melee"}


def test_chosen_columns_are_shown_in_order_and_a_format_that_is_none_harms_nothing(tmp_path: Path) -> None:
    fakes = sweep(tmp_path)
    choice = Choice(columns={"controls": ["train.loss", "nothing", "score"]})
    titles = [title.text for title in model_of(fakes, choice).table.titles]
    assert titles == ["Run", "lr", "seed", "TrLoss", "Score"]
    strange = FakeRun(tmp_path, "controls-20261127-201500-dune").begin()
    columns = [Column("Bad", "validation.bad", ".999999999f"), Column("Wide", "validation.w", "{}")]
    strange.say(
        ev.RunStarted(project="controls", device="cpu", epochs=1, steps_per_epoch=1, columns=columns, stages=[])
    )
    strange.say(msgspec.structs.replace(epoch(1, best=True), validation={"bad": 0.5, "w": math.inf, "x": 1e-9}))
    table = model_of([fakes[0], strange]).table
    assert column(table, "Bad") == ["—", "0.500"]


def test_many_runs_are_read_in_pieces_and_what_the_list_knows_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = [configured(tmp_path, "amber", n / 1000, at=n, seed=n, lr=n % 4).end("finished") for n in range(120)]
    listed = Fleet(tmp_path)
    listed.poll(most=1000)
    made: list[Path] = []
    monkeypatch.setattr(fleet, "WatchedRun", lambda path, piece: made.append(path))
    model = CompareModel([fake.run for fake in fakes], listed)
    reads = [PIECE, 2 * PIECE, 120]
    for read in reads:
        assert model.loading
        assert model.poll()
        assert sum(entry.summary is not None for entry in model.compared.entries) == read
    assert (model.loading, made) == (False, [])
    assert [len(line.entries) for line in model.table.lines] == [30] * 4
    assert not model.poll()
    fakes[7].run.write_info(msgspec.structs.replace(fakes[7].run.info, tags=["new"]))
    while not model.poll():
        pass
    assert "new" in column(model.table, "Tags")


def test_runs_elsewhere_and_deleted_ones(tmp_path: Path) -> None:
    fakes = [configured(tmp_path / "here", "amber", 0.5, lr=1), configured(tmp_path / "there", "birch", 0.7, lr=2)]
    model = model_of(fakes, folder=tmp_path / "here")
    assert column(model.table, "Run") == ["birch", "amber"]
    shutil.rmtree(fakes[1].run.path)
    assert model.poll()
    assert column(model.table, "Score") == ["0.700", "0.500"]  # what was known stays
    assert column(model.table, "State") == ["✖ gone", "? lost"]
    assert model.table.note == "birch: it was deleted"
