"""Other names of settings: translated before anything is checked, and faults have the name the user wrote."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from cockpit.core.config.run_config import differences, read_config
from cockpit.core.launch.form import open_form
from cockpit.core.launch.saving import merged_text
from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract import spec as specs
from engines.contract.aliases import Aliases
from engines.contract.config import check_config, load_config
from engines.runs import launch
from tests.support.fake_run import FakeRun, stopped_early

SEED = """\
project: controls
data:
  path: /data
  batch_size: 32
training:
  amp: true
optim:
  rate: 1e-3
output:
  output_dir: {out}
"""


@pytest.fixture(autouse=True)
def aliased(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controls project with other names of its own: of a setting, and of a section."""
    spec = dataclasses.replace(specs.find("controls"), aliases={"optim.rate": "training.lr", "net": "model"})
    monkeypatch.setattr(specs, "find", lambda name: spec)


def write(folder: Path, text: str) -> Path:
    path = folder / "seed.yaml"
    path.write_text(text.format(out=folder / "out"))
    return path


def faults(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        load_config(path, overrides)
    return str(caught.value).splitlines()


@pytest.mark.behaviour("setting-under-another-name")
def test_a_file_under_other_names_is_the_same_config(tmp_path: Path) -> None:
    settings = load_config(write(tmp_path, SEED + "net: {{nhead: 4}}\n")).settings
    own = {
        "project": "controls", "data": {"path": "/data"}, "training": {"amp": "auto", "batch_size": 32, "lr": 1e-3},
        "output": {"dir": str(tmp_path / "out")}, "model": {"nhead": 4},
    }  # fmt: skip
    assert settings == check_config(own, "own", {}, ()).settings


@pytest.mark.behaviour("setting-under-another-name")
def test_a_set_may_use_either_name_and_goes_over_either(tmp_path: Path) -> None:
    path = write(tmp_path, SEED)
    for text in ("data.batch_size=8", "training.batch_size=8"):
        assert load_config(path, [text]).settings.training.batch_size == 8
    settings = load_config(path, ["optim.rate=2e-3", "training.amp=false", "net.nhead=2"]).settings
    assert (settings.training.lr, settings.training.amp) == (2e-3, "off")
    assert settings.model.model_dump()["nhead"] == 2


@pytest.mark.behaviour("setting-under-another-name")
def test_both_names_are_one_fault_with_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path, SEED.replace("  amp", "  batch_size: 16\n  amp"))
    (fault,) = faults(path)
    assert fault == (
        f"{path}:4: data.batch_size is another name for training.batch_size, which {path}:6 sets too; keep one of them."
    )
    path = write(tmp_path, SEED)
    assert faults(path, "data.batch_size=8", "training.batch_size=9") == [
        "--set data.batch_size=8: data.batch_size is another name for training.batch_size, "
        "which --set training.batch_size=9 sets too; keep one of them."
    ]


@pytest.mark.behaviour("setting-under-another-name")
def test_faults_have_the_name_and_the_line_that_the_user_wrote(tmp_path: Path) -> None:
    path = write(tmp_path, SEED.replace("32", "none").replace("1e-3", "-1") + "net: {{heads: 4}}\n")
    assert faults(path) == [
        f"{path}:11: net.heads is not a known key (did you mean 'nhead'?).",
        f"{path}:4: data.batch_size: input should be a valid integer, got 'none'.",
        f"{path}:8: optim.rate: input should be greater than 0, got -1.",
    ]
    assert faults(write(tmp_path, SEED), "optim.rate=-1") == [
        "--set optim.rate=-1: optim.rate: input should be greater than 0, got -1."
    ]
    path = write(tmp_path, SEED.replace("  amp: true", "  - 1"))
    assert faults(path)[0].startswith(f"{path}:5: training: input should be a valid dictionary")


def test_a_section_of_the_projects_own_is_no_other_name() -> None:
    tree = {"data": {"batch_size": 4}, "batch": {"size": 5, "more": 6}}
    renamed = Aliases({"batch.size": "training.batch_size"}, ["data", "training"]).rename(tree)
    assert tree == {"data": {"batch_size": 4}, "batch": {"more": 6}, "training": {"batch_size": 5}}
    assert renamed.names == {("training", "batch_size"): ("batch", "size")}


def test_a_config_changed_by_hand_may_use_other_names_on_resume_and_in_a_diff(tmp_path: Path) -> None:
    fake = stopped_early(FakeRun(tmp_path))
    fake.run.write_config(fake.run.config.read_text())
    tree, _ = yaml12.read(fake.run.config.read_text())
    del tree["training"]["lr"], tree["training"]["amp"]
    tree |= {"optim": {"rate": 2e-3}}
    tree["training"]["amp"] = True
    fake.run.config.write_text(yaml12.write(tree))
    plan = launch.look_at_resume(fake.run, ["data.batch_size=16"])
    assert {(change.key, change.old, change.new) for change in plan.changes} == {
        ("training.lr", 5e-4, 2e-3), ("training.batch_size", 64, 16),
    }  # fmt: skip
    _, rows = differences(fake.run, read_config(fake.run), "default")
    assert [(row.key, *row.values) for row in rows if row.key.startswith(("training.", "optim"))] == [
        ("training.epochs", 150, 4), ("training.lr", 5e-4, 2e-3),
    ]  # fmt: skip


@pytest.mark.behaviour("setting-under-another-name")
def test_a_form_shows_a_setting_once_and_saves_it_under_the_files_own_name(tmp_path: Path) -> None:
    path = write(tmp_path, SEED.replace("32", "32  # as the seed has it"))
    form = open_form(path)
    fields = {field.name: field for field in form.fields}
    assert [form.value(fields[name]) for name in ("training.batch_size", "training.amp")] == [32, "auto"]
    assert form.faults() == ()
    form.set(fields["training.batch_size"], "16")
    form.set(fields["training.patience"], "9")
    assert form.faults() == ()
    text = merged_text(form)
    assert "  batch_size: 16  # as the seed has it" in text.splitlines()
    assert text.count("batch_size") == 1
    path.write_text(text)
    settings = load_config(path).settings
    assert (settings.training.batch_size, settings.training.patience, settings.training.lr) == (16, 9, 1e-3)
    form = open_form(path)
    form.set(fields["training.lr"], "-1")
    assert [form.place_of(fault.key) for fault in form.faults()] == [("training", "lr")]
