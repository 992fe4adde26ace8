"""How many submissions a site may still be sent in an hour, or withdrawals. Times are epoch seconds. Pure.

Equal pilots that stand next to each other are one submission, a pilot array.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from adaptor.model import CraftedRequest
from adaptor.resources import TaskSize

HOUR = 3600.0


class Allowance(msgspec.Struct, frozen=True):
    """What a site may still be sent now."""

    left: int | None = None
    """Submissions; None: as many as one likes."""
    again: float = 0.0
    """When the next one may be sent: now, or earlier, unless none is left."""


def submission_of(crafted: CraftedRequest, shape: tuple[TaskSize, int | None]) -> tuple[object, ...]:
    """The same of requests, for tasks of these shapes, that one submission may hold."""
    return crafted.request, crafted.partition, shape


class Submissions:
    """The submissions of the last hour, those that the scheduler refused among them."""

    def __init__(self, most: int | None, times: Iterable[float] = ()) -> None:
        """
        Args:
            most: in any hour; None: no bound.
            times: of earlier submissions.
        """
        self._most = most
        self._times = sorted(times)

    def note(self, now: float) -> None:
        """A request, or an array of them, is about to be sent."""
        if self._most is not None:
            self._times = [*self._last_hour(now), now]

    def allowance(self, now: float, coming: int = 0) -> Allowance:
        """`coming`: submissions that are decided and not sent yet."""
        if self._most is None:
            return Allowance()
        sent = self._last_hour(now)
        beyond = len(sent) + coming - self._most
        if beyond < 0:
            return Allowance(-beyond, now)
        # The oldest ones beyond the limit, and one more, must be an hour old.
        return Allowance(0, sent[min(beyond, len(sent) - 1)] + HOUR if sent else now + HOUR)

    def _last_hour(self, now: float) -> list[float]:
        """A clock that was set back makes none of them later than now."""
        self._times = [min(at, now) for at in self._times]
        return [at for at in self._times if at > now - HOUR]
