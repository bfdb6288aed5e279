import re
from typing import Any

from cockpit.core.table.table import TableText
from engines.contract.events import Epoch
from engines.contract.spec import Column

SEED_COLUMNS = [
    Column("Ep", "epoch", "d"),
    Column("TrLoss", "train.loss"),
    Column("Act", "train.action"),
    Column("VlF1", "validation.f1"),
    Column("Score", "score"),
    Column("LR", "lr", ".1e"),
]


def epoch(**changes: Any) -> Epoch:
    values: dict[str, Any] = {
        "epoch": 2, "step": 20, "stage": "main", "train": {"loss": 0.8, "action": 0.702}, "validation": {"f1": 0.2},
        "score": 0.45, "lr": 2e-4, "best": True, "weights": {}, "seconds": 1.0,
    }  # fmt: skip
    return Epoch(**(values | changes))


def test_the_line_is_that_of_the_source_document() -> None:
    table = TableText(SEED_COLUMNS)
    assert table.header().split() == ["Ep", "TrLoss", "Act", "VlF1", "Score", "LR"]
    assert table.row(epoch()).split() == ["2", "0.800", "0.702", "0.200", "0.450", "2.0e-4", "*"]
    assert table.row(epoch(best=False)).split()[-1] == "2.0e-4"
    assert set(table.rule()) == {"-"}
    assert len(table.rule()) == table.width == len(table.row(epoch()))


def test_columns_stay_where_they_are_whatever_the_values() -> None:
    table = TableText(SEED_COLUMNS)
    rows = [
        table.row(epoch(best=False)),
        table.row(epoch(best=False, epoch=1500, train={"loss": 12345.678, "action": -0.5}, score=None)),
        table.row(epoch(best=False, train={"loss": None}, nonfinite=["train.loss"], lr=0.0)),
    ]
    assert len({len(row) for row in rows}) == 1
    header = table.header()
    ends = [match.end() for match in re.finditer(r"\S+", header)]
    assert all(row[end - 1] != " " and row[end : end + 1] in ("", " ") for row in rows for end in ends)
    assert "nan" in rows[2]
    assert "—" in rows[1]


def test_the_thresholds_table_with_its_mark_fits_eighty_columns_with_a_border() -> None:
    from projects.controls.spec import SPEC

    assert TableText(SPEC.columns).width <= 76


def test_words_have_the_width_their_format_says() -> None:
    table = TableText([Column("Ep", "epoch", "d"), Column("Stage", "stage", "9s")])
    assert table.row(epoch(stage="movement")) == "   2  movement *"
    assert table.row(epoch(stage="main", best=False)) == "   2      main"
    assert table.width == len(table.rule()) == 16


def test_columns_from_a_damaged_or_hostile_log_harm_nothing() -> None:
    columns = [
        ("\x1b[2J" + "x" * 90, "train", ".3f"),
        ("", "no.such", "%%"),
        ("漢字", "stage", "d"),
        ("W", "stage", "xs"),
    ]
    table = TableText([Column(*column) for column in columns])
    row = table.row(epoch(stage="a\x1b[31mb"))
    assert "\x1b" not in table.header() + row
    assert len(table.header()) < 60


def test_the_first_column_has_room_for_the_last_epoch() -> None:
    table = TableText(SEED_COLUMNS, epochs=100_000)
    lines = [table.header(), *(table.row(epoch(best=False, epoch=number)) for number in (1, 9_999, 10_000, 100_000))]
    assert len({len(line) for line in lines}) == 1
    assert lines[-1].split()[0] == "100000"


def test_columns_are_as_wide_as_the_plan_needs_and_a_longer_number_is_whole() -> None:
    columns = [Column("Ep", "epoch", "d"), Column("Step", "step", ",d"), Column("Score", "score")]
    planned, unknown = TableText(columns, epochs=150, steps=14_850), TableText(columns)
    assert planned.row(epoch(step=20, best=False)) == "  2     20 0.450"
    assert unknown.row(epoch(step=20, best=False)) == "   2        20 0.450"
    assert planned.row(epoch(epoch=1_000, step=100_000, best=False)) == "1000 100,000 0.450"
    assert planned.ends == [3, 10, 18]  # behind the last the mark of the best
    assert planned.row(epoch(step=20))[16:] == " *"
    assert TableText([]).ends == []


def test_wide_columns_give_way_the_last_one_first() -> None:
    columns = [
        Column("Ep", "epoch", "d"),
        Column("One", "train.one", wide=True),
        Column("Two", "train.two", wide=True),
        Column("Score", "score"),
        Column("LR", "lr", ".1e"),
    ]

    def titles(width: int) -> list[str]:
        return TableText.within(columns, width).header().split()

    whole = TableText(columns).width
    assert titles(whole) == ["Ep", "One", "Two", "Score", "LR"]
    assert titles(whole - 1) == ["Ep", "One", "Score", "LR"]
    assert titles(whole - 6) == ["Ep", "One", "Score", "LR"]
    assert titles(whole - 7) == ["Ep", "Score", "LR"]
    assert titles(3) == ["Ep", "Score", "LR"], "only wide ones give way"
