"""Grid Engine as a type of batch scheduler: Son of Grid Engine and its kin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from backends.backend_type import BatchType

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig
    from backends.base import Backend
    from backends.machines.base import Machine


class GridEngineType(BatchType):
    title = "Grid Engine"
    discover = "backends.gridengine.discover"
    discovery_order = 30

    def make_each(
        self,
        name: str,  # noqa: ARG002
        sites: Mapping[str, SiteConfig],
        state: Path,  # noqa: ARG002
        machine: Machine,
    ) -> dict[str, Backend]:
        """They share one reading of the qmaster."""
        from backends.gridengine.backend import GridEngineBackend
        from backends.gridengine.reading import Master

        master = Master(next(iter(sites.values())), machine)
        return {queue: GridEngineBackend(site, machine, master) for queue, site in sites.items()}


GRID_ENGINE = GridEngineType()
