"""Pauses after failures in a row, and limits on how often something is done."""

from __future__ import annotations

import msgspec


class Holdoff(msgspec.Struct, frozen=True):
    """State of a `Backoff`: failures in a row, and the end of the pause."""

    failures: int = 0
    """Failures in a row."""
    until: float = 0.0
    """Epoch seconds before which nothing is tried again."""
    reason: str = ""
    """Reason of the last failure."""

    def waiting(self, now: float) -> bool:
        return now < self.until


_DOUBLINGS = 64  # beyond these a wait is the longest in any case; 2 ** failures overflows a float soon


class Backoff:
    """Doubling waits, from `first` seconds to `most`, after more than `tolerated` failures in a row."""

    def __init__(self, first: float, most: float, tolerated: int = 0) -> None:
        self.first = first
        self.most = most
        self.tolerated = tolerated
        self.failures = 0
        self.until = 0.0
        self.reason = ""

    def failed(self, now: float, reason: str) -> None:
        self.failures += 1
        self.reason = reason
        if self.pause:
            self.until = now + self.pause

    @property
    def pause(self) -> float:
        """Seconds from the last failure to the next try; 0: it was a success, or is tolerated."""
        beyond = self.failures - self.tolerated
        return min(self.most, self.first * 2.0 ** min(beyond - 1, _DOUBLINGS)) if beyond > 0 else 0.0

    def succeeded(self) -> None:
        self.failures = 0
        self.until = 0.0

    def waiting(self, now: float) -> bool:
        return now < self.until

    @property
    def holdoff(self) -> Holdoff:
        """The present state, for a decision to look at."""
        return Holdoff(self.failures, self.until, self.reason)


class Pace:
    """Limit of `burst` looks at once, and of one every `every` seconds in the long run (a token bucket)."""

    def __init__(self, burst: int, every: float) -> None:
        self._ahead = burst * every
        self._every = every
        self._due = 0.0

    def pause(self, now: float) -> float:
        """Seconds to wait after a look at `now` (seconds of a clock that only grows) before the next."""
        self._due = max(self._due, now) + self._every
        return max(0.0, self._due - now - self._ahead)
