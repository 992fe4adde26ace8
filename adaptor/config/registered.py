"""The kinds of batch scheduler that are installed: entry points of the group `adaptor.backends`.

`backends.registry` gives the rest of the code the same objects with their full type. This module knows only
what a configuration is checked against, so that the configuration depends on no scheduler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from adaptor.did_you_mean import did_you_mean
from adaptor.errors import ConfigError
from adaptor.plugins import BACKENDS, GRID_ENGINE, installed, loaded, needs

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from adaptor.config.schema import SiteConfig

SOURCE_TREE = {
    "local": "backends.local.backend_type:LOCAL",
    "slurm": "backends.slurm.backend_type:SLURM",
    "pbs": "backends.pbs.backend_type:PBS",
}
"""Our own entry points (pyproject.toml), for a source tree that is not installed, or was installed before."""

ELSEWHERE = {"gridengine": GRID_ENGINE}
"""Types of packages that need not be installed, with the package."""


class BackendFacts(Protocol):
    """Facts that check a site's configuration; `backends.backend_type.BackendType` explains each."""

    over_ssh: bool
    has_partitions: bool
    donation_modes: Collection[str]

    def key_problems(self, site: SiteConfig) -> Iterable[tuple[str, str]]: ...


def backend_names() -> list[str]:
    """The names that a site may have as its `backend`."""
    return sorted(_entries())


def load_backend(name: str) -> BackendFacts:
    """The object that a distribution registered under this name.

    Raises:
        ConfigError: no distribution registers the name, or what it registers cannot be loaded.
    """
    entry = _entries().get(name)
    if entry is None:
        if name in ELSEWHERE:
            raise ConfigError(needs(name, ELSEWHERE[name]))
        known = backend_names()
        hint = did_you_mean(name, known, otherwise=f"there are {', '.join(known)}", shown="`{}`")
        raise ConfigError(f"no batch scheduler {name!r} is installed ({hint})")
    return cast(BackendFacts, loaded(entry))


def _entries() -> Mapping[str, EntryPoint]:
    """Entry points by name; ours if no package registers it."""
    from importlib.metadata import EntryPoint  # slow to import, and not every command needs it

    ours = {name: EntryPoint(name, value, BACKENDS) for name, value in SOURCE_TREE.items()}
    return {**ours, **installed(BACKENDS)}
