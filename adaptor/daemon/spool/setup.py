"""Which sites have a spool, where it is, and whether it can be used."""

from __future__ import annotations

from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.errors import AdaptorError
from adaptor.protocol.files.local import Files
from adaptor.protocol.maildir import (
    LATENCY,
    SpoolConnection,
    file_name,
    from_workers,
    remove_folder,
    write_next,
)
from adaptor.protocol.spool import Exchange, Spool, SpoolError
from backends.findings import Finding, error, ok

_TRIAL_FILE = file_name(SpoolConnection(0, "00000000", 1).name, 1)


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


def open_spool(name: str, config: SiteConfig, instance: str, files: Files) -> Spool:
    """A site's spool, in a folder of its own: several daemons and sites may share the parent.

    Raises:
        AdaptorError: it is a folder of this machine and cannot be used.
    """
    spool = Spool(Path(f"{spool_of(config)}/{instance}.{name}"), files)
    try:
        if config.ssh is None:
            spool.locate()
    except SpoolError as error:
        raise AdaptorError(f"sites.{name}.spool: {error}") from error
    return spool


def check_spool(site: SiteConfig) -> list[Finding]:
    """Whether the site's spool can be used: a file is written, read and removed.

    No findings if the site has no spool on this machine.
    """
    if site.spool is None or site.ssh is not None:
        return []
    folder = Path(site.spool).expanduser()
    trial = folder / "check"
    try:
        spool = Spool(trial)
        spool.locate()
        write_next(from_workers(trial), _TRIAL_FILE, b"a trial")
        found = [file.data for file in spool.run(Exchange()).files]
    except (SpoolError, OSError) as problem:
        return [error(f"spool: {problem}")]
    remove_folder(trial)
    if b"a trial" not in found:
        return [error(f"spool: {folder}: a file written there cannot be read at once; is it cached?")]
    return [ok(f"spool {folder} is private and writable; the nodes must see it, too")]
