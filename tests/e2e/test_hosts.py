"""Two machines over real OpenSSH servers: their runs in one list, steered from here; links that are cut and freeze."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cockpit.core.hosts import conversation
from cockpit.core.hosts.address import Host
from cockpit.core.hosts.link import Link
from cockpit.core.runs.summary import look
from engines.basics.errors import DataError
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.runs.store import list_runs
from tests.cockpit.driving import commands_of
from tests.e2e.conftest import COCKPIT, Terminal, end_runs, wait_for
from tests.e2e.person import CONFIG, Person, answers, lines_of
from tests.e2e.sshd import SshServer, client_with, ssh_server
from tests.support.fake_run import FakeRun


@pytest.fixture
def near(tmp_path: Path) -> Iterator[SshServer]:
    with _server(tmp_path / "ssh_near") as server:
        yield server


@pytest.fixture
def far(tmp_path: Path) -> Iterator[SshServer]:
    with _server(tmp_path / "ssh_far") as server:
        yield server


def _server(folder: Path):  # type: ignore[no-untyped-def]
    folder.mkdir(mode=0o700)
    return ssh_server(folder)


def start_there(client: Path, runs: Path, data: Path, folder: Path) -> None:
    """A training on the machine `near`, as its user would start it there."""
    config = folder / "there.yaml"
    config.write_text(CONFIG.format(data=data))
    endless = ["--set", "training.patience=4000"]  # else it may stop by itself as it is stopped from here
    words = shlex.join(["env", f"COCKPIT_RUNS={runs}", str(COCKPIT), "train", str(config), "--detach", *endless])
    subprocess.run([client / "ssh", "near", f"cd {shlex.quote(str(folder))} && {words}"], check=True)


@pytest.mark.behaviour("runs-of-other-machines")
def test_two_machines_are_one_list(
    terminal: Callable[..., Terminal],
    near: SshServer,
    far: SshServer,
    tmp_path: Path,
    env: dict[str, str],
    demo_data: Path,
) -> None:
    """A training there is seen, its weights are changed, it is stopped from here; a cut link is stale and returns."""
    client = client_with(tmp_path, {"near": near, "far": far})
    theirs, others = tmp_path / "runs near", tmp_path / "runs far"
    start_there(client, theirs, demo_data, tmp_path)
    [run] = list_runs(theirs)
    other = FakeRun(others).begin().started().epochs(1, 2)
    try:
        with other.locked():
            words = shlex.join([str(COCKPIT), "--host", f"near:{theirs}", "--host", f"far:{others}"])
            path = shlex.quote(f"{client}:{env['PATH']}")
            me = Person(terminal(f"env PATH={path} {words}", (120, 160)), theirs)
            word = run.path.name.rpartition("-")[2]
            me.see(rf"● running +near:{word} ")
            me.see(r"● running +far:amber +2/4 ")

            far.cut()
            me.see(r"~ stale +far:amber +2/4 ")
            me.see(r"far stale since \d\d:\d\d")
            other.epochs(3)
            me.see(r"● running +far:amber +3/4 ")

        me.see(r"\? lost +far:amber ")
        me.press("Home", "Enter")
        me.see(rf"◢ near:\S*{word} .*● running")
        step = me.change_weights(look=0.8, hotbar=2)
        assert ("applied", step) in answers(run, "set_loss_weights")
        me.press("s")
        me.see("■ stopped")
        wait_for("the engine to be gone", lambda: lock_holder(run.lock) is None)
        written = {row["epoch"]: f"{row['loss']:.3f}" for row in lines_of(run.train_metrics)}
        assert {epoch: cells[1] for epoch, cells in me.rows(len(written)).items()} == written
    finally:
        end_runs(theirs)


@pytest.mark.behaviour("runs-of-other-machines")
def test_a_frozen_link_is_noticed_and_replaced(far: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes through, without an error: its runs are stale, commands are refused, and a new link takes over."""
    monkeypatch.setenv("PATH", str(client_with(tmp_path, {"far": far})), prepend=":")
    other = FakeRun(tmp_path / "runs far").begin().started().epochs(1)
    link = Link(Host.parse(f"far:{other.run.path.parent}"))
    link.start()
    with ExitStack() as stack, other.locked():
        stack.callback(link.stop)
        assert link.wait(60)
        with monkeypatch.context() as patch:  # only while it is frozen: a busy machine may be silent for as long
            patch.setattr(conversation, "SILENT_SECONDS", 2.0)
            far.freeze()
            wait_for("the link to be stale", lambda: link.stale)
        assert "far is stale since" in link.stale
        assert "it does not answer" in link.stale
        with pytest.raises(DataError, match=r"far is stale since .* was not sent"):
            link.send(other.id, cmd.Pause(attempt=1))
        other.epochs(2)
        wait_for("another link", lambda: not link.stale)
        assert look(link.folder / other.id).done == 2
        link.send(other.id, pause := cmd.Pause(attempt=1))
        assert commands_of(other) == [pause]
