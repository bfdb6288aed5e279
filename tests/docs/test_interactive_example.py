"""The session in docs/add-a-project.md does what its text says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engines.contract import scenes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-project.md"


def test_the_session_of_the_page_gives_scenes() -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## Something to look at")
    code = section.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    walk = names["Walk"]()
    assert walk.act(walk.actions[0].id, 550) == walk.total - 1
    shown = scenes.scene_decoder.decode(scenes.encode(walk.scene(5)))
    assert shown.panels[0].rows[0] == scenes.Gauge(label="speed", value=0.4, other=0.5, mark=0.8)
