"""A follower in a process of its own, as ssh starts it: what of a runs folder arrives here, and what goes there."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.core.hosts import follower
from cockpit.core.hosts.address import Host
from cockpit.core.hosts.link import SENT_ALONG, Link
from cockpit.core.runs.summary import look
from engines.basics.errors import DataError
from engines.contract import commands as cmd
from tests.cockpit.driving import commands_of
from tests.e2e.conftest import wait_for
from tests.support.fake_run import FakeRun
from tests.support.near_ssh import use_near_ssh

Connect = Callable[..., Link]


@pytest.fixture
def connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Opens links: `connect()` to the runs folder of the test, `connect("bare")` to a machine without python3."""
    use_near_ssh(tmp_path, monkeypatch)
    opened: list[Link] = []

    def open_link(box: str = "box") -> Link:
        opened.append(Link(Host.parse(f"{box}:{tmp_path / 'runs'}")))
        opened[-1].start()
        opened[-1].wait(60)
        opened[-1].want("controls-20261127-201400-amber")  # the run of `theirs`, as if it were on the screen
        return opened[-1]

    yield open_link
    for link in opened:
        link.stop()


@pytest.fixture
def theirs(tmp_path: Path) -> FakeRun:
    """A run on the other machine, with what a mirror takes of one and what it leaves."""
    fake = FakeRun(tmp_path / "runs").begin().started().epochs(1, 2, best=2)
    (fake.run.steps / "00001.json").write_text('["step", "attempt", "loss"]')
    (fake.run.steps / "00001.f64").write_bytes(os.urandom(3 * follower.CHUNK))
    fake.run.stdout.write_text("hello\n")
    fake.run.last.write_bytes(b"weights")
    (fake.run.path / "events.txt").symlink_to("/etc/passwd")
    return fake


def mirrored(link: Link, fake: FakeRun) -> dict[str, bytes]:
    here = link.folder / fake.id
    return {str(path.relative_to(here)): path.read_bytes() for path in here.rglob("*") if path.is_file()}


def has(link: Link, fake: FakeRun, file: Path, content: bytes) -> Callable[[], bool]:
    name = str(file.relative_to(fake.run.path))
    return lambda: mirrored(link, fake).get(name) == content


@pytest.mark.behaviour("runs-of-other-machines")
def test_the_small_files_of_a_run_arrive_and_grow(connect: Connect, theirs: FakeRun) -> None:
    link, run = connect(), theirs.run
    wait_for("the output", has(link, theirs, run.stdout, b"hello\n"))
    arrived = mirrored(link, theirs)
    assert sorted(arrived) == [
        "attempts/1.json", "config_resolved.yaml", "events.jsonl", "logs/stdout.log", "metrics/steps/00001.f64",
        "metrics/steps/00001.json", "run.json",
    ]  # fmt: skip
    assert arrived == {name: (run.path / name).read_bytes() for name in arrived}

    with theirs.locked():
        wait_for("life", lambda: look(link.folder / theirs.id).state == "running")
        theirs.epochs(3)
        wait_for("an epoch", lambda: look(link.folder / theirs.id).done == 3)
        theirs.end("finished")
    wait_for("the end", lambda: look(link.folder / theirs.id).state == "finished")

    run.events.write_bytes(run.events.read_bytes()[:-1] + b" \n")  # written anew
    run.stdout.unlink()
    run.stdout.write_text("begun again\n")
    run.write_info(run.info)  # which is when an ended run is looked at again
    wait_for("the new output", has(link, theirs, run.stdout, b"begun again\n"))
    wait_for("the new events", has(link, theirs, run.events, run.events.read_bytes()))
    run.events.write_bytes(b"")
    run.write_info(run.info)
    wait_for("no events", has(link, theirs, run.events, b""))

    shutil.rmtree(run.path)
    wait_for("the run to be gone here too", lambda: not (link.folder / theirs.id).exists())


def test_a_new_connection_goes_on_where_the_last_one_ended(connect: Connect, theirs: FakeRun) -> None:
    first = connect()
    wait_for("the output", has(first, theirs, theirs.run.stdout, b"hello\n"))
    first.stop()
    here = first.folder / theirs.id
    inodes = {path: path.stat().st_ino for path in here.rglob("*") if path.is_file()}
    with theirs.run.stdout.open("a") as log:
        log.write("more\n")
    second = connect()
    wait_for("what came since", has(second, theirs, theirs.run.stdout, b"hello\nmore\n"))
    assert {path: path.stat().st_ino for path in inodes} == inodes  # a file that is sent anew is another one


def test_of_long_output_the_end_is_sent(connect: Connect, theirs: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(follower)
    short = source.replace("LONGEST_OUTPUT = 1 << 25", "LONGEST_OUTPUT = 4000").replace(
        "OUTPUT_KEPT = 1 << 20", "OUTPUT_KEPT = 1000"
    )
    get = inspect.getsource
    monkeypatch.setattr(inspect, "getsource", lambda of: short if of is follower else get(of))
    theirs.run.stdout.write_bytes(bytes(range(256)) * 20)
    link = connect()
    wait_for("the end of it", has(link, theirs, theirs.run.stdout, (bytes(range(256)) * 20)[-1000:]))
    with theirs.run.stdout.open("ab") as log:
        log.write(b"more")
    theirs.run.write_info(theirs.run.info)
    wait_for("what follows", has(link, theirs, theirs.run.stdout, (bytes(range(256)) * 20)[-1000:] + b"more"))


def test_commands_and_words_are_written_there(connect: Connect, theirs: FakeRun) -> None:
    link = connect()
    theirs.run.commands.write_bytes(b'{"type":"pau')  # torn by a full disk
    link.send(theirs.id, stop := cmd.Stop(attempt=1))
    assert commands_of(theirs) == [stop]
    assert theirs.run.commands.read_bytes().startswith(b'{"type":"pau\n{')
    link.describe(theirs.id, {"label": "ours", "tags": ["good"]})
    assert (theirs.run.info.label, theirs.run.info.tags, theirs.run.info.project) == ("ours", ["good"], "controls")
    wait_for("the label here", lambda: look(link.folder / theirs.id).label == "ours")
    for name in ("none", "../runs/" + theirs.id):
        with pytest.raises(DataError, match="it is gone"):
            link.send(name, stop)


@pytest.mark.behaviour("hostile-host")
def test_each_failure_is_said_with_what_to_do(connect: Connect, theirs: FakeRun, tmp_path: Path) -> None:
    assert "the login failed; run `ssh nobody@box` once" in connect("nobody@box").problem
    assert connect("bare").problem == "bare: it has no python3 in its PATH"
    assert connect("noisy").problem == ""  # greeted by its shell
    liar = connect("liar")
    assert "it names a run '../../x'" in liar.problem
    assert list(liar.folder.iterdir()) == []
    shutil.rmtree(tmp_path / "runs")
    assert f"{tmp_path / 'runs'} cannot be listed" in connect().problem
    with pytest.raises(DataError, match="The command was not sent"):
        liar.send(theirs.id, cmd.Stop(attempt=1))


def test_nobody_waits_for_an_answer_once_the_link_is_stopped(connect: Connect, theirs: FakeRun) -> None:
    link, failed = connect("mute"), []

    def send() -> None:
        with pytest.raises(DataError, match="no longer followed") as why:
            link.send(theirs.id, cmd.Stop(attempt=1))
        failed.append(why)

    sending = threading.Thread(target=send)
    sending.start()
    wait_for("the question", lambda: link._asked)
    link.stop()
    sending.join(5)
    assert failed


def test_a_long_look_says_that_it_goes_on(theirs: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "BEAT_SECONDS", -1.0)
    FakeRun(theirs.run.path.parent, "controls-20261127-201400-birch").begin()
    out = io.BytesIO()
    looking = follower.Follower(theirs.run.path.parent, {}, out)
    looking.look()
    out.truncate(0)
    looking._all_due = 0.0  # every file of every run, none of which has changed
    looking.look()
    assert out.getvalue().strip(b"\0").startswith(b"{}\n{}\n")


@pytest.mark.parametrize("name", ["cockpit.core.hosts.follower", *SENT_ALONG[3:]])
def test_what_is_sent_needs_the_standard_library_of_python_3_8_alone(name: str) -> None:
    import sys

    tree = ast.parse(inspect.getsource(importlib.import_module(name)), feature_version=(3, 8))
    imported = {
        module
        for node in ast.walk(tree)
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else
                       [one.name for one in node.names] if isinstance(node, ast.Import) else [])
    }  # fmt: skip
    assert {one for one in imported if one.partition(".")[0] not in sys.stdlib_module_names} <= set(SENT_ALONG)
