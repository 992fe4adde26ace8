"""Checks of `adaptor site check`: whether a remote login node has what the daemon and its workers need."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from adaptor import __version__
from adaptor.config.schema import SiteConfig, SshConfig
from adaptor.daemon.clock import SKEW, system_clock
from adaptor.daemon.remote.machines import make_machine, python_of
from adaptor.daemon.remote.routes import Tunnel
from adaptor.processes.commands import code_command
from backends.base import SchedulerError
from backends.commands import Commands
from backends.findings import Finding, error, ok, warning
from backends.machines.base import Machine
from backends.machines.distant import Distant

_SLOW = 1.0  # seconds of one command after which the shell's start-up files are worth a look
_VERSION = "import adaptor.worker.agent, adaptor.protocol.relay; print(adaptor.__version__)"
_GREETING = b"request adaptor?"
_CALL = f"""\
import socket, sys
greeting = {_GREETING!r}
for address in sys.argv[1:]:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 5) as connection:
            connection.sendall(greeting)
            if connection.recv(100) == greeting:
                print(address)
                break
    except OSError:
        pass
"""
"""Run there: prints the first address that answers with the greeting of this process."""


def check_where_it_is(
    site: SiteConfig, check: Callable[[SiteConfig, Machine], list[Finding]]
) -> list[Finding]:
    """The findings of `check` on the site's machine; of a distant one, first those on the way to it."""
    machine = make_machine(site)
    try:
        reached = check_reached(site, site.ssh, machine) if isinstance(machine, Distant) and site.ssh else []
        if any(finding.level == "error" for finding in reached):
            return reached
        return [*reached, *check(site, machine)]
    finally:
        machine.close()


def check_reached(site: SiteConfig, ssh: SshConfig, machine: Distant) -> list[Finding]:
    """Findings on a remote site: good ones, warnings and errors. Submits nothing."""
    found: list[Finding] = []
    try:
        found.extend(_findings(site, ssh, machine))  # findings before an error are kept
    except SchedulerError as problem:
        found.append(error(str(problem)))
    return found


def _findings(site: SiteConfig, ssh: SshConfig, machine: Distant) -> Iterator[Finding]:
    commands = Commands(lambda own: own, float(site.command_timeout), machine)
    yield from _connection(ssh, commands)
    yield from _package(site, commands)
    folder = machine.private_folder(Path(ssh.directory))
    yield ok(f"{folder} there is a folder of your own alone")
    if site.spool is None:
        yield from _tunnel(site, ssh, machine, commands, folder)


def _connection(ssh: SshConfig, commands: Commands) -> Iterator[Finding]:
    commands.ask("true")
    began = system_clock()
    there = float(commands.ask("date", "+%s.%N"))
    took = system_clock() - began
    yield ok(f"ssh {ssh.host} answers; a command takes {took * 1000:.0f} ms")
    if took > _SLOW:
        yield warning("every command waits for your shell's start-up files there: shorten them for ssh")
    skew = max(began - there, there - began - took, 0.0)
    if skew > SKEW:
        yield warning(
            f"its clock is {skew:.0f} s off this machine's: the times of starts and ends will be wrong"
        )


def _package(site: SiteConfig, commands: Commands) -> Iterator[Finding]:
    python = python_of(site)
    answer = commands.run(*code_command(python, _VERSION))
    version = answer.output.strip()
    if answer.status:
        problem = answer.complaint.splitlines()[-1] if "Error" in answer.complaint else answer.complaint
        raise SchedulerError(
            f"python ({python}) there lacks this package; install the adaptor for it ({problem})"
        )
    if version != __version__:
        raise SchedulerError(
            f"python ({python}) there has version {version} of this package, this machine {__version__}: "
            "install the same version on both"
        )
    yield ok(f"python ({python}) there has this package in version {version}")


def _tunnel(
    site: SiteConfig, ssh: SshConfig, machine: Distant, commands: Commands, folder: Path
) -> Iterator[Finding]:
    with _greeting() as port:
        tunnel = Tunnel(machine, python_of(site), port, ssh.address, float(site.command_timeout))
        try:
            named = asyncio.run(tunnel.open(folder))
            heard = _heard(site, commands, named)
        finally:
            asyncio.run(tunnel.close())
    if heard:
        yield ok(f"a tunnel leads from {heard} there to this machine; the nodes have to reach that address")
    else:
        yield error(f"the tunnel's end there is reached at none of {', '.join(map(_bare, named))}")


def _heard(site: SiteConfig, commands: Commands, named: Sequence[str]) -> str:
    """The first of these addresses at which this machine is heard there; empty: none."""
    return commands.ask(*code_command(python_of(site), _CALL, *map(_bare, named))).strip()


def _bare(address: str) -> str:
    return address.removeprefix("tcp://")


@contextlib.contextmanager
def _greeting() -> Iterator[int]:
    """A port of the loopback that greets each caller, one after the other; its number."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = listener.accept()
                with caller, contextlib.suppress(OSError):
                    caller.settimeout(5)
                    caller.recv(100)
                    caller.sendall(_GREETING)

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
