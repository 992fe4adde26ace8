"""Pauses after failures, by shape of task: one impossible bag holds up no other. Pure.

What failed in one partition of a site may still be tried in the others. A scheduler that refuses several
shapes in a row most likely refuses all; then the whole site pauses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from adaptor.backoff import Backoff, Holdoff
from adaptor.crafting.situation import ShapeAt, TaskShape

SHAPES_IN_A_ROW = 3
"""Shapes that fail in a row, without a success, until the site is at fault and not the tasks."""


class ShapeHoldoffs(msgspec.Struct, frozen=True, kw_only=True):
    """State of `ShapeBackoffs`."""

    of_all: Holdoff = Holdoff()
    """Pause of all shapes of tasks."""
    by_shape: Mapping[ShapeAt, Holdoff] = {}

    def of(self, shape: ShapeAt) -> Holdoff:
        return self.by_shape.get(shape, Holdoff())


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """Failures of the requests of a site lately."""

    refused: ShapeHoldoffs = ShapeHoldoffs()
    """Requests in a row that the scheduler did not take."""
    stuck: ShapeHoldoffs = ShapeHoldoffs()
    """Pilots in a row that the scheduler took and did not start."""
    fruitless: ShapeHoldoffs = ShapeHoldoffs()
    """Pilots in a row that ended without running a task."""


_NONE = ShapeHoldoffs()  # nothing has ever failed


class ShapeBackoffs:
    """One `Backoff` for each shape of task that failed in a partition, and one for the site."""

    def __init__(self, first: float, most: float, tolerated: int = 0) -> None:
        """`first`, `most`: the shortest and longest pause in seconds; `tolerated`: failures in a row without
        a pause."""
        self._terms = (first, most, tolerated)
        self._all = Backoff(first, most, tolerated)
        self._by_shape: dict[ShapeAt, Backoff] = {}
        self.holdoffs = _NONE  # their state, for a decision to look at
        self._in_a_row: set[TaskShape] = set()
        """The shapes that failed since the last success, where it was not the site that failed."""

    def failed(self, shape: ShapeAt | None, now: float, reason: str, *, pauses: bool = True) -> None:
        """`shape` is None where the failure says nothing of the tasks, or where they are not known.

        `pauses`: False where a smaller request for such tasks may be made at once, while few shapes fail.
        """
        if shape is not None and not pauses:
            self._in_a_row.add(shape[0])
        elif shape is not None:
            self._by_shape.setdefault(shape, Backoff(*self._terms)).failed(now, reason)
            self._in_a_row.add(shape[0])
        if shape is None or len(self._in_a_row) >= SHAPES_IN_A_ROW:
            self._all.failed(now, reason)
        self._changed()

    def succeeded(self, shape: ShapeAt | None) -> None:
        if self.holdoffs is _NONE:
            return
        self._all.succeeded()
        self._in_a_row.clear()
        if shape is not None:
            self._by_shape.pop(shape, None)
        self._changed()

    def keep(self, shapes: Collection[TaskShape]) -> None:
        """Forget the failures of all shapes but those that still wait."""
        if self.holdoffs is _NONE:
            return
        kept = set(shapes)
        for shape in [at for at in self._by_shape if at[0] not in kept]:
            del self._by_shape[shape]
        gone = self._in_a_row - kept
        if gone:
            before = len(self._in_a_row)
            self._in_a_row -= gone
            if len(self._in_a_row) < SHAPES_IN_A_ROW <= before:
                self._all.succeeded()
        self._changed()

    @property
    def ends(self) -> list[float]:
        """Epoch seconds at which tasks whose requests failed may be tried again."""
        if self.holdoffs is _NONE:
            return []
        return [holdoff.until for holdoff in (self.holdoffs.of_all, *self.holdoffs.by_shape.values())]

    def _changed(self) -> None:
        self.holdoffs = ShapeHoldoffs(
            of_all=self._all.holdoff,
            by_shape={shape: backoff.holdoff for shape, backoff in self._by_shape.items()},
        )
