"""Progress of bags in words: one line for each, lines at sensible changes, and the rate of tasks."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from adaptor import views
from adaptor.cli.follow import Overview
from adaptor.cli.words import clock, duration, pilots_line, plural, printable

STEP = 10
"""Per cent of a bag between two lines."""
PILOTS_PAUSE = 5.0
"""Seconds between two lines on pilots."""


def title(bag: views.BagView) -> str:
    return f"bag {bag.id} {printable(bag.name, 30)}"


def counts(bag: views.BagView) -> str:
    """`120 of 300 done, 1 failed, 6 running, 173 waiting, mean 2.1s`."""
    parts = [f"{bag.done:,} of {bag.tasks:,} done"]
    for count, word in (
        (bag.failed, "failed"),
        (bag.cancelled, "cancelled"),
        (bag.running, "running"),
        (bag.waiting, "waiting"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    if bag.mean_runtime is not None:
        parts.append(f"mean {duration(bag.mean_runtime)}")
    return ", ".join(parts)


def summary(bag: views.BagView) -> str:
    """One line on a bag that has ended, with the way to what failed."""
    took = f" in {duration(bag.ended - bag.submitted)}" if bag.ended is not None else ""
    if bag.done == bag.tasks:
        return f"{title(bag)}: {plural(bag.tasks, 'task')} done{took}; output in {printable(bag.output)}"
    return f"{title(bag)}: ended{took}: {counts(bag)} (adaptor results {bag.id} --failed)"


class Narrator:
    """What is worth a line: each tenth of a bag, its first failure, pilots that come, start and go."""

    def __init__(self) -> None:
        self._bags: dict[int, tuple[int, bool]] = {}
        self._paces: dict[int, Pace] = {}
        self._pilots: tuple[object, ...] = ()
        self._told_pilots = -math.inf

    def lines(self, snapshot: Overview) -> list[str]:
        """The lines for one more snapshot; none in most cases."""
        at = clock(snapshot.time, snapshot.time)
        told = [line for bag in snapshot.bags for line in self._bag_lines(bag, snapshot.time)]
        if not snapshot.ended:
            told = self._pilot_lines(snapshot) + told
        return [f"{at} {line}" for line in told]

    def _pilot_lines(self, snapshot: Overview) -> list[str]:
        states = sorted((pilot.id, pilot.state, pilot.note) for pilot in snapshot.pilots)
        if tuple(states) == self._pilots or snapshot.time < self._told_pilots + PILOTS_PAUSE:
            return []
        self._pilots, self._told_pilots = tuple(states), snapshot.time
        return [pilots_line(snapshot.pilots, snapshot.time), *pilot_notes(snapshot.pilots)]

    def _bag_lines(self, bag: views.BagView, now: float) -> list[str]:
        pace = self._paces.setdefault(bag.id, Pace())
        pace.add(now, bag.done + bag.failed)
        step = 100 * (bag.done + bag.failed + bag.cancelled) // bag.tasks // STEP
        state = (step, bag.failed > 0)
        if bag.state != "running" or state == self._bags.get(bag.id):
            return []
        self._bags[bag.id] = state
        rate = rate_text(pace.rate)
        return [f"{title(bag)}: {counts(bag)}{', ' + rate if rate else ''}"]


def pilot_notes(pilots: Sequence[views.PilotRecord]) -> list[str]:
    """What the user should know of pilots now."""
    return [f"pilot {pilot.id}: {printable(pilot.note)}" for pilot in pilots if pilot.note]


WINDOW = 30.0
"""Seconds over which the rate is taken."""


class Pace:
    """The rate of one bag's tasks over the last half minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now: float, ended: int) -> None:
        """`ended`: tasks that have ended by now."""
        self._seen.append((now, ended))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """Tasks per second; 0 while nothing is known."""
        if not self._seen:
            return 0.0
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return max(0, after - before) / (last - first) if last > first else 0.0


def rate_text(rate: float) -> str:
    """`12 tasks/s`, `1.5 tasks/min`, `2 tasks/h`; empty for 0."""
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if rate * seconds >= 1:
            value = rate * seconds
            return f"{value:,.0f} tasks/{unit}" if value >= 10 else f"{value:.1f} tasks/{unit}"
    return ""
