"""Tried sizes of requests of a site, by the size of their tasks: bags of the same size share them.

Pure: times are epoch seconds, and arguments.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from adaptor.decisions.failures.tried_sizes import SizeAt, TriedSizes
from adaptor.decisions.pilots import Pilot
from adaptor.model import Request
from adaptor.reports import Remedy
from adaptor.resources import TaskSize


class KeptSizes(msgspec.Struct, frozen=True):
    """Tried sizes in the form that a journal keeps."""

    task: TaskSize
    partition: str
    tried: TriedSizes


class SizeMemory:
    """Tried sizes of requests, which outlive the bags from which they were learned."""

    def __init__(self, kept: Iterable[KeptSizes] = ()) -> None:
        """`kept`: by an earlier daemon."""
        self._tried: dict[SizeAt, TriedSizes] = {(each.task, each.partition): each.tried for each in kept}
        self._taken = dict(self._tried)

    def take_new(self) -> tuple[KeptSizes, ...] | None:
        """All of it, if it has changed since the last call."""
        if self._tried == self._taken:
            return None
        self._taken = dict(self._tried)
        return tuple(KeptSizes(*place, tried) for place, tried in self._tried.items())

    def at(self, now: float) -> dict[SizeAt, TriedSizes]:
        """All of it, without what counts no longer."""
        if self._tried:
            tried = {place: each.at(now) for place, each in self._tried.items()}
            self._tried = {place: each for place, each in tried.items() if each.failures}
        return dict(self._tried)

    def failed(self, pilot: Pilot, asked: Request, remedy: Remedy, why: str, until: float) -> None:
        """The request of a pilot was refused, or would never start."""
        if pilot.shape is not None:
            place = pilot.shape[0], pilot.partition
            self._tried[place] = self._tried.get(place, TriedSizes()).failed(asked, remedy, why, until)

    def started(self, pilot: Pilot, asked: Request) -> None:
        """The request of a pilot has started."""
        place = (pilot.shape[0], pilot.partition) if pilot.shape is not None else None
        if place in self._tried:
            self._tried[place] = self._tried[place].started(asked)

    def why_smaller(self, task: TaskSize, now: float) -> str:
        """Why smaller requests for such tasks are tried, of which none has started yet; empty: none are."""
        for (size, _), tried in self.at(now).items():
            if size == task and not tried.worked:
                return f"the last request failed ({tried.failures[-1].why}); a smaller one is tried"
        return ""

    def forget(self) -> None:
        """The limits of the site have changed."""
        self._tried.clear()
