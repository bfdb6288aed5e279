from pathlib import Path

import pytest

from cockpit.core.runs import last_seen
from cockpit.core.runs.last_seen import Attention, LastSeen, last_seen_path


def test_moments_are_kept_by_run(tmp_path: Path) -> None:
    path = last_seen_path({"XDG_STATE_HOME": str(tmp_path)})
    assert path == tmp_path / "cockpit" / "seen.json"
    assert LastSeen(path).seen("amber") is None
    LastSeen(path).see("amber", 5.0)
    LastSeen(path).see("birch", 6.0)
    assert [LastSeen(path).seen(name) for name in ("amber", "birch", "cedar")] == [5.0, 6.0, None]
    path.write_text("{damaged")
    assert LastSeen(path).seen("amber") is None


def test_only_those_seen_last_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_seen, "MOST_RUNS", 2)
    file = LastSeen(tmp_path / "seen.json")
    for moment, name in ((3.0, "a"), (1.0, "b"), (2.0, "c")):
        file.see(name, moment)
    assert [file.seen(name) for name in "abc"] == [3.0, None, 2.0]


def test_attention_remembers_when_it_was_paid_before_and_writes_seldom(tmp_path: Path) -> None:
    path, now = tmp_path / "seen.json", [100.0]
    LastSeen(path).see("amber", 40.0)
    attention = Attention("amber", lambda: now[0], path)
    assert attention.pay() == 40.0
    assert LastSeen(path).seen("amber") == 100.0
    now[0] = 105.0
    assert attention.pay() == 40.0
    assert LastSeen(path).seen("amber") == 100.0
    now[0] = 111.0
    attention.pay()
    assert LastSeen(path).seen("amber") == 111.0


def test_where_nothing_can_be_written_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Attention("amber", lambda: 1.0, tmp_path / "file" / "seen.json").pay() is None
