"""Through a real OpenSSH server: a training started and steered, the connection cut, and found again by the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.core.runs.remains import processes_of
from engines.basics.lock import lock_holder
from tests.e2e.conftest import COCKPIT, Terminal, wait_for
from tests.e2e.person import Person, answers, lines_of, write_config
from tests.e2e.sshd import SshServer, ssh_server
from tests.engines.conftest import alive


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    with ssh_server(folder) as server:
        yield server


def ready_to_connect(server: SshServer, folder: Path, env: dict[str, str], data: Path) -> str:
    """The command that opens a cockpit at the other end, with a config in its folder."""
    write_config(folder, data)
    passed = {name: env[name] for name in ("HOME", "COCKPIT_RUNS", "COCKPIT_QUEUE")} | {"LANG": "C.UTF-8"}
    return server.command(str(COCKPIT), folder, passed)


@pytest.mark.behaviour("cut-ssh-connection-through")
def test_a_cut_connection_costs_nothing(
    terminal: Callable[..., Terminal], server: SshServer, tmp_path: Path, env: dict[str, str], demo_data: Path
) -> None:
    connect = ready_to_connect(server, tmp_path, env, demo_data)
    line = terminal(connect, (100, 30))
    me = Person(line, tmp_path / "runs")
    run = me.start_from_a_form()
    reweighted = me.change_weights(look=0.8, hotbar=2)
    rescaled = me.change_rate(0.5)
    paused, continued = me.pause_and_continue()
    steered = (("set_loss_weights", reweighted), ("set_lr_scale", rescaled), ("pause", paused), ("continue", continued))
    for kind, step in steered:
        assert ("applied", step) in answers(run, kind)

    watching = server.at_the_other_end()
    assert watching
    server.cut()
    wait_for("the line to be dead", lambda: line.screen() == "", line.screen)
    wait_for("what ran at its other end to be gone", lambda: not any(alive(process.pid) for process in watching))
    before = len(lines_of(run.train_metrics))
    wait_for("epochs that nobody sees", lambda: len(lines_of(run.train_metrics)) >= before + 2)

    again = Person(terminal(connect, (120, 160)), tmp_path / "runs")
    again.see(rf"● running +{run.path.name.rpartition('-')[2]} ")
    again.press("Enter")
    again.see(rf"◢ \S*{run.path.name.rpartition('-')[2]} .*● running")
    again.stop()
    written = {row["epoch"]: f"{row['loss']:.3f}" for row in lines_of(run.train_metrics)}
    table = {epoch: cells[1] for epoch, cells in again.rows(len(written)).items()}
    assert list(written) == list(range(1, len(written) + 1))
    assert table == written
    assert len(written) >= before + 2
    attempt = run.newest_attempt()
    assert attempt is not None
    assert lock_holder(run.lock) is None
    assert processes_of(attempt.supervisor) == []


@pytest.mark.slow
@pytest.mark.behaviour("frozen-ssh-connection-holds-nothing")
def test_a_frozen_connection_holds_nothing_up(
    terminal: Callable[..., Terminal], server: SshServer, tmp_path: Path, env: dict[str, str], demo_data: Path
) -> None:
    """The line freezes while the cockpit draws: the training goes on, a second line stops it, the first one follows."""
    connect = ready_to_connect(server, tmp_path, env, demo_data)
    frozen = Person(terminal(connect, (120, 160)), tmp_path / "runs")
    run = frozen.start_from_a_form()
    server.freeze()
    before = len(lines_of(run.train_metrics))
    shown = frozen.terminal.screen()
    wait_for("epochs that nobody sees", lambda: len(lines_of(run.train_metrics)) >= before + 5)
    assert frozen.terminal.screen() == shown

    other = Person(terminal(connect, (120, 160)), tmp_path / "runs")
    other.see(rf"● running +{run.path.name.rpartition('-')[2]} ")
    other.press("Enter")
    other.see(rf"◢ \S*{run.path.name.rpartition('-')[2]} .*● running")
    other.stop()
    written = {row["epoch"]: f"{row['loss']:.3f}" for row in lines_of(run.train_metrics)}
    assert list(written) == list(range(1, len(written) + 1))
    assert {epoch: cells[1] for epoch, cells in other.rows(len(written)).items()} == written

    server.thaw()
    frozen.see("■ stopped")
    assert {epoch: cells[1] for epoch, cells in frozen.rows(len(written)).items()} == written
    assert lock_holder(run.lock) is None
