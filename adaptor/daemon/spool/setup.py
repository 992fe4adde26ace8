"""Which sites have a spool, where it is, and how the daemon connects to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.server import Message, Server
from adaptor.daemon.site import Site
from adaptor.daemon.spool.endpoint import SpoolEndpoint
from adaptor.errors import AdaptorError, JournalError
from adaptor.protocol.keys import Keys
from adaptor.protocol.spool.directory import DirectorySpool
from adaptor.protocol.spool.exchange import Spool, SpoolError
from adaptor.protocol.spool.layout import LATENCY
from adaptor.protocol.spool.remote import RemoteSpool, Talk
from adaptor.protocol.spool.seal import Seal

Start = Callable[[Sequence[str]], Talk]
"""Starts a long-lived process on the site's machine."""


def spool_of(config: SiteConfig) -> str | None:
    """The folder of a site's spools, relative to the home directory on its machine; None: no spool."""
    if config.ssh is None:
        return config.spool
    if config.ssh.link != "spool":
        return None
    return config.spool or f"{config.ssh.directory}/spool"


def latency_of(config: SiteConfig) -> float:
    """Seconds that a message to or from a worker of the site usually takes, at most."""
    return LATENCY if spool_of(config) else 0.0


def open_spool(name: str, config: SiteConfig, instance: str, start: Start) -> Spool:
    """A site's spool, in a folder of its own: several daemons and sites may share the parent.

    Raises:
        AdaptorError: it is a folder of this machine and cannot be used.
    """
    folder = f"{spool_of(config)}/{instance}.{name}"
    if config.ssh is not None:
        words = (python_of(config), "-m", "adaptor.protocol.spool.remote_server", folder)
        return RemoteSpool(lambda: start(words), float(config.command_timeout))
    try:
        return DirectorySpool(Path(folder).expanduser())
    except SpoolError as error:
        raise AdaptorError(f"sites.{name}.spool: {error}") from error


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
        spool, Seal(keys.worker.secret), hear=hear, pilots=lambda: list(site.pilots), complain=complain
    )
    server.other_transports.append(site.spool.send)
