"""Learning rate and end of a run: scaled, lengthened, ended early; said beforehand, and followed to its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from textual import on
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget

from cockpit.core.plot.axis import extent
from cockpit.core.plot.frame import View
from cockpit.core.plot.groups import RUN_ROLES
from cockpit.core.plot.lines import Look, Member
from cockpit.core.series import Floats, Series
from cockpit.core.steering.course import SETTINGS, Course, Row, Setting
from cockpit.core.steering.lr_plan import planned
from cockpit.screens.followed import FollowedRunScreen
from cockpit.screens.unapplied import Changes
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.course_view import CourseView
from cockpit.widgets.metric_chart import Drawing, MetricChart
from cockpit.widgets.steady import Steady
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory

ORDERS = (cmd.SetLrScale, cmd.SetEpochs, cmd.SetPatience, cmd.StopEarly, cmd.Evaluate, cmd.SaveCheckpoint)
LAST_ORDERS = 2
Wish = tuple[Row, dict[Setting, float]]
CURVES = ("so far", "plan", "new")


class CourseScreen(FollowedRunScreen):
    CSS_PATH = "course.tcss"
    BINDINGS = [
        Binding("enter", "do", "apply", id="course.do", tooltip="Apply it; ending the run asks twice"),
        FollowedRunScreen.BACK,
    ]

    CHANGING = ("do",)

    def __init__(self, run: RunDirectory, clock: Callable[[], float]) -> None:
        super().__init__(run, clock)
        self._training: Mapping[str, Any] = {}
        self._asked: Wish | None = None
        """What would end the run and has been asked for once."""

    def body(self) -> Iterator[Widget]:
        yield CourseView()
        about = Steady(id="about", classes="pane", markup=False)
        about.border_title = "What enter does"
        yield about
        chart = MetricChart("Rate by epoch", id="plan")
        chart.can_focus = False
        yield chart

    @property
    def view(self) -> CourseView:
        return self.query_one(CourseView)

    def begin(self, config: Mapping[str, Any]) -> None:
        training = config.get("training")
        self._training = training if isinstance(training, Mapping) else {}
        self.view.course = Course.of(self._training)
        self.view.focus()
        self.view.redraw()

    @property
    def _wish(self) -> Wish:
        """What enter asks for now."""
        return self.view.row, dict(self.view.meant.new)

    # -- showing ---------------------------------------------------------------------------------------------------

    def show(self) -> None:
        course = self.view.course
        before = dict(course.now)
        course.in_force(self.model.history)
        if course.now != before:
            self.view.redraw()
        self._show_about()
        self._show_plan()
        self.refresh_keys()

    def _show_about(self) -> None:
        says = self.view.meant.says(self.view.row, self.model)
        if self._asked == self._wish:
            says += " Press enter again to confirm."
        last = [self.orders.told(one, cmd.describe(one.command)) for one in self.orders.known(*ORDERS)[:LAST_ORDERS]]
        self.query_one("#about", Steady).update(Content("\n").join([Content(says), *last]))

    def _show_plan(self) -> None:
        """The rate so far, what is planned, and, where the person has changed something, what would be."""
        course, started = self.view.meant, self.model.history.started
        curves = [self.curves.series.get("lr")]
        if started is not None and course.peak and "epochs" in course.now:
            steps = started.steps_per_epoch
            done = self.model.step / steps if steps else 0.0
            plans = [course.now, course.new] if course.now != course.new else [course.now]
            for index, plan in enumerate(plans):
                rates = planned(
                    self._training, int(plan["epochs"]), steps, scale=plan["rate"], from_epoch=done
                )  # fmt: skip
                curves.append(_curve(str(index), rates))
        members: list[Member] = [(role, one) for role, one in zip(RUN_ROLES, curves, strict=False) if one is not None]
        _, end = extent([one for _, one in members], "epoch")
        view, glyphs = View("epoch", 0.0, max(end, 1.0)), glyphs_of(self.app)
        about = "  ".join(f"{sign} {name}" for sign, name in zip(glyphs.runs, CURVES, strict=False))
        self.query_one(MetricChart).show(members, Drawing(Look(axis="epoch"), view, glyphs=glyphs, about=about))

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do":
            return self.orders.can or None
        return True

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        return self.orders.why_not if action == "do" else ""

    @on(CourseView.Changed)
    def _changed(self) -> None:
        if self._asked != self._wish:
            self._asked = None
        self._show_about()
        self._show_plan()

    @on(CourseView.Told)
    def _tell(self, message: CourseView.Told) -> None:
        self.notify(message.sentence, severity="warning", markup=False)

    def action_do(self) -> None:
        view = self.view
        if not view.take_typed() or (command := view.course.command(view.row, self.orders.attempt)) is None:
            return
        if view.course.ends_run(view.row, self.model) and self._asked != self._wish:
            self._asked = self._wish
        else:
            self._asked = None
            self.orders.give(command)
        self._show_about()

    def action_back(self) -> None:
        if self.view.typed:
            self.view.action_undo()
        else:
            super().action_back()

    def _left(self) -> list[cmd.Command]:
        """Orders for the changed settings, but for what was asked for from here already."""
        wanted = (self.view.course.command(row, self.orders.attempt) for row in SETTINGS)
        asked = {
            type(one): cmd.describe(one) for one in self.orders.given(cmd.SetLrScale, cmd.SetEpochs, cmd.SetPatience)
        }
        return [one for one in wanted if one is not None and asked.get(type(one)) != cmd.describe(one)]

    def unapplied(self) -> Changes | None:
        if not (left := self._left()):
            return None
        words = ", ".join(cmd.describe(command) for command in left)
        return Changes(words[0].upper() + words[1:], "apply from the next step, then close", self.orders.why_not)

    def apply(self) -> None:
        for command in self._left():
            self.orders.give(command)


def _curve(name: str, plan: tuple[Floats, Floats]) -> Series:
    places, rates = plan
    unknown = np.full(len(places), np.nan)
    return Series(name, unknown, places, unknown, rates)
