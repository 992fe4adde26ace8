"""The test double as a type of batch scheduler that a site can name, and as a backend."""

from __future__ import annotations

from pathlib import Path

from adaptor.config.schema import SiteConfig
from backends.commands import Commands
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.pbs.backend import PbsBackend
from backends.pbs.backend_type import PbsType
from backends.pbs.dialect import PbsDialect
from backends.pbs.reading import SharedServer
from tests.backends.distribution import installed
from tests.clusters.slurm_wrappers.dialect import SlurmWrappers

NAME = "slurm-wrappers"
ROOT = Path(__file__).parents[3]


class WrappersType(PbsType):
    title = "Slurm behind its wrappers of Torque's commands"
    time_resolution = SlurmWrappers.time_resolution
    slot_margin = SlurmWrappers.slot_margin

    def make(self, name: str, site: SiteConfig, state: Path, machine: Machine) -> PbsBackend:
        return backend(site, machine)


TYPE = WrappersType()


def backend(site: SiteConfig, machine: Machine = HERE) -> PbsBackend:
    return PbsBackend(site, machine, _WrappersServer(site, machine))


class _WrappersServer(SharedServer):
    @staticmethod
    def choose(site: SiteConfig, commands: Commands) -> PbsDialect:
        return SlurmWrappers(commands)


def python_path(folder: Path) -> str:
    """$PYTHONPATH with which other processes know sites of `backend: slurm-wrappers`."""
    code = "from tests.clusters.slurm_wrappers.backend_type import TYPE as TYPE\n"
    return f"{installed(folder, 'slurm_wrappers', code, NAME)}:{ROOT}"
