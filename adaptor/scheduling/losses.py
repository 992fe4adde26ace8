"""Tasks that may take their workers down: which attempts ran when their workers died. Pure.

All tasks that ran on a worker when it died are suspects, because any of them may be the cause. Suspects
run last; from `ISOLATED_FROM` losses on each runs alone on its worker, so that the next loss convicts it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.model import PilotState
from adaptor.protocol.messages import AttemptKey
from adaptor.units import counted

_NAMED = 5  # tasks that a remark names
ISOLATED_FROM = 2  # losses from which on a suspect shares its worker with no other task


class LostAttempt(msgspec.Struct, frozen=True):
    """An attempt whose worker was lost, or left because of a signal, while its pilot was in the system."""

    worker: str
    node: str
    at: float
    """Epoch seconds."""


class Loss(msgspec.Struct, frozen=True):
    """A worker has died for no known reason."""

    pilot: int
    node: str
    alone: bool
    """Whether one task only ran on it, and on what died with it, and nothing suggests that the node is the
    cause."""
    how: str
    """Cause of the loss as far as known, in a few words."""


class PilotEnd(msgspec.Struct, frozen=True):
    """The end of a pilot."""

    pilot: int
    site: str
    state: PilotState
    started: float | None
    """Epoch seconds; None: never, as far as is known."""
    at: float
    """Epoch seconds."""
    by_us: bool = False
    """Whether the adaptor has asked for it, perhaps because the workers were gone."""


class Losses:
    """Attempts of each task of a bag that ran when their workers died."""

    def __init__(self, most: int) -> None:
        """`most`: losses after which a task is not tried again; 0: it always is."""
        self._most = most
        self._attempts: dict[int, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._attempts)

    def __contains__(self, task: int) -> bool:
        return task in self._attempts

    def of(self, task: int) -> frozenset[int]:
        """The numbers of its attempts."""
        return frozenset(self._attempts.get(task, ()))

    def by_task(self) -> dict[int, frozenset[int]]:
        """The attempts of all tasks that have any."""
        return {task: frozenset(attempts) for task, attempts in self._attempts.items()}

    def add(self, task: int, attempt: int) -> None:
        self._attempts.setdefault(task, set()).add(attempt)

    def excuse(self, task: int, attempt: int) -> None:
        """The attempt was not lost, or something else ended its worker."""
        found = self._attempts.get(task)
        if found is not None:
            found.discard(attempt)
            if not found:
                del self._attempts[task]

    def forget(self, task: int) -> None:
        self._attempts.pop(task, None)

    def isolated(self, task: int) -> bool:
        """True if the task must run alone on its worker; always before the loss that ends it."""
        from_losses = min(ISOLATED_FROM, self._most - 1) if self._most else ISOLATED_FROM
        return task in self._attempts and len(self._attempts[task]) >= from_losses

    def convicts(self, task: int, loss: Loss) -> bool:
        """True if the task has had all its losses, and this one cannot have been another task's doing.

        Where it dies in company repeatedly, twice as many are enough, so that it ends anyway.
        """
        losses = len(self.of(task))
        if not self._most or losses < self._most:
            return False
        return loss.alone or self._most == 1 or losses >= 2 * self._most


def remark(tasks: Sequence[AttemptKey], loss: Loss, *, again: bool) -> str:
    """A sentence on the tasks that ran there and their future. `again`: whether any of them is tried
    again."""
    named = [f"task {key.task} of bag {key.bag}" for key in tasks[:_NAMED]]
    more = [counted(len(tasks) - _NAMED, "other")] if len(tasks) > _NAMED else []
    follows = "run last from now on, and alone after a second loss" if again else "not tried again"
    return (
        f"its worker on node {loss.node or 'unknown'} died ({loss.how}) while it ran "
        f"{', '.join([*named, *more])}: {follows}"
    )


def sentence(bag: int, losses: int, last: Loss) -> str:
    """Why a convicted task has failed."""
    times = "once" if losses == 1 else f"{losses} times"
    return (
        f"its worker died under it {times} (last: node {last.node or 'unknown'}, pilot {last.pilot} "
        f"{last.how}): not tried again; adaptor retry {bag} tries it again, a larger max-lost more often"
    )
