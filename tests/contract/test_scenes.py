"""Scenes and inputs as lines, and sockets in deep folders."""

import socket
import sys
from pathlib import Path

import msgspec
import pytest

from engines.basics.errors import DataError
from engines.basics.sockets import LONGEST_ADDRESS, short_address
from engines.contract import scenes

SCENE = scenes.Scene(
    title="s", position=3, total=9, view=scenes.View((0, 0), (1, 1), [scenes.Line([(0, 0), (1, 1)], "first")]),
    panels=[scenes.Panel("p", [scenes.Gauge(label="g", value=0.5, mark=0.4), scenes.Words([scenes.Span("w")])])],
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"type":"press","action":"next"}', scenes.Press("next")),
        (b'{"type":"seek","position":12}', scenes.Seek(12)),
        (b'{"type":"play","playing":true,"speed":2}', scenes.Play(True, 2.0)),
        (b'{"type":"end"}', scenes.End()),
    ],
)
def test_inputs_are_these_lines(line: bytes, expected: scenes.Input) -> None:
    assert scenes.input_decoder.decode(line) == expected
    assert msgspec.json.decode(scenes.encode(expected)) | msgspec.json.decode(line) == msgspec.json.decode(
        scenes.encode(expected)
    )


def test_a_scene_is_one_line_and_comes_back_whole() -> None:
    line = scenes.encode(SCENE)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert scenes.scene_decoder.decode(line) == SCENE


def test_a_scene_that_no_viewer_would_take_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at most 1,048,576"):
        scenes.encode(scenes.Scene(title="x" * scenes.LONGEST_SCENE, view=SCENE.view))


@pytest.mark.parametrize("depth", [1, 12], ids=["short", "long"])
def test_a_socket_works_in_any_folder(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-name-of-a-folder"] * depth)
    folder.mkdir(parents=True)
    assert (len(str(folder)) > LONGEST_ADDRESS) == (depth > 1)
    with socket.socket(socket.AF_UNIX) as door, socket.socket(socket.AF_UNIX) as visitor:
        with short_address(folder, "s") as address:
            door.bind(address)
        door.listen()
        with short_address(folder, "s") as address:
            visitor.connect(address)
        visitor.sendall(b"hello")
        with door.accept()[0] as inside:
            assert inside.recv(10) == b"hello"
    assert (folder / "s").is_socket()


def test_where_folders_have_no_short_way_the_limit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(DataError, match=r"set COCKPIT_RUNS to a shorter folder"), short_address(tmp_path, "s" * 120):
        pass
