"""Results that await the daemon's acknowledgement: the worker keeps each and sends it again until then."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.protocol.messages import AttemptKey, Result

CHUNK = 500
"""Results in one report, at most."""
CHUNK_BYTES = 4 * 1024 * 1024
"""Of answers in one report beyond the first."""


class Outbox:
    """Results without acknowledgement. Times are monotonic seconds, passed in."""

    def __init__(self) -> None:
        self._sent: dict[AttemptKey, tuple[float, Result]] = {}
        """By the time of sending, the oldest first."""
        self._unsent: dict[AttemptKey, Result] = {}

    def __len__(self) -> int:
        return len(self._sent) + len(self._unsent)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._sent or key in self._unsent

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def add(self, result: Result) -> None:
        self._unsent[result.key] = result

    def acknowledge(self, keys: Iterable[AttemptKey]) -> None:
        for key in keys:
            self._sent.pop(key, None)
            self._unsent.pop(key, None)

    def batch(self, now: float, again_after: float) -> list[Result]:
        """The next results to send: unsent ones, then those sent at least `again_after` seconds ago."""
        batch: list[Result] = []
        room = CHUNK_BYTES
        while self._unsent and len(batch) < CHUNK and room > 0:
            batch.append(self._unsent.pop(next(iter(self._unsent))))
            room -= len(batch[-1].answer)
        for sent, result in self._sent.values():
            if len(batch) >= CHUNK or room <= 0 or sent > now - again_after:
                break
            batch.append(result)
            room -= len(result.answer)
        self._mark(batch, now)
        return batch

    def everything(self, now: float) -> list[Result]:
        """All results without acknowledgement; they count as sent now."""
        batch = self.results()
        self._unsent.clear()
        self._mark(batch, now)
        return batch

    def results(self) -> list[Result]:
        return [result for _, result in self._sent.values()] + list(self._unsent.values())

    def _mark(self, batch: list[Result], now: float) -> None:
        for result in batch:
            self._sent.pop(result.key, None)
            self._sent[result.key] = (now, result)
