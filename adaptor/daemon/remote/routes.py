"""Routes of the workers of a remote site to the daemon; the tunnel uses the ssh connection that is open
already.

    worker → relay on the login node → loopback there → ssh → loopback here → daemon

The first arrow is needed because sshd (`GatewayPorts no`, the default) lets the remote end of a forwarding
listen on the loopback only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.processes.commands import module_command
from adaptor.processes.talk import Talk
from adaptor.protocol.decoding import decoded
from adaptor.protocol.relay import Opened
from backends.base import SchedulerError
from backends.machines.distant import Distant


class Route:
    """The route of a remote site's workers to the daemon; this one, by a spool, needs nothing."""

    caveat = ""  # a reason that may keep workers from the daemon; empty: none known

    def __init__(self, address: Callable[[], Awaitable[str]]) -> None:
        self._address = address

    async def open(self, folder: Path) -> tuple[str, ...]:  # noqa: ARG002
        """The addresses for the workers, the likeliest first; the site's folder there is absolute.

        Raises AdaptorError: the route cannot be opened now.
        """
        return (await self._address(),)

    @property
    def alive(self) -> bool:
        """Whether the addresses are still valid."""
        return True

    def keep_alive(self) -> None:
        """Show the other end that the daemon lives. Raises OSError: the other end is gone."""

    async def close(self) -> None:
        """End what `open` has begun."""


class Tunnel(Route):
    def __init__(self, machine: Distant, python: str, port: int, host: str | None, timeout: float) -> None:
        """
        Args:
            port: where the daemon listens for workers, on the loopback here.
            host: by which the nodes reach the login node; None: its addresses in turn.
            timeout: seconds that the relay may take to start.
        """
        self._machine = machine
        self._python = python
        self._port = port
        self._host = host
        self._timeout = timeout
        self._relay: Talk | None = None
        self.caveat = ""

    async def open(self, folder: Path) -> tuple[str, ...]:
        """Open the tunnel. Raises SchedulerError: the machine cannot be reached, or refuses the tunnel."""
        opened = await asyncio.to_thread(self._open, folder)
        self.caveat = (
            f"do the nodes reach {opened[0].removeprefix('tcp://')} on their login node? "
            "`ssh.address` may name another address of it"
        )
        return opened

    def _open(self, folder: Path) -> tuple[str, ...]:
        self._end()
        remote_port = self._machine.forward(self._port)
        host = () if self._host is None else (self._host,)
        self._relay = self._machine.start(
            module_command(self._python, "adaptor.protocol.relay", str(remote_port), str(folder), *host)
        )
        try:
            opened = _opened(self._relay, self._timeout)
        except SchedulerError:
            self._end()
            raise
        return opened.addresses

    @property
    def alive(self) -> bool:
        return self._relay is not None and self._relay.process.poll() is None

    def keep_alive(self) -> None:
        """Send the relay a byte. Raises OSError: the relay is gone."""
        if self._relay is not None and self._relay.process.stdin is not None:
            self._relay.process.stdin.write(b"\n")
            self._relay.process.stdin.flush()

    async def close(self) -> None:
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.end()


_opened_line = msgspec.json.Decoder(Opened)


def _opened(relay: Talk, timeout: float) -> Opened:
    line = relay.read_until(b"\n", timeout)
    try:
        opened = decoded(_opened_line.decode, line)
    except msgspec.DecodeError as error:
        said = relay.complaint() or line[:200].decode(errors="replace").strip() or "it has ended"
        raise SchedulerError(f"the tunnel's relay does not start: {said}") from error
    if opened.version != __version__:
        raise SchedulerError(
            f"the tunnel's relay is version {opened.version} and the daemon {__version__}: "
            "install the same version on both"
        )
    return opened
