"""The broker's orders for the workers; the daemon sends them after the journal has written the changes."""

from __future__ import annotations

from adaptor.protocol.messages import Orders


class PendingOrders:
    """The orders that the daemon has not sent yet, by worker id; it adds bags, and the commands of leases."""

    def __init__(self) -> None:
        self._drafts: dict[str, Orders] = {}

    def of(self, worker: str) -> Orders:
        return self._drafts.setdefault(worker, Orders())

    def drain(self) -> dict[str, Orders]:
        drafts, self._drafts = self._drafts, {}
        return drafts
