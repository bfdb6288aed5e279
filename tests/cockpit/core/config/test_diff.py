"""What differs between configs, against values written out here."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.config.diff import ABSENT, KeyRow, diff, equal_keys, leaves, words
from cockpit.core.config.lines import change_lines, matching, resolved_lines
from cockpit.core.config.run_config import default_tree, differences, edited_settings, read_config
from cockpit.core.text_filter import TextFilter
from engines.basics.errors import DataError, UserError
from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer
from tests.support.fake_run import FakeRun


def test_only_keys_that_differ_have_a_row_whatever_they_stand_in() -> None:
    trees = {
        "a": {"training": {"lr": 1e-3, "epochs": 4, "stages": [{"name": "one"}]}, "data": {"path": "/d", "K": 10}},
        "b": {"training": {"lr": 1e-3, "epochs": 4, "stages": [{"name": "two"}, {"name": "x"}]},
              "data": {"path": "/d", "K": 60}},
        "c": {"training": {"lr": 1e-3, "epochs": 4, "stages": []}, "data": {"path": "/d", "K": 60}, "seed": None},
    }  # fmt: skip
    assert diff(trees) == [
        KeyRow("training.stages.0.name", ("one", "two", ABSENT)),
        KeyRow("data.K", (10, 60, 60)),
        KeyRow("training.stages.1.name", (ABSENT, "x", ABSENT)),
        KeyRow("training.stages", (ABSENT, ABSENT, [])),
        KeyRow("seed", (ABSENT, ABSENT, None)),
    ]
    assert equal_keys(trees) == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(1, 1.0, True), (1, True, False), (0, False, False), (float("nan"), float("nan"), True), ("1", 1, False),
     ([1, 2], [1, 2], True), ([1], 1, False), ({}, [], False), (None, ABSENT, False)],
)  # fmt: skip
def test_what_is_equal_to_a_training_is_no_difference(one: object, other: object, same: bool) -> None:
    assert (diff({"a": {"k": one}, "b": {"k": other} if other is not ABSENT else {}}) == []) is same


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
).filter(lambda tree: isinstance(tree, dict))


@given(TREES, TREES)
def test_a_tree_differs_from_itself_nowhere_and_from_another_the_same_both_ways(one: dict, other: dict) -> None:  # type: ignore[type-arg]
    assert diff({"a": one, "b": one}) == []
    there, back = diff({"a": one, "b": other}), diff({"a": other, "b": one})
    assert {row.key: row.values for row in there} == {row.key: row.values[::-1] for row in back}


def test_values_are_written_as_in_a_file() -> None:
    assert [words(value) for value in (5e-4, None, "no", [1, "a b"], True, ABSENT)] == [
        "0.0005", "null", "'no'", "[1, a b]", "true", "—",
    ]  # fmt: skip
    assert dict(leaves({"a": {"b": [{"c": 1}, 2]}})) == {"a.b.0.c": 1, "a.b.1": 2}


def test_defaults_are_those_of_the_projects_model(tmp_path: Path) -> None:
    from projects.controls.config import ControlsConfig

    for said in ({}, {"version": 1}, {"version": 2}):
        found = default_tree({"project": "controls", **said})
        tree = {"project": "controls", "data": {"path": "/d"}, **said}
        whole = ControlsConfig.model_validate(tree).model_dump(mode="json")
        del whole["data"]["path"]  # has no default
        assert found == {**whole, "version": 1}, "a version itself is no default"


def test_differences_name_what_they_are_from(tmp_path: Path) -> None:
    parent = FakeRun(tmp_path, "controls-20261127-201400-amber")
    child = FakeRun(tmp_path, "controls-20261127-211400-birch")
    child.run.config.write_text(parent.run.config.read_text().replace("look: 0.5", "look: 0.75"))
    with pytest.raises(UserError, match="has no parent"):
        differences(child.run, read_config(child.run), "parent")
    info = child.run.info
    info.parent = parent.id
    child.run.write_info(info)
    expected = [KeyRow("loss_weights.look", (0.5, 0.75))]
    config = read_config(child.run)
    assert differences(child.run, config, "parent") == (parent.id, expected)
    assert differences(child.run, config, str(parent.run.path)) == (parent.id, expected)
    name, rows = differences(child.run, config, "default")
    assert name == "the defaults"
    assert KeyRow("loss_weights.look", (0.5, 0.75)) in rows
    assert KeyRow("data.path", (ABSENT, "/data")) in rows
    with pytest.raises(UserError, match="No run is called"):
        differences(child.run, config, "nonesuch")


@pytest.mark.parametrize("text", ["a: [\n", "just words", "- 1\n", "\x00", "a: 1\na: 2\n"])
def test_a_damaged_config_is_a_sentence(tmp_path: Path, text: str) -> None:
    fake = FakeRun(tmp_path)
    fake.run.config.write_text(text)
    with pytest.raises(DataError, match="cannot be read as a config"):
        read_config(fake.run)
    fake.run.config.unlink()
    with pytest.raises(DataError, match="has no config_resolved"):
        read_config(fake.run)


def applied(command: cmd.Command, step: int) -> CommandAnswer:
    return CommandAnswer(command=command, state="applied", step=step)


def test_live_edits_stand_beside_their_settings(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path)
    fake.run.config.write_text("training:\n  lr: 0.001\n  epochs: 9\nloss_weights:\n  look: 0.5\n  act: 1.0\n")
    config = read_config(fake.run)
    edited = edited_settings(config.tree, [
        applied(cmd.SetLossWeights(attempt=1, weights={"look": 0.6}), 100),
        applied(cmd.SetLossWeights(attempt=1, weights={"look": 0.8}), 361),
        applied(cmd.SetLrScale(attempt=1, scale=0.5), 400), applied(cmd.SetEpochs(attempt=1, epochs=12), 2000),
    ])  # fmt: skip
    assert [(line.kind, line.text, line.now) for line in resolved_lines(config, edited)] == [
        ("section", "training:", ""),
        ("value", "  lr: 0.001", "now 0.0005 since step 400"),
        ("value", "  epochs: 9", "now 12 since step 2,000"),
        ("section", "loss_weights:", ""),
        ("value", "  look: 0.5", "now 0.8 since step 361"),
        ("value", "  act: 1.0", ""),
    ]
    assert [line.text for line in matching(resolved_lines(config, edited), TextFilter.parse("loss_weights act"))] == [
        "  act: 1.0"
    ]


def test_changes_are_told_apart_by_a_sign_and_aligned() -> None:
    rows = [KeyRow("a.b", (1, 22)), KeyRow("long.key", (ABSENT, "\x1b[31mred")), KeyRow("c", ("words", ABSENT))]
    assert [line.text for line in change_lines(rows, {})] == [
        "~ a.b       1     → 22",
        '+ long.key  —     → "\\e[31mred"',
        "- c         words → —",
    ]
