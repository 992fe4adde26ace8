"""Tasks run on a login node only where the user says so."""

from __future__ import annotations

import socket
from collections.abc import Collection

import click

from adaptor.api import DaemonView
from adaptor.errors import UsageError
from adaptor.protocol.state_directory import state_directory


class LoginNodeError(UsageError):
    """A batch scheduler answers here, and no configuration names it: tasks would run on this machine."""


def check_place(daemon: DaemonView | None, config: str | None, sites: Collection[str]) -> None:
    """Check that tasks without a configuration may run on this machine.

    With `sites` they may, and standard error says so.

    Args:
        daemon: the one that runs; None: none does.
        config: the value of `--config`.
        sites: those that the user has named; empty: none.

    Raises:
        LoginNodeError: this machine belongs to a cluster, and no site is named.
        ConfigError: the configuration with which unfinished work was submitted is gone.
    """
    if _configured(daemon, config):
        return
    from backends.registry import answering

    scheduler = answering()
    if not scheduler:
        return
    where = f"{scheduler} answers here, and there is no configuration"
    if sites:
        click.echo(f"adaptor: {where}: tasks run on this machine ({socket.gethostname()})", err=True)
        return
    ways = "run them on the cluster: adaptor site init (then repeat this)"
    if daemon is not None:
        where = f"{scheduler} answers here, and the daemon runs without a configuration"
        ways = "run them on the cluster: adaptor site init, if that is not done, and adaptor daemon restart"
    raise LoginNodeError(
        f"{where}, so tasks would run on this machine ({socket.gethostname()}); {ways};"
        " or run them on this machine: --site local"
    )


def _configured(daemon: DaemonView | None, config: str | None) -> bool:
    if daemon is not None:
        return bool(daemon.config_file)
    from adaptor.config.loading import config_path, configured_place
    from adaptor.daemon.configured import continued

    named = bool(configured_place(config)[1])
    return named or config_path(config) is not None or continued(state_directory(), config) is not None
