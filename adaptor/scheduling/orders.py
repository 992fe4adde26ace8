"""The broker's orders for the workers; the daemon sends them after the journal has written the changes."""

from __future__ import annotations

import msgspec

from adaptor.protocol.messages import AttemptKey
from adaptor.resources import TaskSize


class Grant(msgspec.Struct, frozen=True):
    """A lease to send; the daemon adds the command from the journal."""

    key: AttemptKey
    needs: float
    """Seconds that the pilot must have left when the task starts."""
    nodes: tuple[str, ...] = ()
    """Of a task on several nodes, the one that runs its command first."""
    takes_part: bool = False
    """Whether another worker runs the command, and this one is only kept for it."""
    task: TaskSize | None = None
    """What it needs; None: as its bag says."""
    timeout: float | None = None
    """Seconds after which it is ended; None: as its bag says."""
    among: int = 0
    """It starts only while fewer attempts of its bag run at the worker; 0: no limit."""


class DraftOrders(msgspec.Struct):
    """The orders for one worker that the daemon has not sent yet."""

    acknowledged: list[AttemptKey] = []
    grants: list[Grant] = []
    abort: list[AttemptKey] = []
    give_back: list[AttemptKey] = []
    timeouts: dict[int, float] = {}
    leave: str = ""
    say_hello: bool = False


class PendingOrders:
    """The orders that the daemon has not sent yet, by worker id."""

    def __init__(self) -> None:
        self._drafts: dict[str, DraftOrders] = {}

    def of(self, worker: str) -> DraftOrders:
        return self._drafts.setdefault(worker, DraftOrders())

    def drain(self) -> dict[str, DraftOrders]:
        drafts, self._drafts = self._drafts, {}
        return drafts
