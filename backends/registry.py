"""The types of batch scheduler that are installed, by the name that sites give as their `backend`."""

from __future__ import annotations

from typing import cast

from adaptor.config.registered import backend_names, load_backend
from backends.backend_type import BackendType


def backend_type(name: str) -> BackendType:
    """Raises ConfigError: no such type is installed, or it cannot be loaded."""
    return cast(BackendType, load_backend(name))


def backend_types() -> list[BackendType]:
    """All that are installed, in the order in which `adaptor site init` asks them.

    Raises:
        ConfigError: one of them cannot be loaded.
    """
    return sorted(map(backend_type, backend_names()), key=lambda each: each.discovery_order)
