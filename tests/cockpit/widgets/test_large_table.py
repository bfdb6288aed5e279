"""A table of many rows and many columns makes the lines it shows and no others."""

import pytest
from textual.app import App, ComposeResult

from cockpit.core.run.follow import News
from cockpit.core.run.model import RunModel
from cockpit.core.table.rows import Row
from cockpit.core.table.table import TableText
from cockpit.theme import variables
from cockpit.widgets.epoch_table import EpochTable
from cockpit.widgets.table_pane import FullTable
from engines.contract import events as ev
from engines.contract.spec import Column
from tests.support.fake_run import STEPS_PER_EPOCH

ROWS, COLUMNS, HEIGHT = 10_000, 40, 20


def row(number: int) -> ev.Epoch:
    train: dict[str, float | None] = {f"k{place}": number + place / 100 for place in range(COLUMNS)}
    return ev.Epoch(
        epoch=number, step=number * STEPS_PER_EPOCH, stage="train", train=train, validation={}, score=0.5, lr=1e-4,
        best=False, weights={}, seconds=1.0,
    )  # fmt: skip


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """Every row of which a line was made."""
    rows: list[Row] = []
    real = TableText.cells

    def cells(self: TableText, one: Row, mark: str = "") -> list[str]:
        rows.append(one)
        return real(self, one, mark)

    monkeypatch.setattr(TableText, "cells", cells)
    return rows


class Host(App[None]):
    def __init__(self, table: EpochTable) -> None:
        super().__init__()
        self.animation_level = "none"  # as in the cockpit
        self._table = table

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(dark=True)

    def compose(self) -> ComposeResult:
        yield self._table


@pytest.mark.behaviour("table-10-000-epochs")
async def test_only_lines_in_view_are_made_while_it_grows_and_scrolls(made: list[Row]) -> None:
    columns = [Column("Ep", "epoch", "d"), *(Column(f"K{place}", f"train.k{place}") for place in range(COLUMNS))]
    started = ev.RunStarted(
        project="p", device="cpu", epochs=ROWS, steps_per_epoch=STEPS_PER_EPOCH, columns=columns, stages=[], patience=0
    )
    model = RunModel()
    model.add(News(events=(started, *map(row, range(1, ROWS + 1)))))
    table = FullTable()
    async with Host(table).run_test(size=(80, HEIGHT)) as pilot:
        table.show(model)
        await pilot.pause()
        assert table.virtual_size.height >= ROWS
        assert table.virtual_size.width > 200
        assert 0 < len(made) <= 4 * HEIGHT
        made.clear()
        model.add(News(events=(row(ROWS + 1),)))
        table.show(model)
        await pilot.pause()
        assert {one.step for one in made} >= {(ROWS + 1) * STEPS_PER_EPOCH}
        assert len(made) <= 2 * HEIGHT
        table.focus()
        for key in ("pageup", "home", "right"):
            made.clear()
            await pilot.press(key)
            await pilot.pause()
            assert 0 < len(made) <= 3 * HEIGHT, key
        assert made[0].step == STEPS_PER_EPOCH
