"""Pilots of sites that the configuration no longer has: no scheduler tells their end. Pure."""

from __future__ import annotations

import msgspec


class RemovedPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in the system of such a site, as far as the journal knows it. Epoch seconds."""

    id: int
    site: str
    job: str | None
    """The scheduler's id; None: it may never have reached the scheduler."""
    tag: str
    """Tag by which the scheduler knows that it is ours."""
    tr: int
    grace: int
    """Seconds beyond tr that its scheduler may have let it run."""
    reserved: int
    """Millionths of a credit."""
    submitted: float
    started: float | None
    """Epoch seconds of the start by the scheduler or else by its workers; None: no start is known."""
    last_sign: float | None
    """The last end of an attempt that ran in it; None: none did, or one has no known end."""
    noticed: float
    """Epoch seconds at which a daemon first ran without its site, and dismissed workers of it."""

    @property
    def due(self) -> float:
        """Epoch seconds after which it has certainly ended: by then it is settled.

        A pilot that began unnoticed began before that daemon ran; a worker that calls later is sent home.
        """
        return (self.noticed if self.started is None else self.started) + self.tr + self.grace

    def end(self, told: float | None, now: float) -> float | None:
        """Epoch seconds until which it is charged; None: no start is known, and it costs nothing.

        Its end is the one that its user has `told`, else its last sign of life, else that of its time.
        """
        if self.started is None:
            return None
        known = self.last_sign if told is None else told
        latest = self.started + self.tr + (0 if known is None else self.grace)
        return max(self.started, min(now, latest if known is None else min(known, latest)))
