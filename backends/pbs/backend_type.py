"""PBS as a type of batch scheduler: OpenPBS, PBS Professional and Torque."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from backends.backend_type import BatchType
from backends.pbs.dialect import SLOT_MARGIN, TIME_RESOLUTION

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig
    from backends.base import Backend
    from backends.machines.base import Machine


class PbsType(BatchType):
    title = "PBS"
    can_reshape = True
    time_resolution = TIME_RESOLUTION
    slot_margin = SLOT_MARGIN
    discover = "backends.pbs.discover"
    donation_modes = ("preemptible", "agent")
    dialects = ("openpbs", "torque")
    discovery_order = 20

    def make_each(
        self,
        name: str,  # noqa: ARG002
        sites: Mapping[str, SiteConfig],
        state: Path,  # noqa: ARG002
        machine: Machine,
    ) -> dict[str, Backend]:
        """They share one reading of the server."""
        from backends.pbs.backend import PbsBackend
        from backends.pbs.reading import SharedServer, choose

        server = SharedServer(next(iter(sites.values())), machine, choose)
        return {queue: PbsBackend(site, machine, server=server) for queue, site in sites.items()}

    def key_problems(self, site: SiteConfig) -> Iterable[tuple[str, str]]:
        from backends.pbs.constraints import key_problems

        return key_problems(site)


PBS = PbsType()
