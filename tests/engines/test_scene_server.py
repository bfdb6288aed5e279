"""The socket of an interactive engine against viewers that are slow, dead, rude or several."""

import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engines.basics.sockets import short_address
from engines.contract import scenes
from engines.contract.scenes import Scene, View
from engines.tasks import scene_server
from engines.tasks.scene_server import SceneServer

VIEW = View((0, 0), (1, 1))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SceneServer]:
    with SceneServer(tmp_path) as server:
        yield server


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[[], socket.socket]]:
    opened = []

    def one() -> socket.socket:
        opened.append(socket.socket(socket.AF_UNIX))
        with short_address(tmp_path, scenes.SOCKET) as address:
            opened[-1].connect(address)
        opened[-1].settimeout(10)
        return opened[-1]

    yield one
    for connection in opened:
        connection.close()


def exchange(server: SceneServer, times: int = 5) -> list[scenes.Input]:
    return [order for _ in range(times) for order in server.exchange(0)]


def heard(viewer: socket.socket) -> list[Scene]:
    """Every whole scene that lies ready."""
    data = b""
    viewer.setblocking(False)
    try:
        while part := viewer.recv(1 << 20):
            data += part
    except BlockingIOError:
        pass
    return [scenes.scene_decoder.decode(line) for line in data.splitlines()]


def test_who_comes_late_gets_the_newest_scene_alone(server: SceneServer, connect: Callable[[], socket.socket]) -> None:
    for title in ("one", "two", "three"):
        server.show(Scene(title=title, view=VIEW))
    viewers = [connect(), connect()]
    exchange(server)
    assert [[scene.title for scene in heard(viewer)] for viewer in viewers] == [["three"], ["three"]]
    server.show(Scene(title="four", view=VIEW))
    exchange(server)
    assert [[scene.title for scene in heard(viewer)] for viewer in viewers] == [["four"], ["four"]]
    exchange(server)
    assert heard(viewers[0]) == []


def test_a_viewer_that_does_not_read_holds_nothing_up(
    server: SceneServer, connect: Callable[[], socket.socket]
) -> None:
    slow, quick = connect(), connect()
    exchange(server)
    for number in range(100):  # 50 MB for the slow one, were they kept
        server.show(Scene(title="x" * 500_000, position=number, view=VIEW))
        exchange(server, 1)
        heard_now = b""
        quick.setblocking(False)
        while not heard_now.endswith(b"\n"):
            exchange(server, 1)
            try:
                heard_now += quick.recv(1 << 20)
            except BlockingIOError:
                continue
        assert scenes.scene_decoder.decode(heard_now).position == number
    positions: list[int] = []
    data = b""
    slow.setblocking(False)
    while 99 not in positions:
        exchange(server, 1)
        try:
            data += slow.recv(1 << 20)
        except BlockingIOError:
            continue
        *lines, data = data.split(b"\n")
        positions += [scenes.scene_decoder.decode(line).position for line in lines]
    assert positions == sorted(positions)
    assert len(positions) < 5  # what was on its way, and the newest


def test_inputs_come_in_order_and_noise_is_ignored(server: SceneServer, connect: Callable[[], socket.socket]) -> None:
    viewer = connect()
    lines = [
        b'{"type":"seek","position":1}', b"not json", b'{"type":"launch"}', b"\xff\xfe", b'{"type":"seek"}', b"",
        b"[" * 4000, b'{"type":"press","action":"n"}',
    ]  # fmt: skip
    viewer.sendall(b"\n".join(lines) + b"\n" + b'{"type":"se')
    assert exchange(server) == [scenes.Seek(1), scenes.Press("n")]
    viewer.sendall(b'ek","position":2}\n')
    assert exchange(server) == [scenes.Seek(2)]


@pytest.mark.parametrize("ended", [b"", b"\n"], ids=["open", "whole"])
def test_a_line_without_end_ends_the_connection(
    server: SceneServer, connect: Callable[[], socket.socket], ended: bytes
) -> None:
    rude, other = connect(), connect()
    exchange(server)
    rude.sendall(b"x" * (scenes.LONGEST_INPUT + 1) + ended)
    exchange(server)
    assert rude.recv(1) == b""
    other.sendall(b'{"type":"seek","position":2}\n')
    assert exchange(server) == [scenes.Seek(2)]


def test_the_last_viewer_to_leave_ends_it(server: SceneServer, connect: Callable[[], socket.socket]) -> None:
    first, second = connect(), connect()
    exchange(server)
    first.sendall(scenes.encode(scenes.End()))
    assert exchange(server) == []
    assert first.recv(1) == b""
    second.sendall(scenes.encode(scenes.End()))
    assert exchange(server) == [scenes.End()]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SceneServer]:
    """A server with two seats."""
    with SceneServer(tmp_path, ("p1", "p2")) as server:
        yield server


def said(viewer: socket.socket) -> list[scenes.Output]:
    """Everything that lies ready, whole."""
    return [scenes.output_decoder.decode(line) for line in viewer.recv(1 << 20).splitlines()]


def sit(server: SceneServer, viewer: socket.socket, seat: str = "") -> scenes.Seated:
    """Ask for a seat; what the viewer hears about it."""
    exchange(server, 1)
    viewer.sendall(scenes.encode(scenes.Join(seat)))
    exchange(server)
    (seated,) = (line for line in said(viewer) if isinstance(line, scenes.Seated))
    return seated


def test_seats_are_taken_in_order_and_a_press_says_whose_it_is(
    table: SceneServer, connect: Callable[[], socket.socket]
) -> None:
    table.show(Scene(title="one", view=VIEW))
    first, second, third = connect(), connect(), connect()
    assert sit(table, second, "p2") == scenes.Seated("p2")
    assert sit(table, first) == scenes.Seated("p1")
    assert table.taken == ("p1", "p2")
    note = "p1 and p2 are taken by another terminal; you are a viewer until it leaves."
    assert sit(table, third) == scenes.Seated("", note)
    first.sendall(scenes.encode(scenes.Press("left", viewer="p2")))  # a lie
    assert exchange(table) == [scenes.Press("left", "p1")]
    second.sendall(scenes.encode(scenes.Press("left")))
    assert exchange(table) == [scenes.Press("left", "p2")]
    for order in (scenes.Press("left"), scenes.Seek(0), scenes.Play(True)):
        third.sendall(scenes.encode(order))
    assert exchange(table) == []
    table.show(Scene(title="two", view=VIEW))
    exchange(table)
    assert said(third) == [Scene(title="two", view=VIEW)]


def test_a_seat_that_is_taken_or_unknown_is_said_and_given_when_it_is_free(
    table: SceneServer, connect: Callable[[], socket.socket]
) -> None:
    first, second, third = connect(), connect(), connect()
    sit(table, first, "p1")
    assert sit(table, second, "p1").note.startswith("p1 is taken by another terminal; you are a viewer")
    assert sit(table, third, "p7").note.startswith("This session has no 'p7', only p1 and p2; you are a viewer")
    assert table.taken == ("p1",)
    first.sendall(scenes.encode(scenes.End()))
    assert exchange(table) == []
    assert said(second) == [scenes.Seated("p1")]
    assert table.taken == ("p1",)


def test_whoever_leaves_ends_nothing_while_another_plays_or_is_waited_for(
    table: SceneServer, connect: Callable[[], socket.socket]
) -> None:
    first, second = connect(), connect()
    sit(table, first)
    sit(table, second)
    first.close()  # as a terminal that dies
    assert exchange(table) == []
    second.sendall(scenes.encode(scenes.End()))
    assert exchange(table) == []
    assert table.taken == ()
    back = connect()
    assert sit(table, back) == scenes.Seated("p1")
    back.sendall(scenes.encode(scenes.End()))
    assert exchange(table) == [scenes.End()]


def test_who_comes_while_the_last_one_leaves_is_not_left_alone(
    table: SceneServer, connect: Callable[[], socket.socket]
) -> None:
    first = connect()
    sit(table, first)
    first.sendall(scenes.encode(scenes.End()))
    second = connect()
    assert exchange(table) == []
    assert sit(table, second) == scenes.Seated("p1")


def test_it_knows_how_long_nobody_has_looked(
    server: SceneServer, connect: Callable[[], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 100)
    assert server.alone_for() == pytest.approx(100, abs=50)
    viewer = connect()
    exchange(server)
    assert server.alone_for() == 0
    viewer.close()
    exchange(server)
    monkeypatch.setattr(time, "monotonic", lambda: now + 107)
    assert server.alone_for() == pytest.approx(7)


def test_more_viewers_than_there_is_room_for_are_sent_away(
    server: SceneServer, connect: Callable[[], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene_server, "MOST_VIEWERS", 2)
    viewers = []
    for _ in range(3):
        viewers.append(connect())
        exchange(server)
    assert viewers[2].recv(1) == b""
    viewers[0].sendall(scenes.encode(scenes.Seek(5)))
    assert exchange(server) == [scenes.Seek(5)]


def test_the_socket_is_the_owners_alone_replaces_a_stale_one_and_goes_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / scenes.SOCKET
    stale = socket.socket(socket.AF_UNIX)
    with short_address(tmp_path, scenes.SOCKET) as address:
        stale.bind(address)
    stale.close()
    with SceneServer(tmp_path):
        assert path.is_socket()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_who_leaves_while_a_scene_is_on_its_way_has_left(tmp_path: Path, connect: Callable[[], socket.socket]) -> None:
    """It sends its `End` and goes, with scenes that it never read: sending the next one fails."""
    with SceneServer(tmp_path, seats=("p1",)) as server:
        viewer = connect()
        viewer.sendall(scenes.encode(scenes.Join()))
        server.show(Scene(title="one", view=VIEW))
        exchange(server)
        server.show(Scene(title="two", view=VIEW))
        viewer.sendall(scenes.encode(scenes.End()))
        viewer.close()
        assert [type(order) for order in exchange(server)] == [scenes.End]
