"""Walltimes of pilots for tasks of which little is known. Pure; times in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from adaptor.crafting.situation import Demand
from adaptor.runtimes.known import ENOUGH

LADDER = (120.0, 900.0, 3600.0, 14_400.0)
"""Walltimes of the first queued pilots while nothing is known of the runtimes: short ones start in holes that
others leave, long ones have a place in the queue when the tasks turn out to be long. The others ask for the
longest walltime."""
RUNG = 4  # pilots of each walltime of the ladder
PATIENCE = 4.0
"""Times the longest runtime seen that a queued pilot asks for at first. Later it is less: the more tasks have
finished, the less likely is one that takes far longer than the longest of them."""
EVEN = 1.25  # the same where all tasks have taken as long as their mean
ALIKE = 0.25  # of the mean, the most by which the longest of tasks that are alike is longer than it
SURE = 1.1  # times the longest runtime seen that must be left for one more task
MOST_ROUNDS = 10  # tasks that each slot of a queued pilot is to run one after another, at most


class Needed(msgspec.Struct, frozen=True, kw_only=True):
    """The walltime that tasks need, without the pad."""

    top: float
    """The longest time for which a task has run; 0: none has run."""
    mean: float
    """Mean seconds of the tasks that have finished; 0: none has, and nothing else is known."""
    hole: float
    """The least with which a pilot that starts now is of use."""
    queued: float
    """Seconds that a queued pilot asks for one task; infinity: nothing is known yet, and `ladder` applies."""
    own: float
    """Seconds that the tasks that were cut need; at least `queued`."""
    cut: int
    """Number of tasks that were cut."""
    alike: bool
    """Whether enough have finished to say that all take about as long."""

    @property
    def known(self) -> bool:
        return not math.isinf(self.queued)


def needed(demand: Demand, now: float) -> Needed:
    """Times that follow from tasks that have finished, run, or were cut, and from what was known before."""
    times = demand.times
    top = times.longest_seen(now)
    if not times.finished:
        mean, queued = (demand.runtime, PATIENCE * demand.runtime) if times.known else (0.0, math.inf)
        hole = max(demand.shortest, SURE * top if times.known else 0.0)
        queued = max(queued, hole)
        return Needed(top=top, mean=mean, hole=hole, queued=queued, own=queued, cut=0, alike=False)
    doubt = 1 + (1 + times.overdue(now, demand.running)) / times.finished
    hole = max(demand.shortest, SURE * top * (1 + 1 / times.finished))
    spread = min(1.0, max(0.0, top / times.mean - 1)) if times.mean else 1.0
    even = EVEN + (PATIENCE - EVEN) * spread
    patience = (times.finished * even + ENOUGH * PATIENCE) / (times.finished + ENOUGH)
    queued = max(hole, patience * top * doubt)
    return Needed(
        top=top,
        mean=times.mean,
        hole=hole,
        queued=queued,
        own=max(queued, demand.runtime),
        cut=times.cut,
        alike=times.enough and spread <= ALIKE,
    )


def further_rounds(need: Needed, rounds: int) -> float:
    """Seconds that each slot needs for the tasks after its first one."""
    return (min(rounds, MOST_ROUNDS) - 1) * need.mean


def queued_walltimes(need: Needed, there: Iterable[float], rounds: int, longest: float) -> Iterator[float]:
    """The walltimes of the next queued pilots, without the pad, without end.

    Args:
        there: those of the pilots that are queued already.
        rounds: tasks that each slot is to run one after another.
        longest: what the site allows.
    """
    queued = sorted(there)
    if need.known:
        long_enough = sum(each >= need.own for each in queued)
        more = further_rounds(need, rounds)
        for _ in range(need.cut - long_enough):
            yield min(longest, need.own + more)
        while True:
            yield min(longest, need.queued + more)
    for rung in LADDER:
        raised = max(rung, 2 * need.top)
        if raised >= longest:
            break
        near = sum(raised / 2 < each <= 2 * raised for each in queued)
        for _ in range(RUNG - near):
            yield raised
    while True:
        yield longest
