"""Entry points of the groups `adaptor.…`, by which other packages add to the adaptor; how to install ours."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from adaptor.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

AGENTS = "request-adaptor-donation-agents"
EXPERIMENTS = "request-adaptor-experiments"
GRID_ENGINE = "request-adaptor-gridengine"
MCP = "request-adaptor-mcp"
FOLDERS = {
    AGENTS: "plugins/donation-agents",
    EXPERIMENTS: "experiments",
    GRID_ENGINE: "plugins/gridengine",
    MCP: "plugins/mcp",
}
"""Folder of each package in a clone."""

BACKENDS = "adaptor.backends"  # kinds of batch scheduler, by the name that sites give as their `backend`
DONATION = "adaptor.donation"  # ways to use idle nodes outside the scheduler, by their mode of `donation`


def installed(group: str) -> Mapping[str, EntryPoint]:
    """Entry points of installed packages in a group, by name. Of two packages, the first on the path
    counts."""
    return _installed(group, tuple(sys.path))


@functools.lru_cache(maxsize=8)
def _installed(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:  # noqa: ARG001  (it decides)
    from importlib.metadata import entry_points  # slow to import, and not every command needs it

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    return found


def loaded(entry: EntryPoint) -> object:
    """Load the object of an entry point. Raises ConfigError: it cannot be loaded."""
    try:
        return entry.load()
    except Exception as error:  # whatever another package does wrong
        raise ConfigError(f"the package that registers {entry.name!r} cannot be loaded: {error!r}") from error


def loaded_if_there(group: str, name: str, what: str, package: str) -> Any:
    """Load an object of another package. Raises ConfigError: the package needed for `what` is missing, or
    broken."""
    entry = installed(group).get(name)
    if entry is None:
        raise ConfigError(needs(what, package))
    return loaded(entry)


def needs(what: str, package: str) -> str:
    """The message where a package of ours is missing; none is on an index."""
    return f"{what} needs {package}: in a clone of the adaptor, python -m pip install ./{FOLDERS[package]}"
