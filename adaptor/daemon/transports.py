"""Gives each site the transport of its workers: a spool, a remote folder, or neither."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from adaptor.config.ssh import SshConfig
from adaptor.daemon.addresses import site_access
from adaptor.daemon.ports.server import Message, Server
from adaptor.daemon.remote.folder import RemoteFolder
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.remote.routes import DirectRoute, Route
from adaptor.daemon.remote.tunnel import Tunnel
from adaptor.daemon.site import Site
from adaptor.daemon.spool.endpoint import SpoolEndpoint
from adaptor.errors import JournalError
from adaptor.protocol.keys import Keys
from adaptor.protocol.seal import Seal
from adaptor.protocol.spool import Spool
from backends.machines.distant import Distant


def set_up_remote_folder(
    site: Site,
    keys: Keys,
    here: Callable[[], tuple[str, ...]],
    stall: Callable[[JournalError], None],
) -> None:
    """Give a site behind ssh its remote folder; other sites need none.

    Args:
        here: returns the addresses by which workers reach this machine.
        stall: receives the error if the journal cannot be written.
    """
    ssh = site.config.ssh
    if ssh is None or not isinstance(site.machine, Distant):
        return

    def changed(problem: str) -> None:
        site.wake.set()
        if problem:
            try:
                site.explain("problem", f"its workers could not reach the daemon: {problem}")
            except JournalError as error:
                stall(error)

    site.remote_folder = RemoteFolder(
        site.machine,
        # Several daemons may share one account there, and several sites one login node.
        Path(ssh.directory) / f"{site.core.journal.instance}.{site.name}",
        access=lambda addresses: site_access(keys, addresses),
        route=_route(site, ssh, site.machine, here),
        changed=changed,
    )


def _route(site: Site, ssh: SshConfig, machine: Distant, here: Callable[[], tuple[str, ...]]) -> Route:
    if ssh.link == "tunnel":
        return Tunnel(
            machine,
            python_of(site.config),
            site.core.server.worker_port,
            ssh.address,
            float(site.config.command_timeout),
        )

    async def addresses() -> tuple[str, ...]:
        return here() if site.spool is None else (await site.spool.locate(),)

    return DirectRoute(addresses)


def set_up_spool(
    site: Site,
    spool: Spool,
    keys: Keys,
    server: Server,
    hear: Callable[[list[Message]], Awaitable[None]],
    stall: Callable[[JournalError], None],
) -> None:
    """Exchange messages with a site's workers through a spool."""

    def complain(problem: str) -> None:
        try:
            site.explain("problem", problem)
        except JournalError as error:
            stall(error)

    site.spool = SpoolEndpoint(
        spool, Seal(keys.worker.key), hear=hear, pilots=lambda: list(site.pilots), complain=complain
    )
    server.other_transports.append(site.spool.send)
