"""Connections over ssh that are refused, cut and hung."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from adaptor.backoff import Backoff
from adaptor.config.schema import SshConfig
from backends.base import SchedulerError
from backends.machines import connection
from backends.machines.base import CommandHung
from backends.machines.distant import Distant
from tests.backends.expiring import expired
from tests.clusters.proxy import Proxy
from tests.clusters.sshd import ThrowawaySshd
from tests.living import PATIENCE, is_alive, names_below, until

pytestmark = pytest.mark.ssh


def reached(server: ThrowawaySshd, port: int | None = None, **changes: object) -> Distant:
    return Distant(msgspec.convert({**server.site(port), **changes}, SshConfig), {}, 20, sys.executable)


@pytest.fixture
def proxy(sshd: ThrowawaySshd) -> Iterator[Proxy]:
    with Proxy(sshd.port) as between:
        yield between


@pytest.fixture
def machine(sshd: ThrowawaySshd, proxy: Proxy) -> Iterator[Distant]:
    made = reached(sshd, proxy.port)
    yield made
    made.close()


def says(machine: Distant, *arguments: str) -> str:
    return machine.run(arguments, machine.variables(), 20).output


def in_background(work: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    """Runs it in a thread; the error that it ends with."""
    caught: list[Exception] = []

    def run() -> None:
        try:
            work()
        except SchedulerError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, caught


def test_a_machine_that_is_not_there_is_named_and_not_asked_at_every_turn(
    sshd: ThrowawaySshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        machine = reached(sshd, nobody.getsockname()[1])
        machine.connection._pause = Backoff(first=3600, most=3600)
        with pytest.raises(SchedulerError, match=r"ssh 127.0.0.1: cannot connect: .*Connection refused"):
            machine.variables()
    monkeypatch.setattr(connection, "_Login", None)  # whoever tries it now fails in another way
    with pytest.raises(SchedulerError, match="Connection refused"):
        machine.variables()


def test_a_stranger_is_told_so_and_nothing_is_asked_of_the_user(sshd: ThrowawaySshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("")
    options = {**msgspec.convert(sshd.site()["options"], dict[str, str]), "UserKnownHostsFile": str(known)}
    with pytest.raises(SchedulerError, match=r"(?i)host key .* \(connect once by hand"):
        reached(sshd, options=options).variables()
    with pytest.raises(SchedulerError, match=r"Permission denied .*see `identity`"):
        reached(sshd, identity=str(sshd.root / "host_key")).variables()


def test_a_machine_that_never_answers_is_given_up(
    machine: Distant, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 1.0)
    proxy.hang()
    with pytest.raises(SchedulerError, match="cannot connect: no answer within"):
        machine.variables()


def test_leaving_does_not_wait_for_a_machine_that_never_answers(
    machine: Distant, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 600.0)
    proxy.hang()
    thread, caught = in_background(machine.variables)
    until(lambda: "ssh" in names_below(psutil.Process()), "it happens")

    def left() -> bool:
        machine.close()
        return not thread.is_alive()

    until(left, "it happens")
    assert caught


def test_leaving_does_not_wait_for_a_connection_whose_process_is_not_known_yet(
    sshd: ThrowawaySshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting, looked = threading.Event(), threading.Event()
    give_up = connection.SshConnection._give_up_connecting

    def look(self: connection.SshConnection) -> None:
        give_up(self)
        looked.set()

    class Late:
        def __init__(self, _: SshConfig, __: Path, started: Callable[[object], None]) -> None:
            connecting.set()
            looked.wait()
            process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            started(process)
            process.wait()
            raise SchedulerError("it was killed")

    monkeypatch.setattr(connection, "_Login", Late)
    monkeypatch.setattr(connection.SshConnection, "_give_up_connecting", look)
    machine = reached(sshd)
    thread, caught = in_background(machine.variables)
    connecting.wait()
    machine.close()
    thread.join()
    assert str(caught[0]) == "it was killed"


@pytest.fixture
def own_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """For the sockets of connections: whoever connects sweeps the usual one. Their paths must be short."""
    with tempfile.TemporaryDirectory(prefix="ssh-", dir="/tmp") as name:
        monkeypatch.setattr(connection, "_PLACE", name)
        yield name


def test_nothing_is_left_of_a_daemon_that_is_killed(sshd: ThrowawaySshd, own_place: str) -> None:
    code = (
        "import json, sys, msgspec\n"
        "from adaptor.config.schema import SshConfig\n"
        "from backends.machines import connection\n"
        "from backends.machines.distant import Distant\n"
        "connection._PLACE = sys.argv[2]\n"
        "machine = Distant(msgspec.convert(json.loads(sys.argv[1]), SshConfig), {}, 20, sys.executable)\n"
        "talk = machine.start(['cat'])\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, json.dumps(sshd.site()), own_place]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        links = psutil.Process(daemon.pid).children()
        assert links
        command_line = links[0].cmdline()
        daemon.kill()
    until(lambda: not any(is_alive(link) for link in links), "it happens")
    sockets = [word.partition("=")[2] for word in command_line if word.startswith("ControlPath=")]
    assert [Path(path).parent.exists() for path in sockets] == [True]
    next_one = reached(sshd)
    says(next_one, "true")
    next_one.close()
    assert not Path(sockets[0]).parent.exists()


def test_after_a_cut_the_next_command_connects_anew(machine: Distant, proxy: Proxy) -> None:
    assert says(machine, "echo", "first") == "first\n"
    proxy.cut()
    until(lambda: not machine.connection.alive(), "it happens")
    assert says(machine, "echo", "second") == "second\n"
    assert machine.connection.number == 2


def test_a_cut_in_the_middle_of_a_command_leaves_open_what_it_did(
    machine: Distant, proxy: Proxy, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    thread, caught = in_background(lambda: says(machine, "sh", "-c", f"echo > {started}; sleep 300"))
    until(started.exists, "it happens")
    proxy.cut()
    thread.join(PATIENCE)
    assert isinstance(caught[0], CommandHung)
    assert "sh: the connection was lost before it had answered" in str(caught[0])


def test_a_connection_that_falls_silent_is_given_up(
    sshd: ThrowawaySshd, proxy: Proxy, tmp_path: Path
) -> None:
    options = {**msgspec.convert(sshd.site()["options"], dict[str, str]), "ServerAliveInterval": "1"}
    # Little patience would also give up a connection that a busy machine lets wait.
    machine = reached(sshd, proxy.port, options={**options, "ServerAliveCountMax": "8"})
    started = tmp_path / "started"
    thread, caught = in_background(lambda: says(machine, "sh", "-c", f"echo > {started}; sleep 300"))
    until(started.exists, "it happens")
    proxy.hang()
    thread.join(PATIENCE)
    assert isinstance(caught[0], CommandHung)
    proxy.cut()
    proxy.flow()
    until(lambda: not machine.connection.alive(), "it happens")
    assert says(machine, "echo", "again") == "again\n"
    machine.close()


def test_a_command_on_the_other_side_does_not_outlive_its_time(
    machine: Distant, proxy: Proxy, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    work = ("sh", "-c", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 300")

    def cut_off(limit: int) -> None:
        thread, _ = in_background(lambda: machine.run(work, machine.variables(), limit))
        until(lambda: pid.exists() or not thread.is_alive(), "it happens")
        proxy.cut()
        thread.join(PATIENCE)

    expired(cut_off, lambda _: pid.exists())
    process = int(pid.read_text())
    until(lambda: not is_alive(process), "it happens")


def test_many_threads_share_one_connection(machine: Distant) -> None:
    heard: list[str] = []
    threads = [
        threading.Thread(target=lambda number=number: heard.append(says(machine, "echo", str(number))))
        for number in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(heard) == [f"{number}\n" for number in range(5)]
    assert machine.connection.number == 1


def test_what_is_left_of_a_connection_goes_with_it(machine: Distant) -> None:
    before = psutil.Process().children()
    says(machine, "true")
    own = [process for process in psutil.Process().children() if process not in before and is_alive(process)]
    assert own
    machine.close()
    until(lambda: not any(is_alive(process) for process in own), "it happens")


def test_a_noisy_login_shell_does_not_get_into_the_answers(sshd: ThrowawaySshd) -> None:
    startup = sshd.home / ".bashrc"
    startup.write_text("echo Welcome to the cluster; echo be quiet >&2\n")
    machine = reached(sshd)
    try:
        assert says(machine, "echo", "answer") == "answer\n"
        assert machine.run(["sh", "-c", "echo no >&2"], machine.variables(), 20).errors == "no\n"
        talk = machine.start(["cat"])
        assert talk.process.stdin is not None
        assert talk.process.stdout is not None
        talk.process.stdin.write(b"line\n")
        assert talk.process.stdout.readline() == b"line\n"
        talk.end()
    finally:
        machine.close()
        startup.unlink()
