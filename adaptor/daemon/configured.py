"""The configuration of the daemon: loaded at its start, and when `adaptor daemon restart` finds it edited.

A reload checks the new configuration while the old one goes on: it is read, each scheduler is asked for its
limits, and folders are opened. Only then does the daemon end its service and begin another one in the same
process, as after a restart, which loses nothing: pilots and workers go on and are met again.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from adaptor import api
from adaptor.config.loading import (
    config_path,
    digest_of,
    goes_on_with,
    last_config,
    last_sites,
    load_config,
)
from adaptor.config.schema import Config
from adaptor.daemon.clock import system_clock
from adaptor.daemon.remote.machines import make_machine
from adaptor.daemon.sites import first_limits, former_local_site, make_backends
from adaptor.daemon.spool import open_spool
from adaptor.errors import ConfigError, VanishedSitesError
from adaptor.journal.database import FILE, OWNERS_PATIENCE
from adaptor.journal.queries import answer_offline
from adaptor.model import Limits

_MOST_BAGS = 1000  # unfinished bags that are looked at
_SHOWN = 3  # pilots and bags that are named in one message


class Configured(msgspec.Struct, frozen=True):
    """A configuration and where it came from."""

    option: str | None  # the value of `--config`
    path: Path | None  # the file; None: there is none, and this machine is the only site
    config: Config
    digest: str  # of the file's content; empty: there is none
    limits: Mapping[str, Limits] | None = None
    """Limits of each site by its scheduler when the configuration was checked; None: it was not."""


def configured(option: str | None) -> Configured:
    """Load the configuration. Raises ConfigError: the file is missing, or cannot be understood."""
    path = config_path(option)
    digest = digest_of(path) if path is not None else ""
    return Configured(option, path, load_config(path), digest)


def continued(directory: Path, option: str | None) -> Path | None:
    """The file of the last daemon, if no file is named and that daemon left unfinished work; else None.

    Without it the work would go on at other sites, next to the pilots that the last daemon submitted.

    `option`: the value of `--config`.

    Raises:
        ConfigError: the file is gone.
        JournalError: the journal cannot be read.
    """
    last = last_config(directory)
    if option or os.environ.get("ADAPTOR_CONFIG") or last is None or not any(_unfinished(directory, 1)):
        return None
    if goes_on_with(last, config_path()):
        return None
    if not last.is_file():
        raise ConfigError(
            f"{last}: no such file; the last daemon used it and left unfinished work: name its configuration"
            " with --config"
        )
    return last


def _unfinished(directory: Path, most: int) -> tuple[list[api.BagView], list[api.PilotRecord]]:
    """The newest bags that have not ended, up to a limit, and the pilots in the system."""
    if not (directory / FILE).exists():
        return [], []
    now = system_clock()
    bags = answer_offline(directory, api.GetLatestBags(running=most, ended=0), now, OWNERS_PATIENCE).bags
    return bags, answer_offline(directory, api.GetPilots(), now, OWNERS_PATIENCE)


def check_sites(directory: Path, given: Configured) -> None:
    """Raises VanishedSitesError: sites of the last daemon, on which pilots or bags depend, are gone."""
    before = last_sites(directory)
    if not set(before) <= set(given.config.sites):
        bags, pilots = _unfinished(directory, _MOST_BAGS)
        check_removed(
            before,
            given,
            [(pilot.id, pilot.site) for pilot in pilots],
            [(bag.id, bag.sites) for bag in bags],
            directory,
        )


def check_removed(
    before: Collection[str],
    given: Configured,
    pilots: Iterable[tuple[int, str]],
    bags: Iterable[tuple[int, Collection[str]]],
    directory: Path,
) -> None:
    """Check that nothing depends on sites that are not configured any more.

    Their pilots would run on unobserved, and their bags elsewhere: on the login node, for instance. Pilots of
    a local site are processes of this machine, which are looked up until they have ended.

    Args:
        before: the sites of the last configuration.
        pilots: those in the system, and their sites.
        bags: the unfinished ones, and the sites that they may use; none: all.

    Raises VanishedSitesError: something does.
    """
    now = set(given.config.sites)
    gone = set(before) - now
    needs = [
        f"pilot {pilot} of {site} is in the system"
        for pilot, site in pilots
        if site in gone and former_local_site(site, directory) is None
    ]
    for bag, sites in bags:
        if not now & (set(sites) or set(before)) and gone & (set(sites) or set(before)):
            needs.append(f"bag {bag} may run only there" if sites else f"bag {bag} runs there")
    if needs:
        more = f" and {len(needs) - _SHOWN} more" if len(needs) > _SHOWN else ""
        raise VanishedSitesError(
            f"{given.path or 'without a configuration'}: {', '.join(sorted(gone))} would be no site any more,"
            f" but {'; '.join(needs[:_SHOWN])}{more}. Name the configuration that has it (the last one:"
            f" {last_config(directory) or 'none'}) with --config, or go on without it: adaptor daemon stop,"
            " then adaptor daemon start --drop-sites"
        )


def checked_anew(before: Configured, directory: Path, instance: str) -> Configured:
    """The file as it is now, checked as a start would; it may take as long as the schedulers do.

    Raises AdaptorError: it cannot be used.
    """
    path = config_path(before.option)
    if path is None and before.path is not None:
        raise ConfigError(f"{before.path}: the configuration is gone; the daemon keeps what it loaded")
    now = configured(before.option)
    machines = {name: make_machine(site) for name, site in now.config.sites.items()}
    try:
        backends = make_backends(now.config, directory, machines)
        limits = first_limits(now.config, backends)
        for name, site in now.config.sites.items():
            if site.ssh is None and site.spool:
                open_spool(name, site, instance, machines[name].files)
    finally:
        for machine in machines.values():
            machine.close()
    return msgspec.structs.replace(now, limits=limits)


def changes(before: Configured, now: Configured) -> api.Reloading:
    """Changes of the configuration that a reload takes over."""
    old, new = before.config.sites, now.config.sites
    others = [
        field.name
        for field in msgspec.structs.fields(Config)
        if field.name != "sites" and getattr(before.config, field.name) != getattr(now.config, field.name)
    ]
    return api.Reloading(
        file=str(now.path or ""),
        digest=now.digest,
        added=[name for name in new if name not in old],
        removed=[name for name in old if name not in new],
        changed=[name for name in new if name in old and new[name] != old[name]],
        others=others,
    )
