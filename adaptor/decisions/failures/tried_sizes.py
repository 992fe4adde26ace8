"""Sizes of requests that a scheduler did not take or never starts, and the size to try next. Pure.

What a site allows is a staircase: if a request `(p, tr)` is impossible, no request is possible that has as
many processors and lasts as long. Failures that speak of time alone hold for any number of processors, and
the other way round. Between the largest request that worked and the smallest that failed the next one lies in
the middle, first in processors, then in time; before any has worked, it has half of what failed.
"""

from __future__ import annotations

import msgspec

from adaptor.crafting.situation import Largest
from adaptor.model import Request
from adaptor.reports import Remedy
from adaptor.resources import TaskSize
from adaptor.units import round_down

KEPT = 4 * 3600.0
"""Seconds for which a size counts as impossible: what people change at a site, they change by the day."""
KEPT_IN_LIMITS = 1800.0
"""Seconds for a size that a limit of several jobs kept waiting: what others hold changes by the hour."""
_FINE = 8
"""A time is not searched more finely than by this part of what failed: each try costs a request."""


SizeAt = tuple[TaskSize, str]
"""The size of tasks, and the partition in which requests for them go; empty: the site has only one."""


class Failed(msgspec.Struct, frozen=True):
    """A failure: no request with as many processors and as much time is possible."""

    p: int
    """Processors of the request; 0: any number."""
    tr: int
    """Seconds of the request; 0: any time."""
    why: str
    until: float
    """Epoch seconds until which it counts."""

    def forbids(self, p: int, tr: int) -> bool:
        return self.p <= p and self.tr <= tr


class TriedSizes(msgspec.Struct, frozen=True):
    """Tried sizes of requests for tasks of one shape in one partition."""

    failures: tuple[Failed, ...] = ()
    """Failures, none of which follows from another one."""
    worked: tuple[tuple[int, int], ...] = ()
    """`(p, tr)` of requests that started while failures counted, none of them within another one."""

    def failed(self, request: Request, remedy: Remedy, why: str, until: float) -> TriedSizes:
        """A request was refused, or would never start. OTHER says nothing of sizes."""
        if remedy is Remedy.OTHER:
            return self
        p = 0 if remedy is Remedy.SHORTER else request.p
        tr = 0 if remedy is Remedy.NARROWER else request.tr
        new = Failed(p, tr, why, until)
        kept = tuple(each for each in self.failures if not new.forbids(each.p, each.tr))
        if any(each.forbids(p, tr) and each.until >= until for each in kept):
            return self
        return TriedSizes((*kept, new), tuple(each for each in self.worked if not new.forbids(*each)))

    def started(self, request: Request) -> TriedSizes:
        """A request has started: nothing that is no larger is impossible."""
        p, tr = request.p, request.tr
        if not self.failures or self.covers(p, tr):
            return self
        failures = tuple(each for each in self.failures if not each.forbids(p, tr))
        within = tuple(each for each in self.worked if not (each[0] <= p and each[1] <= tr))
        return TriedSizes(failures, (*within, (p, tr)) if failures else ())

    def at(self, now: float) -> TriedSizes:
        """The sizes without failures that count no longer."""
        failures = tuple(each for each in self.failures if each.until > now)
        if len(failures) == len(self.failures):
            return self
        return TriedSizes(failures, self.worked if failures else ())

    def why_impossible(self, request: Request) -> str:
        """Why such a request is known to be impossible; empty: it is not."""
        return next((each.why for each in self.failures if each.forbids(request.p, request.tr)), "")

    def largest(self, most: Request, least: Request, step: int = 1, resolution: int = 1) -> Largest:
        """The largest request to make next, no larger than `most`.

        Never one that is known to be impossible, except `least`, the smallest of any use: then nothing else
        is left to try.

        Args:
            step: p is a multiple of it.
            resolution: tr is.
        """
        if not (why := self.why_impossible(most)):
            return Largest(most.p, most.tr)
        search = _Search(self, Request(min(least.p, most.p), min(least.tr, most.tr)), step, resolution)
        p, tr = search.below(most)
        return Largest(p, tr, why, self.covers(p, tr))

    def covers(self, p: int, tr: int) -> bool:
        """Whether a request as large has started since others failed."""
        return any(p <= wide and tr <= long for wide, long in self.worked)


class _Search:
    """The next size to try, where the one that is wanted is impossible."""

    def __init__(self, tried: TriedSizes, least: Request, step: int, resolution: int) -> None:
        self._failures, self._worked, self._least = tried.failures, tried.worked, least
        self._step, self._resolution = step, resolution

    def below(self, most: Request) -> tuple[int, int]:
        """Processors and seconds to try next, within `most`."""
        of_width = [each.p for each in self._failures if not each.tr]
        of_time = [each.tr for each in self._failures if not each.p]
        p, tr = most.p, most.tr
        if of_width and min(of_width) <= p:
            p = self._narrower(max((p for p, _ in self._worked), default=0), min(of_width))
        if of_time and min(of_time) <= tr:
            tr = self._shorter(max((tr for _, tr in self._worked), default=0), min(of_time))
        if self._impossible(p, tr):
            p, tr = self._in_corner(p, tr) if self._worked else self._halved(p, tr)
        p, tr = max(p, self._least.p), max(tr, self._least.tr)
        return (self._least.p, self._least.tr) if self._impossible(p, tr) else (p, tr)

    def _in_corner(self, p: int, tr: int) -> tuple[int, int]:
        """Size to try if failures do not say whether processors or time were too many: wider, else longer
        than the largest that worked."""
        within = [(min(wide, p), min(long, tr)) for wide, long in self._worked]
        wide, long = max(within, key=lambda each: each[0] * each[1])
        failed = min((each.p for each in self._failures if each.tr <= long), default=p + 1)
        wider = p if p < failed else self._narrower(wide, failed)
        if wider > wide:
            return wider, long
        failed = min((each.tr for each in self._failures if each.p <= wide), default=tr + 1)
        return wide, max(long, tr if tr < failed else self._shorter(long, failed))

    def _halved(self, p: int, tr: int) -> tuple[int, int]:
        """Half of what failed, in both, until it is not known to be impossible."""
        least = self._least
        while known := next((each for each in self._failures if each.forbids(p, tr)), None):
            p = max(least.p, min(p, self._narrower(0, known.p))) if known.p else p
            tr = max(least.tr, min(tr, self._shorter(0, known.tr))) if known.tr else tr
            if known.forbids(p, tr):
                return least.p, least.tr
        return p, tr

    def _narrower(self, worked: int, failed: int) -> int:
        """Processors between the most that worked (0: none has) and the fewest that failed."""
        return max(worked, round_down((worked + failed) // 2, self._step))

    def _shorter(self, worked: int, failed: int) -> int:
        """Seconds between the longest that worked (0: none has) and the shortest that failed."""
        middle = round_down((worked + failed) // 2, self._resolution)
        return worked if worked and middle - worked <= failed // _FINE else middle

    def _impossible(self, p: int, tr: int) -> bool:
        return any(each.forbids(p, tr) for each in self._failures)
