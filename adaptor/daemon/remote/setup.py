"""Founding the outpost of a site that is reached over ssh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adaptor.config.ssh import SshConfig
from adaptor.daemon.addresses import site_access
from adaptor.daemon.remote.folder import Outpost
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.remote.routes import Standing, Way
from adaptor.daemon.remote.tunnel import Tunnel
from adaptor.daemon.site_state import SiteState
from adaptor.errors import JournalError
from adaptor.protocol.keys import Keys
from backends.machines.distant import Distant


def found_outpost(
    site: SiteState,
    keys: Keys,
    here: Callable[[], tuple[str, ...]],
    stall: Callable[[JournalError], None],
) -> None:
    """Give a distant site its outpost; another site needs none.

    Args:
        here: where workers find this machine.
        stall: is told that nothing can be written down.
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

    site.outpost = Outpost(
        site.machine,
        # Several daemons may share one account there, and several sites one login node.
        Path(ssh.directory) / f"{site.core.journal.instance}.{site.name}",
        access=lambda addresses: site_access(keys, addresses),
        way=_way(site, ssh, site.machine, here),
        changed=changed,
    )


def _way(site: SiteState, ssh: SshConfig, machine: Distant, here: Callable[[], tuple[str, ...]]) -> Way:
    if ssh.link == "tunnel":
        return Tunnel(
            machine,
            python_of(site.config),
            site.core.server.worker_port,
            ssh.address,
            float(site.config.command_timeout),
        )

    async def addresses() -> tuple[str, ...]:
        return here() if site.postman is None else (await site.postman.locate(),)

    return Standing(addresses)
