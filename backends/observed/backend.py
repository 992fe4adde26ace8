"""Common part of the backends of batch schedulers: their commands, and one look that serves all queues."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from adaptor.config.schema import SiteConfig
from adaptor.model import Limits, QueueState
from backends.base import Backend, SchedulerError
from backends.ceilings import Ceilings, limits_of
from backends.commands import ChosenVariables, CommandAnswer, Commands, chunks
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.observed.remembered import without_collections
from backends.observed.state import KnownJobs, SecondLook
from backends.scripts import submit
from backends.traits import Traits

T = TypeVar("T")

FRESH = 2.0  # seconds for which a look also serves other questions


class SharedLook(Generic[T]):
    """`queue_state` and `nodes` need the same answers, often one right after the other; so do the partitions
    of a site."""

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._latest: tuple[float, T] | None = None
        self._served: set[str] = set()  # askers that have seen it

    def take(self, asker: str) -> T:
        """The latest look, if it is fresh and this asker has not had it; else a new look.

        Raises what the look raises.
        """
        latest, self._latest = self._latest, None
        now = time.monotonic()
        if latest is not None and asker not in self._served and now - latest[0] < FRESH:
            self._latest = latest
            self._served.add(asker)
            return latest[1]
        seen = self._look()
        self._latest, self._served = (now, seen), {asker}
        return seen

    def forget(self) -> None:
        """Forget the last look: we have changed something."""
        self._latest = None


Seen = TypeVar("Seen")


class Reading(Traits, Generic[Seen]):
    """A scheduler as one site sees it, in whatever queue. Every method may raise SchedulerError."""

    def __init__(
        self,
        site: SiteConfig,
        machine: Machine,
        asking: ChosenVariables,
        submitting: ChosenVariables | None = None,
    ) -> None:
        """Asks nothing yet. `asking`, `submitting`: choose the variables of commands; None: the same."""
        self.site = site
        self.commands = Commands(asking, site.command_timeout, machine)
        self.submitting = Commands(submitting or asking, site.command_timeout, machine)
        self.look = SharedLook(self.see)

    @abc.abstractmethod
    def see(self) -> Seen:
        """Look at everything, of all users."""


Shared = TypeVar("Shared", bound=Reading[Any])


class BatchBackend(Backend, Generic[Shared]):
    """One queue or partition. Subclasses say what differs."""

    reading: type[Shared]

    def __init__(self, site: SiteConfig, machine: Machine = HERE, shared: Shared | None = None) -> None:
        """Asks nothing yet.

        Args:
            machine: where the commands are run and the scripts lie.
            shared: with the backends of the site's other queues.
        """
        self._site, self._machine = site, machine
        self._shared = self.reading(site, machine) if shared is None else shared  # type: ignore[call-arg]
        self._asker = f"queue of {site.partition} {site.account} {site.qos}"
        self._second_look, self._known_jobs = SecondLook(), KnownJobs()
        self.learn(self._shared)

    def queue_state(self) -> QueueState:
        """State of the queue, from one look or a second one.

        Raises:
            SchedulerError: no answer, no such queue, or no job starts from it at the moment.
        """
        try:
            with without_collections():
                return self._second_look.state(self._observe)
        finally:
            self.learn(self._shared)

    @abc.abstractmethod
    def _observe(self) -> QueueState:
        """State of the queue, from one look."""

    def advertised_limits(self) -> Limits:
        """Limits that the scheduler tells; the module `limits` or `state` says where each limit comes
        from."""
        return limits_of(self._ceilings(), self._site.limits.max_pending_requests)

    def ceilings(self, partition: str = "") -> Ceilings:  # noqa: ARG002
        """The most that the scheduler lets a request of the site have."""
        return self._ceilings()

    @abc.abstractmethod
    def _ceilings(self) -> Ceilings: ...

    def _submit(self, command: Sequence[str], script: Path, text: str) -> CommandAnswer:
        """Submit a script by a command (`backends.scripts.submit`), after which the next look is a new
        one."""
        self._shared.look.forget()
        return submit(self._machine, self._shared.submitting, command, script, text)

    def _cancel(
        self, command: Sequence[str], ids: Collection[str], is_over: Callable[[CommandAnswer], bool]
    ) -> list[CommandAnswer]:
        """The answers of a command that ends jobs, which gets their ids behind its words.

        `is_over`: whether one that failed only says that there is nothing left to end.
        """
        self._shared.look.forget()
        program = command[0]
        answers = [self._shared.commands.run(*command, *part) for part in chunks(ids)]
        for answer in answers:
            if answer.status and not is_over(answer):
                raise SchedulerError(f"{program} failed with status {answer.status}: {answer.complaint}")
        return answers
