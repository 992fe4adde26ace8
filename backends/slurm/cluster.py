"""What the partitions of a site share: one reading of nodes and jobs serves them all."""

from __future__ import annotations

import time

from adaptor.config.schema import SiteConfig
from backends.commands import Commands
from backends.machines.base import Machine
from backends.sharing import SharedLook
from backends.slurm.environment import asking_environment, submitting_environment
from backends.slurm.ordering import slot_margin
from backends.slurm.placing.restriction import licenses_of
from backends.slurm.questions import Questions, read
from backends.slurm.rows import Partition

_SETTINGS_KEPT = 600.0
"""Seconds for which Slurm's own configuration is taken to stay as it is."""


class Cluster:
    """Slurm as one site sees it, in whatever partition."""

    def __init__(self, site: SiteConfig, machine: Machine) -> None:
        """`machine`: where Slurm's commands are run."""
        self.commands = Commands(asking_environment, site.command_timeout, machine)
        self.submitting = Commands(submitting_environment, site.command_timeout, machine)
        self.questions = Questions(self.commands)
        self.licenses = licenses_of(site)
        self.look = SharedLook(lambda: read(self.questions, licenses=bool(self.licenses)))
        self.settings: dict[str, str] = {}
        """As last asked."""
        self.slot_margin = slot_margin({})
        self._partitions: dict[str, Partition] = {}
        self._until = 0.0

    def partitions(self) -> dict[str, Partition]:
        """All, by name. Raises SchedulerError: no answer."""
        if time.monotonic() >= self._until:
            self.settings = self.questions.settings()
            self.slot_margin = slot_margin(self.settings)
            self._partitions = {each.name: each for each in self.questions.partitions()}
            self._until = time.monotonic() + _SETTINGS_KEPT
        return self._partitions
