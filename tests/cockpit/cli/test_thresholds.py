"""`cockpit thresholds` as a person types it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.thresholds.adapter import Titles
from projects.controls.sending import Rules
from projects.controls.thresholds import NAMES, ControlThresholds, sent_controls
from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_review import review_arrays, reviewed_run, sent_arrays

CONFIG = "control_config_v2.json"


@pytest.fixture
def exported(runs: Path) -> Path:
    """The exported config of the one run there is."""
    return reviewed_run(runs, review_arrays()).run.export / CONFIG


def test_every_control_is_shown_with_what_it_reaches(cockpit: Cockpit, exported: Path) -> None:
    answer = cockpit("thresholds", "last")
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = answer.stdout.splitlines()
    assert lines[0] == "best.pt: epoch 2, step 20"
    assert "Intervals: 1,000 resamples of 8 sessions." in lines
    rows = {line.split()[0]: line.split() for line in lines[3:19]}
    assert list(rows) == [*NAMES, "hotbar_min_confidence"]
    assert rows["sprint"][1] == rows["sprint"][2]
    assert "–" in rows["sprint"][4]
    assert lines[13].endswith("cannot tune: no positives; kept")
    assert lines[-4].split()[:2] == ["action", "F1"]
    assert not json.loads(exported.read_text())["thresholds_reviewed"]


def test_another_project_reads_its_own_words(cockpit: Cockpit, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlThresholds, "titles", Titles(heads="valves", group="plant", groups="plants"))
    said = cockpit("thresholds", "last", "--optimize").stdout
    lines = said.splitlines()
    assert (
        lines[1].split() == "head saved new best best, 95% CI nearly best gain F1 precision recall alarms n+ n−".split()
    )
    assert "Intervals: 1,000 resamples of 8 plants." in lines
    named = said.replace("idle accuracy", "")  # a total of this project's
    said = named + cockpit("thresholds", "last", "--set", "jmp=1", "--set", "x").stderr
    assert "there is no head 'jmp' (did you mean 'jump'?); valves: move_forward" in said
    assert "--set x: expected head=threshold, as in" in said
    assert not re.search(r"\b(controls?|idle|sessions?)\b", said)
    found = json.loads(cockpit("thresholds", "last", "--json").stdout)
    assert {"alarm_rate", "f1"} < found["heads"][0]["after"].keys()
    assert found["heads"][0]["interval"].keys() == {"low", "high", "groups", "resamples"}


def test_json_diff_and_save_tell_the_same(cockpit: Cockpit, exported: Path) -> None:
    shown = json.loads(cockpit("thresholds", "last", "--optimize", "--set", "jump=0.25", "--json").stdout)
    assert (shown["checkpoint"], shown["epoch"], shown["step"], shown["saved_to"]) == ("best.pt", 2, 20, None)
    controls: dict[str, dict[str, Any]] = {control["name"]: control for control in shown["heads"]}
    assert controls["jump"]["new"] == 0.25 != controls["jump"]["best"]
    for control in controls.values():  # by the rule: only what gains enough moves
        moves = control["best"] is not None and control["gain"] > control["least_gain"]
        if control["name"] != "jump":
            assert control["new"] == (control["best"] if moves else control["saved"])
    assert controls["swap_offhand"]["best"] is None
    assert (
        controls["sneak"]["nearly_best"]["low"] <= controls["sneak"]["best"] <= controls["sneak"]["nearly_best"]["high"]
    )
    assert controls["sneak"]["interval"]["low"] < controls["sneak"]["interval"]["high"]
    assert shown["totals"]["saved"].keys() == shown["totals"]["new"].keys()

    saved = cockpit("thresholds", "last", "--optimize", "--set", "jump=0.25", "--save")
    assert saved.returncode == 0
    assert f"saved as reviewed in {exported}" in saved.stderr
    changed = {name for name, control in controls.items() if control["new"] != control["saved"]}
    rows = saved.stdout.partition("\n\n")[0].splitlines()[3:]
    assert {line.split()[0] for line in rows} == changed
    config = json.loads(exported.read_text())
    assert config["thresholds_reviewed"] is True
    assert config["thresholds"]["action"] == [controls[name]["new"] for name in NAMES[:12]]
    assert "no threshold changes" in cockpit("thresholds", "last", "--diff").stdout


def test_what_is_sent_is_shown_beside_what_is_on(cockpit: Cockpit, runs: Path) -> None:
    arrays = sent_arrays()
    reviewed_run(runs, arrays)
    found = json.loads(cockpit("thresholds", "last", "--set", "jump=0.4", "--set", "sneak=0.4", "--json").stdout)
    controls: dict[str, dict[str, Any]] = {control["name"]: control for control in found["heads"]}
    values = np.array([controls[name]["new"] for name in NAMES])
    sent = sent_controls(arrays, Rules.of(0.05, 0.0, {}), values)
    on = arrays["scores"] >= values
    for name, which, decided in (("jump", "sent", sent), ("sneak", "sent", sent), ("sneak", "raw", on)):
        k = NAMES.index(name)
        yes, target = decided[:, k] & arrays["masks"][:, k], arrays["targets"][:, k] & arrays["masks"][:, k]
        expected = 2 * (yes & target).sum() / (yes.sum() + target.sum())
        assert controls[name][which]["f1"] == pytest.approx(expected), (name, which)
    assert controls["jump"]["raw"] is None, "a pulse has no margin: what is judged is raw"
    assert controls["jump"]["sent"]["f1"] < controls["jump"]["after"]["f1"]
    assert controls["hotbar_min_confidence"]["sent"] is None
    idle = arrays["idle"]
    assert found["totals"]["new"]["idle accuracy as sent"] == pytest.approx(1 - sent[idle, :12].any(axis=1).mean())
    assert found["totals"]["new"]["idle accuracy"] == pytest.approx(1 - on[idle, :12].any(axis=1).mean())
    header = cockpit("thresholds", "last").stdout.splitlines()[1]
    assert re.search(r"idle FP +raw F1 +sent F1 +sent idle FP +n\+", header)
    assert "new sent F1" in cockpit("thresholds", "last", "--set", "jump=0.4", "--diff").stdout


def test_how_many_controls_a_total_counts_is_said(cockpit: Cockpit, runs: Path) -> None:
    arrays = {**review_arrays(), "least_support": np.array(20)}
    reviewed_run(runs, arrays)
    positives = (arrays["targets"] & arrays["masks"]).sum(axis=0)
    actions, inventory = (f"{(some >= 20).sum()} of {len(some)}" for some in (positives[:12], positives[12:]))
    assert actions != "12 of 12"
    lines = {line[:12].strip(): line for line in cockpit("thresholds", "last").stdout.splitlines()[-6:]}
    assert lines["overall"].endswith("counted")
    assert lines["action F1"].endswith(actions)
    assert lines["inventory F1"].endswith(inventory)
    found = json.loads(cockpit("thresholds", "last", "--json").stdout)
    assert found["counted"] == {"action F1": actions, "inventory F1": inventory}
    enough = positives >= 20
    on = arrays["scores"] >= np.array([head["saved"] for head in found["heads"]][:15])
    yes = on & arrays["masks"]
    f1 = 2 * (yes & arrays["targets"]).sum(axis=0) / (yes.sum(axis=0) + positives)
    assert found["totals"]["saved"]["action F1"] == pytest.approx(f1[:12][enough[:12]].mean())


@pytest.mark.behaviour("equal-scores-throughout-said")
def test_mistakes_are_sentences_and_save_nothing(cockpit: Cockpit, exported: Path) -> None:
    before = exported.read_bytes()
    faults = ("--set", "jmp=0.4", "--set", "sprint=1.5", "--set", "sneak=x", "--set", "attack", "--set", "jump=nan")
    answer = cockpit("thresholds", "last", *faults, "--save")
    assert answer.returncode == 2
    lines = answer.stderr.splitlines()
    assert "there is no control 'jmp' (did you mean 'jump'?)" in lines[0]
    assert lines[1].endswith("--set sprint=1.5: the threshold of sprint must be a number from 0 to 1.")
    assert lines[2].endswith("--set sneak=x: the threshold of sneak must be a number from 0 to 1.")
    assert "expected control=threshold" in lines[3]
    assert lines[4].endswith("--set jump=nan: the threshold of jump must be a number from 0 to 1.")
    assert exported.read_bytes() == before


def test_before_an_export_there_is_a_review_but_no_save(cockpit: Cockpit, runs: Path) -> None:
    reviewed_run(runs, review_arrays(), exported=False)
    answer = cockpit("thresholds", "last", "--optimize", "--save")
    assert answer.returncode == 1
    assert "nothing is exported yet" in answer.stdout
    assert "has no exported config yet: make it with `cockpit export controls-" in answer.stderr
