"""For `adaptor site check`: whether a spool in a folder of this machine can be used."""

from __future__ import annotations

from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.protocol.maildir import Connection, file_name, from_workers, remove_folder, write_next
from adaptor.protocol.spool.directory import DirectorySpool
from adaptor.protocol.spool.exchange import Exchange, SpoolError
from backends.findings import Finding, error, ok

_TRIAL_FILE = file_name(Connection(0, "00000000", 1).name, 1)


def check_spool(site: SiteConfig) -> list[Finding]:
    """Write a file, read it and remove it; no findings if the site has no spool on this machine."""
    if site.spool is None or site.ssh is not None:
        return []
    folder = Path(site.spool).expanduser()
    trial = folder / "check"
    try:
        spool = DirectorySpool(trial)
        write_next(from_workers(trial), _TRIAL_FILE, b"a trial")
        found = [file.data for file in spool.run(Exchange()).files]
    except (SpoolError, OSError) as problem:
        return [error(f"spool: {problem}")]
    remove_folder(trial)
    if b"a trial" not in found:
        return [error(f"spool: {folder}: a file written there cannot be read at once; is it cached?")]
    return [ok(f"spool {folder} is private and writable; the nodes must see it, too")]
