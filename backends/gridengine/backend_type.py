"""Grid Engine as a type of batch scheduler: Son of Grid Engine and its kin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from backends.backend_type import BackendType

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig
    from backends.base import Backend
    from backends.findings import Finding
    from backends.machines.base import Machine


class GridEngineType(BackendType):
    title = "Grid Engine"
    has_partitions = True
    discovery_order = 30

    def make(self, name: str, site: SiteConfig, state: Path, machine: Machine) -> Backend:  # noqa: ARG002
        from backends.gridengine.backend import GridEngineBackend

        return GridEngineBackend(site, machine)

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

    def describe_sites(self) -> str:
        from backends.gridengine import discover

        return discover.describe_sites()

    def check_site(self, site: SiteConfig, machine: Machine) -> list[Finding]:
        from backends.gridengine import discover

        return discover.check_site(site, machine)


GRID_ENGINE = GridEngineType()
