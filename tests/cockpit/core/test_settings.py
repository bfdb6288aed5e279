"""Choices are kept, by two cockpits at once too, and a damaged file is never overwritten."""

import json
from pathlib import Path

from cockpit.core.settings import Settings, SettingsFile, settings_path


def test_a_choice_is_there_in_the_next_session(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    SettingsFile(path).change(theme="cockpit-light", keys={"run.stop": "f8"})
    assert SettingsFile(path).value == Settings(theme="cockpit-light", keys={"run.stop": "f8"})
    assert json.loads(path.read_text()) == {"theme": "cockpit-light", "keys": {"run.stop": "f8"}}


def test_two_cockpits_keep_each_other_s_choices(tmp_path: Path) -> None:
    one, other = SettingsFile(tmp_path / "s.json"), SettingsFile(tmp_path / "s.json")
    one.change(theme="cockpit-light")
    other.change(runs_sort="-score")
    assert SettingsFile(tmp_path / "s.json").value == Settings(theme="cockpit-light", runs_sort="-score")


def test_a_file_that_cannot_be_understood_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for damage in (b"{", b"[]", b'{"theme": 3}', b"\xff"):
        path.write_bytes(damage)
        settings = SettingsFile(path)
        assert settings.value == Settings()
        assert str(path) in settings.problem
        settings.change(theme="cockpit-light")
        assert settings.value.theme == "cockpit-light"
        assert path.read_bytes() == damage


def test_a_folder_that_cannot_be_written_costs_the_session_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = SettingsFile(tmp_path / "file" / "settings.json")
    settings.change(theme="cockpit-light")
    assert settings.value.theme == "cockpit-light"
    assert settings.problem


def test_the_place_follows_the_desktop_s_convention() -> None:
    assert settings_path({"XDG_CONFIG_HOME": "/c"}) == Path("/c/cockpit/settings.json")
    assert settings_path({}).parts[-3:] == (".config", "cockpit", "settings.json")
