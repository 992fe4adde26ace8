"""What the queues of a site share: one reading of the server serves them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from adaptor.config.schema import SiteConfig
from backends.commands import Commands
from backends.machines.base import Machine
from backends.pbs.dialect import Dialect
from backends.pbs.environment import asking_environment, submitting_environment
from backends.pbs.margin import SLOT_MARGIN, TIME_RESOLUTION
from backends.pbs.rows import PbsJob
from backends.pbs.terms import Answers, ask
from backends.sharing import SharedLook


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked from the instant `now` on."""

    now: float
    answers: Answers
    jobs: Sequence[PbsJob]


class Server:
    """PBS as one site sees it, in whatever queue. Asks nothing yet."""

    def __init__(
        self, site: SiteConfig, machine: Machine, choose: Callable[[SiteConfig, Commands], Dialect]
    ) -> None:
        """
        Args:
            machine: where PBS's commands are run.
            choose: finds the dialect with the first question; raises SchedulerError where no PBS answers.
        """
        self._site = site
        self._choose = choose
        self.commands = Commands(asking_environment, site.command_timeout, machine)
        self.submitting = Commands(submitting_environment, site.command_timeout, machine)
        self.look = SharedLook(self._read)
        # Until the dialect is known.
        self.time_resolution = TIME_RESOLUTION
        self.slot_margin = SLOT_MARGIN
        self.can_reshape = self.can_release = False
        self._chosen: Dialect | None = None

    def dialect(self) -> Dialect:
        """Raises SchedulerError: no PBS answers."""
        if self._chosen is None:
            self._chosen = self._choose(self._site, self.commands)
            self.time_resolution = self._chosen.time_resolution
            self.slot_margin = self._chosen.slot_margin
            self.can_reshape = self._chosen.can_reshape
            self.can_release = self._chosen.can_release
        return self._chosen

    def _read(self) -> Reading:
        dialect, now = self.dialect(), time.time()
        answers = ask(dialect)
        return Reading(now=now, answers=answers, jobs=dialect.queue(answers.nodes))
