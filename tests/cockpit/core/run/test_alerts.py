"""What to press and what to type about an alert."""

from __future__ import annotations

import re

import pytest

from cockpit import keys
from cockpit.app import CockpitApp
from cockpit.cli.arguments import parse
from cockpit.core.run.alerts import REMEDIES, sentence, typed
from engines.contract.alerts import LASTING
from engines.contract.events import Alert
from engines.contract.rundir import RunInfo

OURS, THEIRS = RunInfo(id="amber", project="a"), RunInfo(id="birch", project="b", engine="")


def test_every_lasting_alert_has_a_key_that_exists_and_commands_that_can_be_typed() -> None:
    known = {key.id for key in keys.catalogue(CockpitApp)}
    assert REMEDIES.keys() == LASTING
    for remedies in REMEDIES.values():
        assert remedies
        for remedy in remedies:
            assert remedy.binding in known
            if remedy.command:
                assert parse(remedy.command.format(run="last").replace(" N", " 9").split()).command


def test_keys_are_named_as_bound_and_only_those_that_can_be_used() -> None:
    alert = Alert(code="gradient", level="error", text="it \x1b[2Jexplodes")
    bound = {"run.rate": "f8", "run.stop": "s"}
    assert sentence(alert, lambda id: bound.get(id, "")) == "it explodes · f8 lower the learning rate · s stop it"
    assert sentence(alert, lambda id: "") == "it explodes"
    assert typed(alert, OURS) == "it \x1b[2Jexplodes (cockpit lr amber 0.5x or cockpit stop amber)"


def test_a_program_that_reports_itself_is_told_only_what_it_can_hear() -> None:
    """It knows nothing but a stop, as every command for it says."""
    for code in LASTING:
        told = typed(Alert(code=code, level="error", text="it"), THEIRS)
        assert set(re.findall(r"cockpit (\S+)", told)) <= {"stop", "delete"}
    assert typed(Alert(code="plateau", level="error", text="it"), THEIRS) == "it (cockpit stop birch)"
    assert typed(Alert(code="nonfinite", level="error", text="it"), THEIRS) == "it (cockpit stop birch)"


@pytest.mark.parametrize("alert", [
    Alert(code="stage", level="info", text="stage b begins"),
    Alert(code="gradient", level="info", text="back to normal", over=True),
])  # fmt: skip
def test_what_asks_for_nothing_says_so(alert: Alert) -> None:
    assert sentence(alert, lambda id: "x") == typed(alert, OURS) == alert.text
