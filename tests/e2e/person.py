"""A person at a terminal, who presses keys and believes what is on the screen; and what the files of a run say.

Textual hands printable keys to a widget at once and others to their bindings a little later: between the two kinds a
person, and so these, waits to see what a key did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engines.contract.rundir import RunDirectory
from engines.contract.steps import read_series
from engines.runs.store import list_runs
from tests.e2e.conftest import Terminal, wait_for

CONFIG = """\
# Small enough to tell a story in a minute.
project: controls
data: {{path: {data}}}
model: {{d_model: 16, nhead: 2, num_layers: 1, dim_feedforward: 16}}
training: {{epochs: 4000, steps_per_epoch: 20, batch_size: 16, lr: 1e-3, warmup_epochs: 0, patience: 10}}
output: {{keep_epochs: 1}}
launch: {{threads: 1}}
"""


def write_config(folder: Path, data: Path) -> None:
    """The config that the launch screen finds first in `folder`."""
    (folder / "configs").mkdir()
    (folder / "configs" / "story.yaml").write_text(CONFIG.format(data=data))


class Person:
    """Does one thing after the other in a cockpit that is open in `terminal`; waits to see what each came to."""

    def __init__(self, terminal: Terminal, runs: Path) -> None:
        self.terminal, self.press = terminal, terminal.press
        self._runs = runs

    def see(self, pattern: str) -> re.Match[str]:
        """Wait for the pattern on the screen."""
        found: list[re.Match[str]] = []

        def there() -> bool:
            found[:] = re.finditer(pattern, self.terminal.screen())
            return bool(found)

        wait_for(f"{pattern} on the screen", there, self.terminal.screen)
        return found[0]

    # -- beginning and ending ----------------------------------------------------------------------------------------

    def start_from_a_form(self) -> RunDirectory:
        """The config in ./configs with a patience of 1000 where it says 10."""
        self.see("No runs yet")
        self.press("n")
        self.see(r"story\.yaml")
        self.press("Enter")
        self.see("no changes\n")
        self.press("/")
        self.see("filter: words")
        self.press("patience", "Enter")
        self.see("Epochs without")
        self.see("⏎ edit")
        self.press("Enter")
        self.see("⏎ accept")
        self.press("1000")  # it ends when it is stopped, however slow the person is
        self.see("patience +1000 ")
        self.press("Enter")
        self.see("--set training.patience=1000")
        self.see("1 changed\n")
        self.press("g")
        run = self._new_run(1)
        self.see(r"step [\d,]+ +loss")
        return run

    def _new_run(self, count: int) -> RunDirectory:
        """The newest of `count` trainings, once its screen is shown and it trains."""
        wait_for(f"run {count}", lambda: len(list_runs(self._runs)) == count, self.terminal.screen)
        run = max(list_runs(self._runs), key=lambda one: one.info.created)
        self.see(rf"◢ \S*{run.path.name.rpartition('-')[2]} .*● running")  # its date goes where the line is full
        return run

    def stop(self) -> None:
        self.press("s")
        self.see("no processes left")
        self.see("■ stopped")

    def resume(self, *, patience: int) -> None:
        self.press("r")
        self.see(r"patience 1000 ")
        before = self._patience_field()
        self.press("Tab")
        wait_for("the cursor in the field", lambda: self._patience_field() != before, self.terminal.screen)
        self.press(str(patience))
        self.see(rf"training\.patience +1000 → {patience} +✓ applied")
        self.press("Enter")

    def _patience_field(self) -> str:
        """With its colours, by which a person sees where the cursor is."""
        found = re.search(r"epochs.*(patience.*?lr)", self.terminal.screen(colours=True))
        return found[1] if found else ""

    def fork(self, *, epoch: int) -> RunDirectory:
        """From the end of one of the first epochs, the last in the list of checkpoints."""
        self.press("f")
        self.see(r"epoch \d+ +step +\d+ +score [\d.]+ +[\d.]+ [kM]B")  # a row of the list: the log has such lines too
        self.press("End", *["Up"] * (epoch - 1), "Enter")
        return self._new_run(2)

    def open(self, run: RunDirectory, *, place: int) -> None:
        """From the screen of another run, through the list, where so many are above it."""
        self.press("Escape")
        self.see("2 runs")
        self.press("Home", *["Down"] * place)
        self.see(rf">.* {run.path.name.rpartition('-')[2]} ")
        self.press("Enter")
        self.see(f"◢ {run.path.name}")

    def leave(self) -> None:
        """Back to the shell and its prompt."""
        self.press("q")
        self.see(r"\n[#$]\s*$")

    # -- steering ----------------------------------------------------------------------------------------------------

    def change_weights(self, **weights: float) -> int:
        """Of heads in the order in which they stand, none of them the first; the step they are applied at."""
        self.press("w")
        self.see("no changes")
        self.see(rf"│ . {list(weights)[-1]} +[\d.]+ +[\d.]+ ")
        heads = re.findall(r"│ . (\w+) +[\d.]+ +[\d.]+ ", self.terminal.screen())
        at = 0
        for head, weight in weights.items():
            self.press(*["Down"] * (heads.index(head) - at))
            at = heads.index(head)
            self.see(f"{head} .*‹")
            self.press(f"{weight:g}")
            self.see(f"{weight:g}_›")
        self.press("Enter")
        said = ", ".join(f"{head} {weight:g}" for head, weight in weights.items())
        return self._applied(said)

    def change_rate(self, factor: float) -> int:
        """The step it is applied at."""
        self.press("l")
        self.see("Learning rate × +1 ")
        self.press(f"{factor:g}")
        self.see(f"{factor:g}_›")
        self.press("Enter")
        return self._applied(f"learning rate × {factor:g}")

    def _applied(self, what: str) -> int:
        step = self._step(f"{what}: applied")
        self.press("Escape")
        self.see("Overview +Table")
        return step

    def _step(self, what: str) -> int:
        return int(self.see(rf"{what} at step ([\d,]+)")[1].replace(",", ""))

    def pause_and_continue(self) -> tuple[int, int]:
        """The steps they are applied at."""
        self.press("p")
        paused = self._step("pause applied")
        self.see("‖ paused")
        self.press("p")
        continued = self._step("continue applied")
        self.see("● running")
        return paused, continued

    # -- reading -----------------------------------------------------------------------------------------------------

    def rows(self, newest: int) -> dict[int, list[str]]:
        """The whole table, in a terminal that has room for it: of each epoch its cells, but for the weights' letter."""
        self.press("2")
        self.see(r"│[ ★]*1 [ a-z]*\d+\.\d")
        self.see(rf"│[ ★]*{newest} [ a-z]*\d+\.\d")
        return dict(_rows(self.terminal.screen()))

    def raise_a_threshold_and_save(self) -> float:
        """The first control's, by a coarse step; the new one."""
        self.see("t thresholds")
        self.press("t")
        self.see("as saved")
        self.press("]")
        new = self.see(r"> \* move_forward +([\d.]+) ")[1]
        self.press("S")
        self.see(rf"move_forward +[\d.]+ → {new} ")
        self.see("save to")
        self.press("Enter")
        self.see("saved as reviewed")
        self.press("Escape")
        self.see("Overview +Table")
        return float(new)


def _rows(screen: str) -> Iterator[tuple[int, list[str]]]:
    for line in screen.splitlines():
        cells = [cell for cell in line.strip("│╭╰ ★").split() if not cell.isalpha()]
        if len(cells) > 6 and cells[0].isdigit() and "." in cells[1]:
            yield int(cells[0]), cells


# -- what the files say ----------------------------------------------------------------------------------------------


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def answers(run: RunDirectory, kind: str) -> list[tuple[str, int]]:
    """State and step of each answer to commands of one kind."""
    events = [event for event in lines_of(run.events) if event["type"] == "command"]
    return [(event["state"], event["step"]) for event in events if event["command"]["type"] == kind]


def logged(run: RunDirectory, column: str) -> dict[int, float]:
    """Values of a column by their steps; a head has none where a batch has nothing for it."""
    steps, values = read_series(run.steps, column)
    return dict(zip(steps.tolist(), values.tolist(), strict=True))
