"""Which sites have a spool, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.daemon.remote.machines import python_of
from adaptor.errors import AdaptorError
from adaptor.processes.python_commands import module_command
from adaptor.protocol.maildir import LATENCY
from adaptor.protocol.spool.directory import DirectorySpool
from adaptor.protocol.spool.exchange import Spool, SpoolError
from adaptor.protocol.spool.remote import RemoteSpool, Talk

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
        words = module_command(python_of(config), "adaptor.protocol.spool.remote_server", folder)
        return RemoteSpool(lambda: start(words), float(config.command_timeout))
    try:
        return DirectorySpool(Path(folder).expanduser())
    except SpoolError as error:
        raise AdaptorError(f"sites.{name}.spool: {error}") from error
