from pathlib import Path

import pytest

from cockpit.core.config.configs import by_project, find_configs
from engines.contract import spec as specs
from engines.contract.shipped import SHIPPED
from engines.contract.spec import BrokenSpec


def test_configs_of_both_folders_each_once(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    for folder in (mine, shipped):
        folder.mkdir()
    (mine / "b.yaml").write_text("# what b does\nproject: x\n")
    (mine / "a.yml").write_text("project: 'x'\n")
    (mine / "notes.txt").write_text("no config")
    (shipped / "c.yaml").write_bytes(b"# \xff\xfe")
    (shipped / "b.yaml").symlink_to(mine / "b.yaml")
    found = find_configs((mine, shipped, tmp_path / "none"))
    assert [(config.path.name, config.about, config.project) for config in found] == [
        ("a.yml", "", "x"),
        ("b.yaml", "what b does", "x"),
        ("c.yaml", "", ""),
    ]


def test_the_shipped_configs_are_found() -> None:
    assert "controls_demo.yaml" in {config.path.name for config in find_configs((SHIPPED,))}


def test_every_project_is_listed_with_its_configs_broken_ones_with_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "a": "project: controls\n",
        "b": "project: gone\n",
        "c": "project: third\n",
        "d": "- x\n",
    }.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    controls = specs.find("controls")
    monkeypatch.setattr(
        specs, "installed", lambda: {"bare": controls, "controls": controls, "third": BrokenSpec("third", "no module")}
    )
    groups = {group.name: group for group in by_project(find_configs((tmp_path,)))}
    files = {name: [config.path.stem for config in group.configs] for name, group in groups.items()}
    assert files == {"bare": [], "controls": ["a"], "third": ["c"], "gone": ["b"], "": ["d"]}
    assert groups["controls"].title == controls.title
    broken = {name: group.broken for name, group in groups.items() if group.broken}
    assert list(broken) == ["third", "gone", ""]
    assert "no module" in broken["third"]
