"""Number of submissions, or withdrawals, that a site may still get in an hour. Times are epoch seconds. Pure.

Equal pilots that stand next to each other are one submission, a pilot array.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from adaptor.model import CraftedRequest
from adaptor.resources import TaskSize
from adaptor.units import format_clock

HOUR = 3600.0


class SubmissionsLeft(msgspec.Struct, frozen=True):
    """Submissions that a site may still get now."""

    left: int | None = None
    """Submissions; None: as many as one likes."""
    again: float = 0.0
    """Epoch seconds from which the next one may be sent: now, or earlier, unless none is left."""


def submission_of(crafted: CraftedRequest, shape: tuple[TaskSize, int | None]) -> tuple[object, ...]:
    """Key that is equal for requests that one submission may hold, for tasks of these shapes."""
    return crafted.request, crafted.paid, crafted.partition, shape


class SubmissionCount:
    """Number of submissions for requests, in the order in which they are made."""

    def __init__(self, most: int | None, most_in_array: int) -> None:
        """`most`: submissions; None: no bound."""
        self._most, self._most_in_array = most, most_in_array
        self._count, self._in_last = 0, 0
        self._last: tuple[object, ...] | None = None

    def interrupt(self) -> None:
        """Begin a new submission with the next request: something else has come between."""
        self._last = None

    def holds(self, crafted: CraftedRequest, shape: tuple[TaskSize, int | None]) -> bool:
        """Count one more request, unless it were a submission too many."""
        same = submission_of(crafted, shape)
        if same == self._last and self._in_last < self._most_in_array:
            self._in_last += 1
            return True
        if self._most is not None and self._count >= self._most:
            return False
        self._count, self._in_last, self._last = self._count + 1, 1, same
        return True


class Submissions:
    """The submissions of the last hour, those that the scheduler refused among them, but none that were
    withdrawn before they started."""

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

    def take_back(self, at: float) -> None:
        """The request that was sent then was withdrawn before it started: it does not count any more.

        What is withdrawn is bounded by itself (`SiteRules.max_withdrawals`), and if it counted here too,
        requests for later would leave none for what could start at once.
        """
        if at in self._times:
            self._times.remove(at)

    def left_at(self, now: float, coming: int = 0) -> SubmissionsLeft:
        """Submissions that may be sent now. `coming`: submissions that are decided and not sent yet."""
        if self._most is None:
            return SubmissionsLeft()
        sent = self._last_hour(now)
        beyond = len(sent) + coming - self._most
        if beyond < 0:
            return SubmissionsLeft(-beyond, now)
        # The oldest ones beyond the limit, and one more, must be an hour old.
        return SubmissionsLeft(0, sent[min(beyond, len(sent) - 1)] + HOUR if sent else now + HOUR)

    def why_none(self, now: float) -> str:
        """Why no request may be sent now; empty: one may be."""
        found = self.left_at(now)
        if found.left != 0:
            return ""
        again = format_clock(found.again)
        return f"max_submissions is {self._most} an hour and used up: no request until {again}"

    def _last_hour(self, now: float) -> list[float]:
        """A clock that was set back makes none of them later than now."""
        self._times = [min(at, now) for at in self._times]
        return [at for at in self._times if at > now - HOUR]
