"""The types of batch scheduler that are installed, by the name that sites give as their `backend`."""

from __future__ import annotations

from adaptor.config.registered import backend_names, load_backend
from adaptor.errors import ConfigError
from backends.backend_type import BackendType


def backend_type(name: str) -> BackendType:
    """Raises ConfigError: no such type is installed, it cannot be loaded, or it is something else."""
    found: object = load_backend(name)
    if not isinstance(found, BackendType):
        raise ConfigError(f"the package registers {found!r} as backend {name!r}, which is not a BackendType")
    return found


def backend_types() -> list[BackendType]:
    """All that are installed, in the order in which `adaptor site init` asks them.

    Raises:
        ConfigError: one of them cannot be loaded.
    """
    return sorted(map(backend_type, backend_names()), key=lambda each: each.discovery_order)
