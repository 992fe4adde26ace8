"""What the broker wants each worker told; the daemon sends it once the journal has the changes."""

from __future__ import annotations

import msgspec

from adaptor.protocol.messages import AttemptKey


class Grant(msgspec.Struct, frozen=True):
    """A lease to be sent; the daemon adds the command from the journal."""

    key: AttemptKey
    needs: float
    """Seconds that must be left of the pilot when it starts."""


class DraftOrders(msgspec.Struct):
    """Orders for one worker."""

    acknowledged: list[AttemptKey] = []
    grants: list[Grant] = []
    abort: list[AttemptKey] = []
    give_back: list[AttemptKey] = []
    leave: str = ""
    say_hello: bool = False


class PendingOrders:
    """Orders by worker id."""

    def __init__(self) -> None:
        self._drafts: dict[str, DraftOrders] = {}

    def of(self, worker: str) -> DraftOrders:
        return self._drafts.setdefault(worker, DraftOrders())

    def drain(self) -> dict[str, DraftOrders]:
        drafts, self._drafts = self._drafts, {}
        return drafts
