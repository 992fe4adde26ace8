"""What the broker wants each worker told; the daemon sends it once the journal has the changes."""

from __future__ import annotations

import msgspec

from adaptor.protocol.messages import AttemptKey


class Grant(msgspec.Struct, frozen=True):
    """A lease to be sent; the daemon adds the command from the journal."""

    key: AttemptKey
    needs: float
    """Seconds that must be left of the pilot when it starts."""


class Draft(msgspec.Struct):
    """Orders for one worker."""

    acknowledged: list[AttemptKey] = []
    grants: list[Grant] = []
    abort: list[AttemptKey] = []
    give_back: list[AttemptKey] = []
    leave: str = ""
    say_hello: bool = False


class Outbox:
    """Orders by worker id."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}

    def of(self, worker: str) -> Draft:
        return self._drafts.setdefault(worker, Draft())

    def drain(self) -> dict[str, Draft]:
        drafts, self._drafts = self._drafts, {}
        return drafts
