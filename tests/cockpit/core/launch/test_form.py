"""A form over a config file: its fields, its overrides, its faults, its command, and saving it."""

import os
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.core.config.fields import NOTHING, Field, fields_of
from cockpit.core.launch.form import LaunchForm, new_form, open_form, shown
from cockpit.core.launch.saving import documented_text, merged_text, save_config
from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from engines.contract.config import ConfigError, load_config
from engines.contract.shipped import SHIPPED
from projects.controls.config import ControlsConfig

CONFIG = """\
# A walk
project: controls

data:
  path: recordings            # one .npz a session

training:                     # short
  epochs: 4
  lr: 1e-3                    # high
  stages:
    - name: all
      heads: [look]           # only this
# the end
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "my walk.yaml"
    path.write_text(CONFIG)
    return path


def field(form: LaunchForm, name: str) -> Field:
    return next(field for field in form.fields if field.name == name)


def test_every_setting_of_the_model_is_a_field_with_its_docstring_and_limits() -> None:
    form = new_form("controls")
    names = [field.name for field in form.fields]
    dumped = ControlsConfig.model_validate({"data": {"path": "x"}}).model_dump()

    def leaves(tree: dict[str, Any], at: str = "") -> list[str]:
        inner = [leaves(value, f"{at}{key}.") if isinstance(value, dict) else [at + key] for key, value in tree.items()]
        return [name for names in inner for name in names]

    assert sorted(names[1:]) == sorted(set(leaves(dumped)) - {"project"})
    rate = field(form, "training.lr")
    assert (rate.kind, rate.type, rate.help, rate.default) == ("value", "number > 0", "Peak learning rate.", 5e-4)
    assert field(form, "training.amp").choices == ("auto", "off", "tf32", "bf16", "fp16")
    assert field(form, "training.compile").kind == "switch"
    assert field(form, "training.stages").kind == "block"
    assert field(form, "training.steps_per_epoch").type == "whole number ≥ 1 or null"
    assert field(form, "data.path").default is NOTHING
    assert field(form, "data.augmentation.crop").type == "number ≥ 0, < 0.5"
    assert {name.rpartition(".")[0] for name in names} >= {
        "data",
        "model",
        "loss_weights",
        "training",
        "cost",
        "output",
    }


def test_the_default_of_a_section_holds_until_the_file_has_the_section() -> None:
    inner = {"type": "object", "properties": {"width": {"type": "integer", "default": 256}}}
    schema = {"properties": {"model": {"$ref": "#/$defs/M", "default": {"width": 8}}}, "$defs": {"M": inner}}
    (width,) = fields_of(schema)
    assert width.value_in({}) == 8
    assert width.value_in({"model": {}}) == 256
    assert width.value_in({"model": {"width": 3}}) == 3


def test_changes_are_overrides_with_the_types_a_file_gives(config: Path) -> None:
    form = open_form(config)
    form.set(field(form, "training.lr"), "5e-4")
    form.set(field(form, "training.epochs"), "4")  # as in the file: no change
    form.set(field(form, "data.path"), "my data #2: déjà vu")
    form.set(field(form, "training.seed"), "7 ")
    form.step(field(form, "training.amp"), -1)
    form.set(field(form, "--name"), "it's a name")
    assert not form.changed(field(form, "training.epochs"))
    assert form.not_default(field(form, "training.epochs"))
    loaded = load_config(config, form.overrides).settings
    assert (loaded.training.lr, loaded.training.seed, loaded.training.amp) == (5e-4, 7, "fp16")
    assert loaded.data.path == "my data #2: déjà vu"
    words = shlex.split(form.command)
    assert words[:3] == ["cockpit", "train", str(config)]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--set"] == form.overrides
    assert words[-2:] == ["--name", "it's a name"]


def test_a_change_is_reset_and_undone(config: Path) -> None:
    form = open_form(config)
    rate = field(form, "training.lr")
    form.set(rate, "1")
    form.set(rate, "2")
    assert form.value(rate) == 2
    form.reset(rate)
    assert form.value(rate) == 1e-3
    assert not form.changed(rate)
    values = []
    while form.undo():
        values.append(form.value(rate))
    assert values == [2, 1, 1e-3]
    assert form.overrides == []


def test_faults_are_the_sentences_of_the_file_each_at_its_place(config: Path) -> None:
    form = open_form(config)
    form.set(field(form, "training.lr"), "-1")
    form.set(field(form, "model.d_model"), "9")
    form.set(field(form, "training.stages"), "- {name: a, epochz: 3}")
    faults = form.faults()
    with pytest.raises(UserError) as caught:
        load_config(config, form.overrides)
    assert [fault.sentence for fault in faults] == str(caught.value).splitlines()
    places = {form.place_of(fault.key) for fault in faults}
    assert places == {("training", "lr"), ("model",), ("training", "stages")}
    assert form.place_of(("training", "epochz")) == ()
    assert form.place_of(("data", "augmentation", "crops")) == ()


def test_a_file_that_changes_under_the_form_is_told(config: Path) -> None:
    form = open_form(config)
    assert form.faults() == ()
    config.write_text(CONFIG.replace("epochs: 4", "epochs: 5"))
    (fault,) = form.faults()
    assert "has changed since" in fault.sentence
    config.unlink()
    (fault,) = form.faults()
    assert "no such config file" in fault.sentence


def test_the_defaults_are_those_of_the_version_that_the_file_names(tmp_path: Path) -> None:
    """An older version's default, typed into a newer config, is a change; the file's own is none."""
    path = tmp_path / "two.yaml"
    path.write_text("project: controls\nversion: 2\ndata:\n  path: d\nmodel:\n  num_layers: 1\n")
    form = open_form(path)
    readout = field(form, "model.readout")
    assert (form.value(readout), form.not_default(readout)) == ("filter", False)
    assert form.not_default(field(form, "model.num_layers"))
    form.set(readout, "mean")
    assert form.overrides == ["model.readout=mean"]
    assert form.not_default(readout)
    form.set(readout, "filter")
    assert form.overrides == []


def test_a_form_of_defaults_alone_says_what_is_missing_and_is_saved(tmp_path: Path) -> None:
    form = new_form("controls")
    assert [(fault.key, fault.sentence) for fault in form.faults()] == [(("data",), "new config: data is missing.")]
    form.set(field(form, "data.path"), "x y")
    assert form.faults() == ()
    path = save_config(form, tmp_path / "new" / "mine")
    assert path.name == "mine.yaml"
    assert load_config(path).settings.data.path == "x y"


@pytest.mark.behaviour("saved-config-has-users-permissions")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o007, 0o660), (0o077, 0o600)])
def test_a_saved_config_has_the_permissions_that_its_user_gives_files(
    config: Path, tmp_path: Path, umask: int, mode: int
) -> None:
    form = open_form(config)
    before = os.umask(umask)
    try:
        path = save_config(form, tmp_path / "new" / "mine.yaml")
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.chmod(0o640)
        save_config(form, path, overwrite=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_names_no_project_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    for text, message in (
        ("- 1\n", "expected sections"),
        ("project: contrils\n", "did you mean 'controls'"),
        ("a: [", "a.yaml:1"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=message):
            open_form(path)


# -- saving ----------------------------------------------------------------------------------------------------------


def test_saving_keeps_every_comment_and_line_that_is_not_changed(config: Path) -> None:
    form = open_form(config)
    form.set(field(form, "training.lr"), "2e-3")
    form.set(field(form, "training.amp"), "off")
    form.set(field(form, "cost.usd_per_hour"), "2.5")
    form.set(field(form, "training.stages"), "- name: all\n  heads: [look, idle]")
    text = merged_text(form)
    for line in (
        "# A walk",
        "  path: recordings            # one .npz a session",
        "training:                     # short",
        "# the end",
    ):
        assert line in text.splitlines()
    assert "  lr: 0.002                    # high" in text
    config.write_text(text)
    loaded = load_config(config).settings
    assert (loaded.training.amp, loaded.cost.usd_per_hour) == ("off", 2.5)
    assert loaded.training.stages[0].heads == ["look", "idle"]


def test_a_text_that_cannot_be_edited_is_written_again_with_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("project: controls\ndata:\n  path: |-\n    two\n    lines\ntraining:\n")
    form = open_form(path)
    form.set(field(form, "data.path"), "one")
    form.set(field(form, "cost.usd_per_hour"), "1.5")
    tree, _ = yaml12.read(merged_text(form))
    assert tree == form.tree
    assert "# Price of the machine, from which costs are computed." in documented_text(form)
    assert yaml12.read(documented_text(form))[0] == form.tree


def test_nothing_is_overwritten_without_asking(config: Path, tmp_path: Path) -> None:
    form = open_form(config)
    form.set(field(form, "training.epochs"), "9")
    with pytest.raises(FileExistsError, match="already exists"):
        save_config(form, config)
    assert config.read_text() == CONFIG
    save_config(form, config, overwrite=True)
    assert load_config(config).settings.training.epochs == 9
    with pytest.raises(DataError, match="cannot be written"):
        save_config(form, config / "below" / "a.yaml")


VALUES = {
    "whole number ≥ 1": st.integers(1, 10**9), "whole number": st.integers(), "number > 0": st.floats(1e-12, 1e12),
    "number ≥ 0": st.floats(0, 1e12), "number ≥ 0, ≤ 1": st.floats(0, 1), "number ≥ 0, < 1": st.floats(0, 0.99),
    "number > 0, < 1": st.floats(0.01, 0.99), "number ≥ 0, < 0.5": st.floats(0, 0.49),
    "text": st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), min_size=1, max_size=20),
}  # fmt: skip


def outcome(path: Path, overrides: Sequence[str] = ()) -> object:
    """The settings, or the keys of those that do not go together."""
    try:
        return load_config(path, overrides).settings
    except ConfigError as error:
        return [key for key, _ in error.faults]


@pytest.mark.behaviour("config-saved-loaded-equal")
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_saved_loads_back_equal_whatever_was_typed(data: st.DataObject, tmp_path: Path) -> None:
    source = data.draw(st.sampled_from(sorted(SHIPPED.glob("*.yaml"))))
    form = open_form(source)
    chosen = data.draw(
        st.lists(st.sampled_from([f for f in form.fields[1:] if f.choices or f.type in VALUES]), max_size=6)
    )
    for one in chosen:
        values = st.sampled_from(one.choices) if one.choices else VALUES[one.type]
        form.set(one, shown(data.draw(values)))
    saved = save_config(form, tmp_path / "saved déjà.yaml", overwrite=True)
    assert outcome(saved) == outcome(source, form.overrides)
    assert repr(yaml12.read(documented_text(form))[0]) == repr(form.tree)
