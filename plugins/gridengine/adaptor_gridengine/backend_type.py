"""Grid Engine as a type of batch scheduler: Son of Grid Engine and its kin."""

from __future__ import annotations

from backends.backend_type import BatchType


class GridEngineType(BatchType):
    title = "Grid Engine"
    package = "adaptor_gridengine"
    discovery_order = 30


GRID_ENGINE = GridEngineType()
