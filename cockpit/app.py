"""The cockpit: one app, its screens, and the keys that work everywhere."""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.actions import ActionParseResult
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.worker import get_current_worker

from cockpit.core import failures
from cockpit.core.hosts.links import close_links, open_links
from cockpit.core.settings import SettingsFile, settings_path
from cockpit.core.text import plain
from cockpit.hang_up import end_with_the_terminal, leave_on_signals
from cockpit.screens.help import HelpScreen
from cockpit.screens.runs import RunsScreen
from cockpit.screens.steering import Steering
from cockpit.terminal_app import TerminalApp
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader
from engines.runs.store import runs_folder

if TYPE_CHECKING:
    from cockpit.core.foreign.logs import Logs
    from cockpit.core.launch.demo import Demo
    from cockpit.core.scenes.play import Viewing
    from cockpit.screens.compare import CompareScreen
    from cockpit.screens.launch import LaunchScreen
    from cockpit.screens.launch_form import LaunchFormScreen
    from cockpit.screens.run import RunScreen
    from engines.host.machine import Machine

DEMO_POLL_SECONDS = 0.2
REFUSAL_SECONDS = 30
"""How long the sentence stays that says why something failed to open."""
RUNS = "runs"
LATER_SECONDS = 1.0
"""After the first picture, so that loading does not hold up the rows of the next ones; the user is still reading."""
LATER = ("run", "launch", "launch_form", "play", "compare")
"""Modules of the screens that nobody sees first: loaded once the first screen is painted, which is there the sooner.
So their messages are caught by the names that Textual gives handlers, not by class."""


class CockpitApp(TerminalApp):
    """Shows runs and steers them. Leaving it changes nothing for them."""

    TITLE = "cockpit"
    CSS_PATH = "app.tcss"
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS = [
        Binding("question_mark", "help", "help", id="cockpit.help", tooltip="The keys of this screen"),
        Binding(
            "ctrl+p", "command_palette", "commands", id="cockpit.palette", tooltip="Search all commands", priority=True
        ),
        Binding("q", "leave", "quit", id="cockpit.leave", tooltip="Quit the cockpit; runs keep running"),
        Binding("ctrl+q,ctrl+c", "leave", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        *,
        folder: Path | None = None,
        open_run: RunDirectory | None = None,
        demo: Demo | None = None,
        play: Viewing | None = None,
        watch: Logs | None = None,
        compare: Sequence[RunDirectory] = (),
        ascii_only: bool = False,
        machine: Machine | None = None,
        settings: SettingsFile | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(settings or SettingsFile(settings_path()), ascii_only=ascii_only)
        # Installed, so that it lives on while another screen takes its place. Not stacked under that: what a screen in
        # the background changes, however little, paints the one above it whole (45 KB/s where 3 are enough).
        self._folder = folder or runs_folder()
        self._wrong_hosts = self._connect() if watch is None else ""  # whoever watches logs sees no runs
        self._runs = RunsScreen(self._folder, clock, self.settings)
        self.install_screen(self._runs, RUNS)
        self._open_first = open_run
        self._demo = demo
        self._play_first = play
        self._watch_first = watch
        self._compare_first = compare
        self._played: RunDirectory | None = None
        """The run whose screen the play screen was opened from."""
        self._given_machine = machine
        self._left = False
        if not any((open_run, demo, play, watch, compare)):
            self.hold_keys()
        self._clock = clock

    def _connect(self) -> str:
        """Connect to the machines in the settings; a sentence where an entry is none."""
        if not (written := self.settings.value.hosts):
            return ""
        from cockpit.core.hosts.address import Host

        try:
            open_links([Host.parse(one) for one in written])
        except (UserError, OSError) as error:
            return f"{self.settings.path}: {failures.sentence(error)}"
        return ""

    def on_unmount(self) -> None:
        close_links()

    def on_mount(self) -> None:
        self.push_screen(RUNS)
        if self._wrong_hosts:
            self._refuse(self._wrong_hosts)
        if self._open_first is not None:
            self.open_run(self._open_first)
        if self._demo is not None:
            self._play_demo(self._demo)
        if self._play_first is not None:
            self._show_play(self._play_first)
        if self._watch_first is not None:
            self._show_logs(self._watch_first)
        if self._compare_first:
            self._show_sweep(self._compare_first)
        load = partial(self.run_worker, _load_screens, thread=True, group="load")
        self.call_after_refresh(self.set_timer, LATER_SECONDS, load)

    @cached_property
    def machine(self) -> Machine:
        """Opened when a screen first asks for it: the list of runs does not wait for a driver."""
        from engines.host.machine import LocalMachine

        return self._given_machine or LocalMachine()

    # -- screens ---------------------------------------------------------------------------------------------------

    def open_run(self, run: RunDirectory) -> None:
        """Show a run in place of what is shown now."""
        while isinstance(self.screen, ModalScreen):
            self.pop_screen()
        from cockpit.screens.run import RunScreen

        self.switch_screen(RunScreen(run, self.machine, self._clock, self.settings))

    def show_runs(self) -> None:
        self.switch_screen(RUNS)

    def on_run_screen_back(self) -> None:
        self.show_runs()

    def on_run_screen_play(self, message: RunScreen.Play) -> None:
        """Start a play engine from the run's screen, and show it there unless the person has gone elsewhere."""
        from cockpit.core.scenes.play import open_play

        def start() -> None:
            self.call_from_thread(self._show_play, open_play(message.run), message.run)

        self._in_thread(start, "play")

    def _in_thread(self, work: Callable[[], object], group: str) -> None:
        """In place of what the group still does; a failure becomes a sentence."""
        guarded = failures.told(work, lambda sentence: self.call_from_thread(self._refuse, sentence))
        self.run_worker(guarded, thread=True, group=group, exclusive=True)

    def _refuse(self, sentence: str) -> None:
        self.notify(plain(sentence), severity="error", timeout=REFUSAL_SECONDS, markup=False)

    def _show_play(self, viewing: Viewing, played: RunDirectory | None = None) -> None:
        from cockpit.screens.play import PlayScreen

        self._played = played
        self.switch_screen(PlayScreen(viewing))

    def on_run_screen_steer(self, message: RunScreen.Steer) -> None:
        """Above the run's own screen, which is as it was when the person comes back."""
        from cockpit.screens.course import CourseScreen
        from cockpit.screens.weights import WeightsScreen

        if message.what == "weights":
            self.push_screen(WeightsScreen(message.run, self._clock, self.settings))
        else:
            self.push_screen(CourseScreen(message.run, self._clock))

    def on_play_screen_back(self) -> None:
        if self._played is None:
            self.show_runs()
        else:
            self.open_run(self._played)

    def on_run_screen_thresholds(self, message: RunScreen.Thresholds) -> None:
        from cockpit.screens.thresholds import ThresholdsScreen

        self.push_screen(ThresholdsScreen(message.run, self._clock))

    @on(Steering.Forked)
    def _show_fork(self, message: Steering.Forked) -> None:
        self.open_run(message.run)

    @on(RunsScreen.Filled)
    def _runs_are_there(self) -> None:
        self.release_keys()

    @on(RunsScreen.Open)
    def _open(self, message: RunsScreen.Open) -> None:
        self.open_run(message.run)

    @on(RunsScreen.Compare)
    def _compare(self, message: RunsScreen.Compare) -> None:
        from cockpit.screens.compare import CompareScreen

        self.switch_screen(CompareScreen(message.runs, self._runs.fleet, self.settings, self._clock))

    def _show_sweep(self, runs: Sequence[RunDirectory]) -> None:
        """Runs that belong together, side by side; one alone as it is."""
        if len(runs) == 1:
            self.open_run(runs[0])
        else:
            self._compare(RunsScreen.Compare(tuple(runs)))

    def on_run_screen_compare(self, message: RunScreen.Compare) -> None:
        from cockpit.screens.choose_runs import ChooseRunsScreen

        def show(others: tuple[RunDirectory, ...] | None) -> None:
            if others:
                self._compare(RunsScreen.Compare((message.run, *others)))

        self.push_screen(ChooseRunsScreen(self._folder, message.run), show)

    def on_compare_screen_back(self) -> None:
        self.show_runs()

    def on_compare_screen_open(self, message: CompareScreen.Open) -> None:
        self.open_run(message.run)

    @on(RunsScreen.New)
    def _choose_config(self) -> None:
        from cockpit.screens.launch import LaunchScreen

        self.switch_screen(LaunchScreen())

    def on_launch_form_screen_back(self) -> None:  # apart: what `on` decorates is not called by its name too
        self._choose_config()

    def on_launch_screen_back(self) -> None:
        self.show_runs()

    def on_launch_screen_opened(self, message: LaunchScreen.Opened) -> None:
        from cockpit.screens.launch_form import LaunchFormScreen

        self.switch_screen(LaunchFormScreen(message.form, self.machine, self._folder))

    def on_launch_form_screen_started(self, message: LaunchFormScreen.Started) -> None:
        self.open_run(message.run)

    def _show_logs(self, logs: Logs) -> None:
        """Charts of what other programs write; there is nothing to go back to."""
        from cockpit.screens.watch import WatchScreen

        self.switch_screen(WatchScreen(logs))

    def action_help(self) -> None:
        if not isinstance(self.screen, ModalScreen):
            self.push_screen(HelpScreen(self.screen, self.settings.path))

    def action_leave(self) -> None:
        self._left = True
        self.exit()

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Nothing more once the person has left: keys that follow while screens close are typed for the shell."""
        return not self._left and await super().run_action(action, default_namespace, namespaces)

    # -- the demo --------------------------------------------------------------------------------------------------

    def _play_demo(self, demo: Demo) -> None:
        """Show the making of its data, if any is to be made, then its training."""
        self._in_thread(partial(self._make_and_train, demo), "demo")

    def _make_and_train(self, demo: Demo) -> None:
        """Runs in a worker's thread; ends early when the cockpit is left."""
        making = demo.data_run()
        if making is not None:
            self.call_from_thread(self.open_run, making)
            reader, worker = RunReader(making), get_current_worker()
            while (status := reader.status()).live:
                if worker.is_cancelled:
                    return
                time.sleep(DEMO_POLL_SECONDS)
            if status.state != "finished":
                return  # its screen says why
        self.call_from_thread(self._show_training, demo.start(), making)

    def _show_training(self, run: RunDirectory, making: RunDirectory | None) -> None:
        """In place of the data's screen; a person who has gone elsewhere is only told."""
        from cockpit.screens.run import RunScreen

        showing = self.screen_stack[1]  # on the blank one that every app begins with
        if making is None or (isinstance(showing, RunScreen) and showing.run.path == making.path):
            self.open_run(run)
        else:
            self.notify("Demo data is ready; training has started.")


def _load_screens() -> None:
    for name in LATER:
        importlib.import_module(f"cockpit.screens.{name}")
    if not gc.isenabled():
        gc.freeze()  # what has been loaded stays: no collection needs to look at it
        gc.enable()


def run(
    demo: Demo | None = None,
    *,
    play: Viewing | None = None,
    watch: Logs | None = None,
    compare: Sequence[RunDirectory] = (),
    ascii_only: bool = False,
) -> int:
    """Show the cockpit until the person leaves and give the exit code.

    On top: the demo, what the play engine of `play` shows, the charts of `watch`, or the runs `compare` side by side.
    """
    end_with_the_terminal()
    app = CockpitApp(demo=demo, play=play, watch=watch, compare=compare, ascii_only=ascii_only)
    leave_on_signals(app)
    app.run()
    return app.return_code or 0
