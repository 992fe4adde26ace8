"""Progress of bags in words: one line for each, and lines at sensible changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptor import api
from adaptor.cli.follow import Overview
from adaptor.cli.sentences import end_words
from adaptor.cli.words import clock, duration, pilots_line, plural, printable

STEP = 10
"""Per cent of a bag between two lines."""
PILOTS_PAUSE = 5.0
"""Seconds between two lines on pilots."""


def title(bag: api.BagView) -> str:
    return f"bag {bag.id} {printable(bag.name, 30)}"


def counts(bag: api.BagView) -> str:
    """`120 of 300 done, 1 failed, 6 running, 173 waiting, mean 2.1s`."""
    parts = [f"{bag.done:,} of {bag.tasks:,} done"]
    for count, word in (
        (bag.failed, "failed"),
        (bag.cancelled, "cancelled"),
        (bag.running, "running"),
        (bag.waiting, "waiting"),
        (bag.blocked, "blocked"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    if bag.mean_runtime is not None:
        parts.append(f"mean {duration(bag.mean_runtime)}")
    return ", ".join(parts)


def summary(bag: api.BagView) -> str:
    """One line on a bag that has ended, with the way to what failed."""
    took = f" in {duration(bag.ended - bag.submitted)}" if bag.ended is not None else ""
    if bag.done == bag.tasks:
        return f"{title(bag)}: {plural(bag.tasks, 'task')} done{took}; output in {printable(bag.output)}"
    return f"{title(bag)}: ended{took}: {counts(bag)} (adaptor results {bag.id} --failed)"


class Narrator:
    """What is worth a line: each tenth of a bag, its first failure, pilots that come, start and go."""

    def __init__(self) -> None:
        self._bags: dict[int, tuple[int, bool]] = {}
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

    def _bag_lines(self, bag: api.BagView, now: float) -> list[str]:
        step = 100 * (bag.done + bag.failed + bag.cancelled) // max(1, bag.tasks) // STEP
        state = (step, bag.failed > 0)
        if bag.state != "running" or state == self._bags.get(bag.id):
            return []
        self._bags[bag.id] = state
        ends = end_words(bag.forecast, now) if bag.forecast is not None else ""
        return [f"{title(bag)}: {counts(bag)}{', ' + ends if ends else ''}"]


def pilot_notes(pilots: Sequence[api.PilotRecord]) -> list[str]:
    """What the user should know of pilots now."""
    return [f"pilot {pilot.id}: {printable(pilot.note)}" for pilot in pilots if pilot.note]
