"""Slurm as a type of batch scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backends.backend_type import WHERE_KEYS, BatchType
from backends.slurm.ordering import TIME_RESOLUTION, slot_margin

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig


_PATIENCE = 10.0  # seconds for the question whether a controller answers here


class SlurmType(BatchType):
    title = "Slurm"
    apart = ("--ntasks-per-node=1",)
    can_reshape = can_follow = True
    time_resolution = TIME_RESOLUTION
    slot_margin = slot_margin({})
    package = "backends.slurm"
    donation_modes = ("preemptible", "agent")
    discovery_order = 10

    def answers(self) -> bool:
        """One question; a controller that is configured and does not answer counts too."""
        from backends.base import SchedulerError
        from backends.commands import Commands
        from backends.machines.base import CommandHung
        from backends.slurm.questions import asking_environment

        try:
            Commands(asking_environment, _PATIENCE).ask("sinfo", "--noheader", "--format=%P")
        except CommandHung:
            return True
        except SchedulerError as problem:
            return "Unable to contact slurm controller" in str(problem)
        return True

    def key_problems(self, site: SiteConfig) -> Iterable[tuple[str, str]]:
        if all(getattr(site, key) is None for key in WHERE_KEYS):
            return ()  # without an import that every command would wait for
        from backends.slurm.placing.restriction import key_problems

        return key_problems(site)


SLURM = SlurmType()
