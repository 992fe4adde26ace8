"""Gives each site the transport of its workers: a spool, a remote folder, or neither."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from adaptor.config.schema import SshConfig
from adaptor.daemon.remote.folder import RemoteFolder
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.remote.routes import Route, Tunnel
from adaptor.daemon.server import PeerMessage, site_access
from adaptor.daemon.site import Site
from adaptor.daemon.spool import SpoolEndpoint, open_spool
from adaptor.errors import JournalError
from adaptor.protocol.keys import Keys
from adaptor.protocol.maildir import Seal
from backends.machines.distant import Distant


def set_up_transport(
    site: Site,
    keys: Keys,
    hear: Callable[[list[PeerMessage]], Awaitable[None]],
    stall: Callable[[JournalError], None],
) -> None:
    """Give a site its spool, if it has one, and a site behind ssh its remote folder.

    Args:
        hear: gets the messages of workers.
        stall: receives the error if the journal cannot be written.

    Raises AdaptorError: the spool cannot be used.
    """

    def report(problem: str) -> None:
        try:
            site.explain("problem", problem)
        except JournalError as error:
            stall(error)

    def changed(problem: str) -> None:
        site.wake.set()
        if problem:
            report(f"its workers could not reach the daemon: {problem}")

    instance, ssh = site.core.journal.instance, site.config.ssh
    if site.config.spool:
        spool = open_spool(site.name, site.config, instance, site.machine.files)
        site.spool = SpoolEndpoint(
            spool, Seal(keys.worker.key), hear=hear, pilots=lambda: list(site.pilots), complain=report
        )
        site.core.server.other_transports.append(site.spool.send)
    if ssh is not None and isinstance(site.machine, Distant):
        site.remote_folder = RemoteFolder(
            site.machine,
            # Several daemons may share one account there, and several sites one login node.
            Path(ssh.directory) / f"{instance}.{site.name}",
            access=lambda addresses: site_access(keys, addresses),
            route=_route(site, ssh, site.machine),
            changed=changed,
        )


def _route(site: Site, ssh: SshConfig, machine: Distant) -> Route:
    if site.spool is not None:
        return Route(site.spool.locate)
    return Tunnel(
        machine,
        python_of(site.config),
        site.core.server.worker_port,
        ssh.address,
        float(site.config.command_timeout),
    )
