"""The sessions in docs/add-a-project.md do what its text says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engines.contract import scenes
from engines.tasks.live import Live

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-project.md"


def names_below(heading: str) -> dict[str, Any]:
    """What the first block of Python below a heading defines."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(heading)
    code = section.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def test_the_session_of_the_page_gives_scenes() -> None:
    walk = names_below("## Something to look at")["Walk"]()
    assert walk.act(walk.actions[0].id, 550) == walk.total - 1
    shown = scenes.scene_decoder.decode(scenes.encode(walk.scene(5)))
    assert shown.panels[0].rows[0] == scenes.Gauge(label="speed", value=0.4, other=0.5, mark=0.8)


def test_the_live_session_of_the_page_is_played_by_two() -> None:
    live = Live(names_below("## Something to play")["Race"](), lambda: ("p1", "p2"), print)
    for action, viewer in (("left", "p1"), ("right", "p2"), ("on", "p1"), ("on", "p1"), ("write", "p2"), ("on", "p2")):
        live.obey(scenes.Press(action, viewer), 0.0)
    shown = scenes.scene_decoder.decode(scenes.encode(live.scene()))
    assert [item.x for item in shown.view.items if isinstance(item, scenes.Box)] == [-2, 7]
    assert (shown.position, shown.total, shown.speed) == (3, 4, 0.25)
