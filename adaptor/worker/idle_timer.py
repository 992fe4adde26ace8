"""When a worker leaves of its own accord. Pure: the time is passed in."""

from __future__ import annotations

from adaptor.protocol.messages import LAST_SECONDS, Leaving, Welcome


def leave_at(deadline: float, grace_time: float) -> float:
    """Epoch seconds at which what runs is ended, so that all is told before the scheduler kills us."""
    return deadline - min(grace_time, LAST_SECONDS)


def grace_left(now: float, deadline: float, grace_time: float) -> float:
    """Seconds for ending what runs (epoch times): the last ones of a pilot are fewer than the grace time."""
    return max(0.0, min(grace_time, deadline - now))


class Vigil:
    """How long nothing has been left to run, with the daemon or without. `now`: monotonic seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._connected = False

    def note(self, now: float, *, idle: bool, connected: bool) -> None:
        if not idle:
            self._since = None
        elif self._since is None or connected != self._connected:
            self._since = now
        self._connected = connected

    def ends(self, terms: Welcome) -> float:
        """Until when there is something to wait for."""
        if self._since is None:
            return float("inf")
        return self._since + (terms.idle_timeout if self._connected else terms.patience)

    def verdict(self, now: float, terms: Welcome) -> Leaving | None:
        if now < self.ends(terms):
            return None
        return Leaving.IDLE if self._connected else Leaving.ALONE
