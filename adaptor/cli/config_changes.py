"""Whether the daemon's configuration has been edited since it was loaded.

The command line looks, not the daemon: the file may lie on a file system that hangs.
"""

from __future__ import annotations

from pathlib import Path

from adaptor import api
from adaptor.cli.words import printable
from adaptor.config.digest import digest_of
from adaptor.config.loading import default_config_path

_RELOAD = "take it over: adaptor daemon reload"


def config_lines(daemon: api.DaemonView, *, only_problems: bool = False) -> list[str]:
    """Where the configuration is, whether it was edited, and why a reload failed."""
    lines = []
    path = Path(daemon.config_file or default_config_path())
    name = printable(str(path))
    now = digest_of(path)
    if daemon.config_file and not now:
        lines.append(f"configuration {name} cannot be read any more; the daemon goes on with what it said")
    elif now != daemon.config_digest:
        what = "has changed since it was loaded" if daemon.config_file else "is new"
        lines.append(f"configuration {name} {what}; {_RELOAD}")
    elif not only_problems:
        lines.append(f"configuration {name if daemon.config_file else 'none: this machine is the only site'}")
    if daemon.config_problem:
        lines.append(f"the last reload failed: {printable(daemon.config_problem)}")
    return lines
