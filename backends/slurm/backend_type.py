"""Slurm as a type of batch scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backends.backend_type import BackendType
from backends.slurm.margin import TIME_RESOLUTION, slot_margin

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig
    from backends.base import Backend
    from backends.findings import Finding
    from backends.hooks import Hooks, Wanted
    from backends.machines.base import Machine


class SlurmType(BackendType):
    title = "Slurm"
    time_resolution = TIME_RESOLUTION
    slot_margin = slot_margin({})
    donation_modes = ("preemptible", "agent")
    discovery_order = 10

    def make(self, name: str, site: SiteConfig, state: Path, machine: Machine) -> Backend:  # noqa: ARG002
        from backends.slurm.backend import SlurmBackend

        return SlurmBackend(site, machine)

    def describe_sites(self) -> str:
        from backends.slurm import discover

        return discover.describe_sites()

    def check_site(self, site: SiteConfig, machine: Machine) -> list[Finding]:
        from backends.slurm import discover

        return discover.check_site(site, machine)

    def hooks(self, site: SiteConfig, wanted: Wanted) -> Hooks:  # noqa: ARG002
        from backends.slurm.hooks import slurm_hooks

        return slurm_hooks(wanted)


SLURM = SlurmType()
