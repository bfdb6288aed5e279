"""The viewer's end of the socket: newest scene, damage, an engine that comes late, goes, and comes back."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.core.scenes.play import PlayFollower, Viewing, can_play, open_play
from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from engines.basics.sockets import short_address
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract import scenes
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from tests.cockpit.driving import commands_of
from tests.engines.conftest import wait_for
from tests.support.fake_run import FakeRun
from tests.support.fake_scenes import FakeScenes, scene


@pytest.fixture
def play(folder: Path) -> FakeRun:
    """The run of a play engine."""
    return FakeRun(folder, kind="task").begin()


def test_the_newest_scene_counts_and_orders_arrive(play: FakeRun) -> None:
    follower = PlayFollower(Viewing(play.run))
    assert follower.poll(0).scene is None
    assert not follower.send(scenes.Press("play"))  # nobody is there yet
    with play.locked(), FakeScenes(play, scene(1)) as engine:
        wait_for("a scene", lambda: follower.poll(0.05).scene)
        for position in range(2, 50):
            engine.show(scene(position))
        wait_for("the newest", lambda: (now := follower.poll(0.05).scene) and now.position == 49)
        for order in (scenes.Press("next"), scenes.Seek(3), scenes.Play(False)):
            assert follower.send(order)
        wait_for("the orders", lambda: len(engine.inputs) == 3)
        assert engine.inputs == [scenes.Press("next"), scenes.Seek(3), scenes.Play(False)]
        follower.end()
        wait_for("the end", lambda: scenes.End() in engine.inputs)
    assert commands_of(play) == []


def test_a_viewer_that_comes_back_is_shown_where_it_stands(play: FakeRun) -> None:
    with play.locked():
        with FakeScenes(play, scene(5)):
            gone = PlayFollower(Viewing(play.run))
            wait_for("a scene", lambda: gone.poll(0.05).scene)
            gone.close()
            back = PlayFollower(Viewing(play.run))
            shown = wait_for("the same scene", lambda: back.poll(0.05).scene)
            assert shown.position == 5
        with FakeScenes(play, scene(6)):  # the engine's socket was made anew
            wait_for("the next", lambda: (now := back.poll(0.05).scene) and now.position == 6)
            back.close()


def test_an_engine_that_still_computes_is_stopped_by_command(play: FakeRun) -> None:
    play.say(ev.Phase(phase="working"), ev.Progress(done=3, total=10, unit="frames"))
    with play.locked():
        follower = PlayFollower(Viewing(play.run))
        news = follower.poll(0)
        assert news.progress is not None
        assert (news.live, news.progress.done) == (True, 3)
        follower.end()
    (order,) = commands_of(play)
    assert isinstance(order, cmd.Stop)
    assert order.attempt == 1


def test_how_it_failed_comes_with_the_end_of_its_log(play: FakeRun) -> None:
    play.run.stdout.write_text("one\nthe file is damaged\n")
    play.end("failed", exit_code=1, error="the file is damaged")
    news = PlayFollower(Viewing(play.run)).poll(0)
    assert not news.live
    assert news.status.state == "failed"
    assert news.log == ("one", "the file is damaged")


@pytest.fixture
def rude(play: FakeRun) -> Iterator[tuple[PlayFollower, socket.socket]]:
    """A follower and the other end of its connection, to say anything with."""
    follower = PlayFollower(Viewing(play.run))
    with play.locked(), socket.socket(socket.AF_UNIX) as door:
        with short_address(play.run.path, scenes.SOCKET) as address:
            door.bind(address)
        door.listen()
        follower.poll(0)
        with door.accept()[0] as engine:
            yield follower, engine
    follower.close()


@pytest.mark.parametrize("noise", [b"no scene\n{}\n", b"\xff" * 10 + b"\n", b"[" * 5000 + b"\n"])
def test_noise_is_no_scene_and_harms_nothing(rude: tuple[PlayFollower, socket.socket], noise: bytes) -> None:
    follower, engine = rude
    engine.sendall(noise)
    follower.poll(0.05)
    assert follower.damaged > 0
    engine.sendall(scenes.encode(scene(7)))
    wait_for("the scene after it", lambda: (now := follower.poll(0.05).scene) and now.position == 7)


def test_a_line_without_end_is_cut_off(rude: tuple[PlayFollower, socket.socket]) -> None:
    follower, engine = rude
    engine.setblocking(False)

    def refused() -> bool:
        follower.poll(0)
        try:
            engine.send(b"x" * 65536)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    wait_for("the line to be cut off", refused)


def test_what_can_be_played(folder: Path, play: FakeRun) -> None:
    training = FakeRun(folder, "controls-20261127-201400-birch")
    assert not can_play(training.run)
    with pytest.raises(DataError, match="`cockpit export controls-20261127-201400-birch`"):
        open_play(training.run)
    (training.run.export / "control_policy_v2.pt").write_bytes(b"x")
    assert can_play(training.run)
    assert not can_play(play.run)
    with pytest.raises(UserError, match="is a task with nothing to show now"):
        open_play(play.run)
    with play.locked(), FakeScenes(play):
        assert can_play(play.run)
        assert open_play(play.run) == Viewing(play.run, started=False)


def test_what_is_set_is_an_argument_of_the_task_and_part_of_the_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunDirectory] = []
    monkeypatch.setattr(launch, "start", started.append)
    training = FakeRun(folder, "controls-20261127-201400-birch").run
    (training.export / "control_policy_v2.pt").write_bytes(b"x")
    play = open_play(training, more={"speed": 0.1}).run
    order, _ = yaml12.read(play.config.read_text())
    assert order["arguments"] == {"run": str(training.path), "recording": "", "speed": 0.1}
    monkeypatch.setattr("cockpit.core.scenes.play.lock_holder", lambda path: 1)
    assert open_play(training, more={"speed": 0.1}).run.path.samefile(play.path), "the engine that waits"
    assert not open_play(training, more={"speed": 0.2}).run.path.samefile(play.path)
    assert len(started) == 2
