from pathlib import Path

from cockpit.core.configs import SHIPPED, find_configs


def test_configs_of_both_folders_each_once(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    for folder in (mine, shipped):
        folder.mkdir()
    (mine / "b.yaml").write_text("# what b does\nproject: x\n")
    (mine / "a.yml").write_text("project: x\n")
    (mine / "notes.txt").write_text("no config")
    (shipped / "c.yaml").write_bytes(b"# \xff\xfe")
    (shipped / "b.yaml").symlink_to(mine / "b.yaml")
    found = find_configs((mine, shipped, tmp_path / "none"))
    assert [(config.path.name, config.about) for config in found] == [
        ("a.yml", ""),
        ("b.yaml", "what b does"),
        ("c.yaml", ""),
    ]


def test_the_shipped_configs_are_found() -> None:
    assert "controls_demo.yaml" in {config.path.name for config in find_configs((SHIPPED,))}
