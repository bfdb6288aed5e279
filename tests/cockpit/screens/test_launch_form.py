"""The form of a run to start: edited, checked, saved, started, and never more than once."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from cockpit.app import CockpitApp
from cockpit.core.config import configs
from cockpit.core.engine_question import GivenUp
from cockpit.core.launch.form import open_form
from cockpit.screens.launch import LaunchScreen
from cockpit.screens.launch_form import LaunchFormScreen
from cockpit.screens.launch_words import about_start
from cockpit.screens.run import RunScreen
from cockpit.widgets import check_pane
from cockpit.widgets.field_editor import FieldEditor
from cockpit.widgets.form_view import FormView
from engines.basics.errors import UserError
from engines.contract.config import load_config
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from tests.cockpit.driving import PATIENCE, keys, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
CONFIG = """\
# A walk
project: controls
data:
  path: recordings   # sessions
training:
  epochs: 4
  lr: 1e-3
cost:
  usd_per_hour: 2.5
"""
FOUND = {
    "config": "x", "project": "controls", "device": "cpu", "faults": [], "exit_code": 0,
    "parameters": {"total": 157_085, "trainable": 157_085}, "steps": {"per_epoch": 200, "epochs": 4, "total": 800},
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only config there is."""
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "walk.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(configs, "SHIPPED", tmp_path / "none")
    return folder / "walk.yaml"


class FakeQuestion:
    """Stands in for the engine: says what the test puts in."""

    asked: list[list[str]] = []
    found: Mapping[str, Any] = FOUND
    cancelled = threading.Event()
    go_on = threading.Event()

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        assert module == "engines.check"
        self.asked.append(list(arguments))

    def answer(self, progress: Callable[[str], object]) -> Mapping[str, Any]:
        progress("try: 120 steps")
        assert self.go_on.wait(PATIENCE)
        if self.cancelled.is_set():
            raise GivenUp
        return self.found

    def cancel(self) -> None:
        self.cancelled.set()
        self.go_on.set()


@pytest.fixture
def question(monkeypatch: pytest.MonkeyPatch) -> type[FakeQuestion]:
    class Question(FakeQuestion):
        asked: list[list[str]] = []
        cancelled = threading.Event()
        go_on = threading.Event()

    monkeypatch.setattr(check_pane, "EngineQuestion", Question)
    return Question


async def opened(pilot: Pilot[None]) -> None:
    """The form of the only config is there and its settings are known to be right."""
    await pilot.press("n")
    await until(pilot, lambda: "A walk" in text(pilot))
    await pilot.press("enter")
    await until(pilot, lambda: "no changes" in text(pilot) and keys(pilot).get("start"))


async def go_to(pilot: Pilot[None], name: str) -> None:
    """Put the cursor on a field by filtering for it."""
    await pilot.press("slash")
    pilot.app.screen.query_one("#filter", Input).value = name
    await pilot.press("enter")
    await until(pilot, lambda: f"{name}   " in text(pilot))


async def test_a_value_is_edited_shown_in_the_command_reset_and_undone(cockpit: Make, config: Path) -> None:
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await go_to(pilot, "training.lr")
        assert "Peak learning rate." in text(pilot)
        await pilot.press("enter", "ctrl+u", *"5e-4", "enter")
        await until(pilot, lambda: "--set training.lr=5e-4" in text(pilot))
        assert "was 0.001" in text(pilot)
        await pilot.press("y")
        assert pilot.app.clipboard == "cockpit train configs/walk.yaml --set training.lr=5e-4"
        await pilot.press("enter", "9", "escape")  # left as it was
        await until(pilot, lambda: "1 changed" in text(pilot))
        assert "5e-49" not in text(pilot)
        await pilot.press("backspace")
        await until(pilot, lambda: "--set" not in text(pilot))
        await pilot.press("u")
        await until(pilot, lambda: "--set training.lr=5e-4" in text(pilot))


async def test_choices_switches_and_devices_are_stepped_through(cockpit: Make, config: Path) -> None:
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await go_to(pilot, "training.amp")
        await pilot.press("left")
        await until(pilot, lambda: "--set training.amp=fp16" in text(pilot))
        await pilot.press("right", "escape")  # once round, and out of the filter
        await until(pilot, lambda: "no changes" in text(pilot))
        await go_to(pilot, "training.compile")
        await pilot.press("space", "escape")
        await until(pilot, lambda: "--set training.compile=true" in text(pilot))
        await go_to(pilot, "launch.device")
        await until(pilot, lambda: "NVIDIA H100" in text(pilot))
        await pilot.press("right")
        await until(pilot, lambda: "--set launch.device=cpu" in text(pilot))


def chose(pilot: Pilot[None], amp: str) -> bool:
    return f"--set training.amp={amp}" in text(pilot)


@pytest.mark.behaviour("typing-replaces-a-number")
async def test_typing_replaces_a_number_and_is_a_search_in_a_choice(cockpit: Make, config: Path) -> None:
    """No letter of a search runs a command, and a cursor key keeps what is there."""
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await go_to(pilot, "training.epochs")
        await pilot.press("escape", "enter", "4", "0", "enter")
        await until(pilot, lambda: "--set training.epochs=40" in text(pilot))
        await pilot.press("enter", "end", "1", "enter")
        await until(pilot, lambda: "--set training.epochs=401" in text(pilot))
        await go_to(pilot, "training.amp")
        for typed, chosen in (("bf", "bf16"), ("P", "fp16"), ("abc", "abc"), ("ff", "off")):
            await pilot.press("enter", *typed, "enter")
            await until(pilot, partial(chose, pilot, chosen))
        assert isinstance(pilot.app.screen, LaunchFormScreen)


async def test_up_and_down_go_on_from_the_editor_and_over_headings(cockpit: Make, config: Path) -> None:
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await go_to(pilot, "training.epochs")
        await pilot.press("escape", "enter", "end", "0", "down", "enter", "end", "1", "enter")
        await until(pilot, lambda: "2 changed" in text(pilot))
        assert "--set training.epochs=40 --set training.batch_size=641" in text(pilot)
        await pilot.press("enter", "end", "2")
        for _ in range(3):  # faster than the focus moves on
            pilot.app.screen.query_one(FieldEditor).action_accept(1)
        await until(pilot, lambda: "training.batch_size=6412" in text(pilot))
        assert "2 changed" in text(pilot)
        await pilot.press("up", "up", "up")
        await until(pilot, lambda: "loss_weights.idle   number ≥ 0" in text(pilot))
        await pilot.press("end")
        await until(pilot, lambda: "post_processing.kinds.inv_shift_held" in text(pilot))


async def test_lists_are_edited_as_yaml(cockpit: Make, config: Path) -> None:
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await go_to(pilot, "training.stages")
        await pilot.press("enter")
        await until(pilot, lambda: "list of sections" in text(pilot) and "ctrl+s" in text(pilot))
        pilot.app.screen.query_one(TextArea).text = "- [a"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "✖ line" in text(pilot))
        pilot.app.screen.query_one(TextArea).text = "- name: all\n  epochs: 2\n"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "training.stages=[{name: all, epochs: 2}]" in text(pilot))
        assert keys(pilot)["start"]
        await pilot.press("enter", "x", "escape")
        await until(pilot, lambda: "1 changed" in text(pilot))


@pytest.fixture
def faulty(config: Path) -> None:
    config.write_text(CONFIG.replace("epochs: 4", "epochz: 4"))


@pytest.mark.behaviour("greyed-keys-say-why")
async def test_every_fault_is_at_its_field_in_the_words_of_the_file(cockpit: Make, faulty: None) -> None:
    async with cockpit().run_test(size=(140, 40), notifications=True) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "A walk" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "did you mean 'epochs'?" in text(pilot))  # a key without a field
        assert not keys(pilot)["start"]
        await pilot.press("g")  # greyed: says why
        await until(pilot, lambda: "Cannot start: configs/walk.yaml" in " ".join(text(pilot).split()))
        await go_to(pilot, "model.d_model")
        await pilot.press("enter", "ctrl+u", "9", "enter", "escape")
        await until(pilot, lambda: "must be a multiple of nhead" in text(pilot))
        await go_to(pilot, "training.lr")
        await pilot.press("enter", "end", "x", "enter", "escape", "home", "f")
        await until(pilot, lambda: "✖ 3 errors" in text(pilot))
        await pilot.press("home", "g")  # and shows where
        field = pilot.app.screen.query_one(FormView).field
        assert field is not None
        assert field.name == "training.lr"
        with pytest.raises(UserError) as caught:
            load_config(Path("configs/walk.yaml"), ["model.d_model=9", "training.lr=0.001x"])
        shown = " ".join(text(pilot).replace("│", " ").split())
        (about_rate,) = (line for line in str(caught.value).splitlines() if "training.lr: " in line)
        await until(pilot, lambda: "✖ --set training.lr=0.001x:" in text(pilot))
        shown = " ".join(text(pilot).replace("│", " ").split())
        assert "input should be a valid number" in shown
        assert about_rate.startswith("--set training.lr=0.001x: training.lr: input should be a valid number")


async def test_a_check_is_shown_out_of_date_after_a_change_and_given_up(
    cockpit: Make, config: Path, question: type[FakeQuestion]
) -> None:
    async with cockpit().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        question.go_on.set()
        await pilot.press("c")
        await until(pilot, lambda: "157,085" in text(pilot))
        assert "✔ OK" in text(pilot)
        assert question.asked == [["configs/walk.yaml"]]
        await go_to(pilot, "training.seed")
        await pilot.press("enter", "end", "1", "enter")
        await until(pilot, lambda: "out of date" in text(pilot))
        question.go_on.clear()
        await pilot.press("t")
        await until(pilot, lambda: "try: 120 steps" in text(pilot))
        assert question.asked[1] == ["configs/walk.yaml", "--set", "training.seed=421", "--try"]
        assert not keys(pilot)["check"]
        await pilot.press("x")
        await until(pilot, lambda: "cancelled" in text(pilot))
        assert question.cancelled.is_set()
        assert keys(pilot)["check"]


async def test_faults_of_a_check_are_listed_and_leaving_gives_one_up(
    cockpit: Make, config: Path, question: type[FakeQuestion]
) -> None:
    question.found = FOUND | {"faults": ["recordings: no such [folder]"], "exit_code": 1}
    question.go_on.set()
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await pilot.press("c")
        await until(pilot, lambda: "✖ recordings: no such [folder]" in text(pilot))
        question.go_on.clear()
        await pilot.press("c")
        await until(pilot, lambda: "try: 120 steps" in text(pilot))
        await pilot.press("escape")
        await until(pilot, question.cancelled.is_set)
        assert isinstance(pilot.app.screen, LaunchScreen)


async def test_a_run_is_started_once_and_shown(
    cockpit: Make, config: Path, fake: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Path, list[str], str]] = []
    go_on = threading.Event()

    def prepare(path: Path, overrides: list[str], *, label: str) -> RunDirectory:
        asked.append((path, overrides, label))
        assert go_on.wait(PATIENCE)
        return fake.run

    monkeypatch.setattr(launch, "prepare_training", prepare)
    monkeypatch.setattr(launch, "start", lambda run: fake.begin().started())
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        assert "$2.50/h" in text(pilot)
        await pilot.press("home", "enter", *"my walk", "enter")
        await until(pilot, lambda: "--name 'my walk'" in text(pilot) and keys(pilot)["start"])
        await pilot.press("w", "w", "g", "escape")
        await until(pilot, lambda: "starting …" in text(pilot) and asked)
        go_on.set()
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "amber" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "Spent" in text(pilot))
    assert asked == [(Path("configs/walk.yaml"), ["launch.queue=true"], "my walk")]


async def test_a_refused_start_stays_in_the_form_with_nothing_lost(
    cockpit: Make, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(path: Path, overrides: list[str], *, label: str) -> RunDirectory:
        raise UserError("The output directory is occupied.")

    monkeypatch.setattr(launch, "prepare_training", prepare)
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await pilot.press("home", "enter", *"mine", "enter")
        await until(pilot, lambda: keys(pilot)["start"] and "--name mine" in text(pilot))
        await pilot.press("g")
        await until(pilot, lambda: "The output directory is occupied." in text(pilot) and keys(pilot)["start"])
        assert "--name mine" in text(pilot)
        assert isinstance(pilot.app.screen, LaunchFormScreen)


async def test_settings_are_saved_as_a_new_file_and_none_is_replaced_unasked(cockpit: Make, config: Path) -> None:
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await go_to(pilot, "training.epochs")
        await pilot.press("enter", "end", "0", "enter")
        await until(pilot, lambda: "1 changed" in text(pilot))
        await pilot.press("a", "ctrl+u", *"configs/walk", "enter")
        await until(pilot, lambda: "already exists" in text(pilot))
        assert load_config(config).settings.training.epochs == 4
        await pilot.press(*" to work", "enter")
        await until(pilot, lambda: "walk to work.yaml" in text(pilot) and "no changes" in text(pilot))
        saved = config.with_name("walk to work.yaml")
        assert load_config(saved).settings.training.epochs == 40
        await pilot.press("escape", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and "walk to work" in text(pilot))


def test_a_command_at_the_end_is_said_beside_the_start(config: Path) -> None:
    form = open_form(config)
    field = next(field for field in form.fields if field.name == "cost.on_finish")
    assert "then runs" not in about_start(form, (), None, None).plain
    form.set(field, "[stop-pod, 'my pod']")
    assert "then runs stop-pod 'my pod'" in about_start(form, (), None, None).plain


async def test_leaving_asks_where_changes_would_be_lost(cockpit: Make, config: Path) -> None:
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await go_to(pilot, "training.epochs")
        await pilot.press("enter", "end", "0", "enter", "escape", "escape")
        await until(pilot, lambda: "1 change not saved" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "--set training.epochs=40" in text(pilot))
        await pilot.press("escape", "d")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))


async def test_a_busy_device_is_named(cockpit: Make, config: Path, fake: FakeRun) -> None:
    fake.begin().started()  # on the CPU
    with fake.locked():
        async with cockpit().run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: "amber" in text(pilot))
            await opened(pilot)
            await go_to(pilot, "launch.device")
            await until(pilot, lambda: "NVIDIA H100" in text(pilot))
            assert "busy" not in text(pilot).splitlines()[-2]
            await pilot.press("right")
            await until(pilot, lambda: f"cpu is busy with {fake.run.path.name}" in text(pilot))


async def test_fields_are_chosen_with_the_mouse(cockpit: Make, config: Path) -> None:
    async with cockpit().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        row = next(y for y, line in enumerate(text(pilot).splitlines()) if "val_fraction" in line)
        await pilot.click(offset=(10, row))
        await until(pilot, lambda: "data.val_fraction   number" in text(pilot))
        await pilot.click(offset=(10, row))
        await pilot.press("end", "5", "enter")
        await until(pilot, lambda: "--set data.val_fraction=0.25" in text(pilot))
