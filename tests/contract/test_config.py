"""Configs: strict, all faults at once, each with its place, and written so that they load back equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract.config import ConfigError, check_config, load_config, with_recorded_environment
from engines.contract.shipped import SHIPPED

MINIMAL = "project: controls\ndata:\n  path: /data/recordings\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def faults(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        load_config(write(folder, text), overrides)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


text = st.text(st.characters(codec="utf-8"), max_size=12)
positive = st.floats(min_value=1e-12, max_value=1e12)
trees = st.fixed_dictionaries(
    {
        "project": st.just("controls"),
        "data": st.fixed_dictionaries({"path": text}),
    },
    optional={
        "training": st.fixed_dictionaries(
            {},
            optional={
                "epochs": st.integers(1, 10**9),
                "lr": positive,
                "min_lr": st.floats(0, 1),
                "compile": st.booleans(),
                "amp": st.sampled_from(["auto", "off", "bf16", "fp16"]),
                "seed": st.integers(-(2**63), 2**63),
                "steps_per_epoch": st.none() | st.integers(1, 10**6),
                "stages": st.lists(
                    st.fixed_dictionaries(
                        {"name": text, "epochs": st.integers(1, 9)},
                        optional={
                            "heads": st.none() | st.lists(st.text(max_size=4), min_size=1),
                            "lr": st.none() | positive,
                        },
                    ),
                    max_size=3,
                    unique_by=lambda stage: str(stage["name"]),
                ),
            },
        ),
        "cost": st.fixed_dictionaries({}, optional={"budget_usd": st.none() | positive}),
        "output": st.fixed_dictionaries({}, optional={"dir": st.none() | text}),
    },
)


@pytest.mark.behaviour("config-saved-loaded-equal")
@settings(max_examples=50, deadline=None)
@given(trees)
def test_a_config_that_is_written_loads_back_equal(tree: dict[str, Any]) -> None:
    loaded = check_config(tree, "config.yaml", {}, ())
    read, lines = yaml12.read(loaded.dump())
    again = check_config(read, "config_resolved.yaml", lines, ())
    assert again.settings == loaded.settings
    assert again.dump() == loaded.dump()


def test_the_resolved_config_holds_every_default(tmp_path: Path) -> None:
    loaded = load_config(write(tmp_path, MINIMAL))
    resolved, _ = yaml12.read(loaded.dump())
    assert resolved["training"]["grad_clip"] == 1.0
    assert resolved["loss_weights"]["look"] == 0.5
    assert resolved["output"] == {"dir": None, "keep_epochs": 0, "keep_best": 0, "writers": []}
    assert loaded.settings.model_dump(mode="json") == resolved


@pytest.mark.behaviour("5e-4-1e5-5e")
@pytest.mark.parametrize(("text", "value"), [("5e-4", 5e-4), ("1e5", 1e5), ("5E-4", 5e-4), ("2", 2.0), (".5", 0.5)])
def test_learning_rates_are_read_as_they_are_written_everywhere(tmp_path: Path, text: str, value: float) -> None:
    written = load_config(write(tmp_path, f"{MINIMAL}training: {{lr: {text}}}\n"))
    overridden = load_config(write(tmp_path, MINIMAL), [f"training.lr={text}"])
    assert written.settings.training.lr == overridden.settings.training.lr == value


def test_all_faults_are_told_at_once_each_with_its_line_and_the_nearest_key(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    text = (
        "project: controls\n"
        "data:\n"
        "  pth: /data\n"
        "training:\n"
        "  epochs: 0\n"
        "  lr: fast\n"
        "  pateince: 5\n"
        "  compile: no\n"
        "loss_weights:\n"
        "  acton: 1.0\n"
        "colour: blue\n"
    )
    assert sorted(faults(tmp_path, text)) == sorted(
        [
            f"{path}:2: data.path is missing.",
            f"{path}:3: data.pth is not a known key (did you mean 'path'?).",
            f"{path}:5: training.epochs: input should be greater than or equal to 1, got 0.",
            f"{path}:6: training.lr: input should be a valid number, got 'fast'.",
            f"{path}:7: training.pateince is not a known key (did you mean 'patience'?).",
            f"{path}:8: training.compile: input should be a valid boolean, got 'no'.",
            f"{path}:10: loss_weights.acton is not a known key (did you mean 'action'?).",
            f"{path}:11: colour is not a known key.",
        ]
    )


def test_faults_between_settings_name_their_section(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    text = MINIMAL + "training:\n  batch_size: 64\n  micro_batches: 5\nmodel:\n  nhead: 7\n"
    assert faults(tmp_path, text) == [
        f"{path}:7: model: d_model 256 must be a multiple of nhead 7.",
        f"{path}:4: training: batch_size 64 must be a multiple of micro_batches 5.",
    ]


def test_faults_in_a_list_have_the_line_of_their_item(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    text = MINIMAL + "training:\n  stages:\n    - name: one\n      epochs: 2\n    - name: two\n      epoch: 3\n"
    assert faults(tmp_path, text) == [
        f"{path}:9: training.stages.1.epoch is not a known key (did you mean 'epochs'?)."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epochs", "--set training.epochs: expected section.key=value, as in --set training.epochs=4."),
        ("=4", "--set =4: expected section.key=value"),
        ("training..epochs=4", "--set training..epochs=4: expected section.key=value"),
        ("training.epocs=4", "--set training.epocs=4: training.epocs is not a known key (did you mean 'epochs'?)."),
        ("training.epochs=x", "--set training.epochs=x: training.epochs: input should be a valid integer, got 'x'."),
        ("training.epochs=", "--set training.epochs=: training.epochs: input should be a valid integer, got None."),
        ("training.epochs.x=4", "--set training.epochs.x=4: training.epochs: input should be a valid integer"),
        ("project.x=4", "--set project.x=4: project is not a section of the config that could hold 'x'."),
        ("project=contrls", "--set project=contrls: No project is called 'contrls' (did you mean 'controls'?)"),
        ("training.stages.0.lr=4", "--set training.stages.0.lr=4: training.stages: input should be a valid list"),
        ("data=5", "--set data=5: data: input should be a valid dictionary or instance of ControlsData, got 5."),
    ],
)  # fmt: skip
def test_a_fault_in_an_override_names_the_override(tmp_path: Path, override: str, message: str) -> None:
    (fault,) = faults(tmp_path, MINIMAL, override)
    assert message in fault


def test_overrides_go_over_the_file_and_into_lists_and_the_last_one_holds(tmp_path: Path) -> None:
    text = MINIMAL + "training:\n  epochs: 9\n  stages:\n    - {name: one, epochs: 2}\n    - {name: two}\n"
    overrides = ["training.stages.0.epochs=3", "launch.device=cpu", "training.epochs=5", "training.epochs=6"]
    settings = load_config(write(tmp_path, text), [*overrides, "data.path=/a b/c#d"]).settings
    assert settings.training.epochs == 6
    assert [stage.epochs for stage in settings.training.stages] == [3, None]
    assert settings.launch.device == "cpu"
    assert settings.data.path == "/a b/c#d"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "config.yaml:1: expected sections such as `training:`, got nothing."),
        ("- a\n", "config.yaml:1: expected sections such as `training:`, got a list."),
        ("2026\n", "config.yaml:1: expected sections such as `training:`, got 2026."),
        ("data: {path: /x}\n", "project is missing: name an installed project"),
        ("project: 5\n", "config.yaml:1: project is missing"),
        ("\nproject: contrlos\n", "config.yaml:2: No project is called 'contrlos' (did you mean 'controls'?)"),
        ("project: controls\na: [1\n", "config.yaml:3: "),
        ("project: controls\nproject: sim\n", "config.yaml:2: project is given twice, first on line 1."),
        ("project: controls\ndata: {path: x}\ntraining: {lr: .nan}\n", "config.yaml:3: training.lr: "),
        ("project: controls\ndata: {path: x}\ntraining: {epochs: 5.0}\n", "config.yaml:3: training.epochs: "),
    ],
)
def test_a_file_that_is_no_config_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (fault,) = faults(tmp_path, text)
    assert message in fault


def test_a_config_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such config file"):
        load_config(tmp_path / "absent.yaml")
    with pytest.raises(UserError, match=f"no such config file; {SHIPPED / 'melee_mlp.yaml'} comes with the program"):
        load_config(tmp_path / "configs" / "melee_mlp.yaml")
    (tmp_path / "run.json").touch()
    with pytest.raises(UserError, match=f"no such config file; {tmp_path.name} cannot be resumed .* put it back"):
        load_config(tmp_path / "config_resolved.yaml")
    with pytest.raises(UserError, match=r"cannot be read as a config \(Is a directory\)"):
        load_config(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read as a config: byte 0 is not UTF-8 text"):
        load_config(tmp_path / "binary.yaml")


def test_a_run_records_what_it_would_find_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    relative = with_recorded_environment(load_config(write(tmp_path, MINIMAL), ["data.path=recordings"]))
    assert relative.settings.data.path == str(tmp_path / "recordings")
    assert relative.settings.launch.threads is not None
    home = with_recorded_environment(load_config(write(tmp_path, MINIMAL), ["data.path=~/x", "launch.threads=3"]))
    assert home.settings.data.path == "/home/somebody/x"
    assert home.settings.launch.threads == 3


def test_every_fault_says_at_which_key_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, "project: controls\ndata: {path: x}\ntraining: {epochz: 3}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, ["training.lr=-1", "model.d_model=9"])
    assert [key for key, _ in caught.value.faults] == [("model",), ("training", "lr"), ("training", "epochz")]
    assert str(caught.value).splitlines() == [sentence for _, sentence in caught.value.faults]


@pytest.mark.behaviour("engine-would-refuse-too")
@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        ("{action: 1e39}", "the weight of action must be a finite number of 0 or more, got 1e+39"),
        ("{action: 0, look: 0, hotbar: 0, cursor: 0, inv: 0, idle: 0}", "with every weight at 0, nothing would be"),
    ],
)
def test_loss_weights_that_no_edit_could_set_are_faults(tmp_path: Path, weights: str, fault: str) -> None:
    [said] = faults(tmp_path, MINIMAL + f"loss_weights: {weights}\n")
    assert said.startswith(f"{tmp_path}/config.yaml:4: loss_weights")
    assert fault in said


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cuda:", "cpu:3", ""])
def test_a_device_that_is_none_is_told_before_a_run_waits_for_it(tmp_path: Path, device: str) -> None:
    [said] = faults(tmp_path, MINIMAL + f"launch: {{device: '{device}'}}\n")
    assert said == f"{tmp_path}/config.yaml:4: launch.device: expected auto, cpu, cuda, cuda:1 or mps, got {device!r}."
