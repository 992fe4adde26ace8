"""Possible rests of a bag: the work of its unfinished tasks, drawn from all that the finished ones say.

Those tasks are of an unknown distribution, of which nothing is assumed. Up to a threshold it is drawn anew
from the finished runtimes (`body`); beyond, where a few tasks may carry much of the mean, from the tails that
the longest make likely (`excess`). Running tasks count as what they are: known to take longer than they have
run. So the early ends of short tasks, which come first where many run at once, mislead nobody. Where some
have run on far beyond all that have finished, they may be of another kind, of which nothing else is known
(`other_kind`).

Both the distribution and the tasks of it differ between the draws; their spread is what is not known.
"""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Sequence

import msgspec

from adaptor.budget.estimation.bootstrap_body import Body, body_of
from adaptor.budget.estimation.other_kind import OtherKind, chance_of_another_kind, other_kinds
from adaptor.budget.estimation.pareto_tail import Censored, Tail, likely_tails

DRAWS = 200
_EXCEEDING = 64
"""Finished tasks beyond the threshold, at most."""
_CENSORED = 40
"""Running tasks that the tail is learned from, at most."""
_NEVER = 1e-9
"""A share of tasks that is none."""
_SINGLY = 30
"""So many tasks beyond the threshold are drawn one by one; of more only the longest."""


class Rest(msgspec.Struct, frozen=True):
    """One that may be."""

    work: float
    """Seconds of a slot that the tasks without a result need."""
    residual: float
    """Seconds that are left of a task at a random instant of it, in the mean: E[T²] / 2 E[T]."""
    longest: float = 0.0
    """Seconds of the longest waiting task beyond the threshold; 0 where there is none."""


class _Known(msgspec.Struct, frozen=True):
    body: Body
    threshold: float
    ran: list[float]
    """Seconds that running tasks have run beyond the threshold."""
    waiting: int
    longest: float


def possible_rests(
    finished: Sequence[float], running: Sequence[float], waiting: int, longest: float, every: int = 1
) -> list[Rest]:
    """`DRAWS` cases that are equally likely, from runtimes and from times run so far, in seconds.

    The same bag has the same cases. For the residual no task counts with more than `longest`. Where
    `finished` is a sample, of one task in `every`, as few of the running ones say how long tasks are.

    Raises:
        ValueError: fewer than two tasks have finished.
    """
    if len(finished) < 2:
        raise ValueError(f"a forecast needs two finished tasks at least, there are {len(finished)}")
    done, begun = sorted(finished), sorted(running)
    size = len(done) - _exceeding(len(done))
    threshold = done[size - 1]
    known = _known(done, begun, size, every, waiting, longest)
    excesses = [each - threshold for each in done[size:]]
    censored = Censored(_thinned(known.ran, _CENSORED), len(known.ran) / every)
    tails, weights = likely_tails(excesses, censored, threshold)
    others = round(DRAWS * chance_of_another_kind(tails, excesses, censored, threshold))
    draw = random.Random(1)  # noqa: S311
    rests = [_drawn(known, tail, draw) for tail in draw.choices(tails, weights, k=DRAWS - others)]
    if others:
        known = _known(done, begun, len(done), every, waiting, longest)
        rests += [_drawn(known, kind, draw) for kind in other_kinds(begun[-1], known.threshold, others)]
    return rests


def _known(
    done: list[float], begun: list[float], size: int, every: int, waiting: int, longest: float
) -> _Known:
    """With the `size` shortest runtimes below the threshold."""
    threshold = done[size - 1]
    ran = [each - threshold for each in begun[bisect.bisect_right(begun, threshold) :]]
    return _Known(body_of(done, begun, size, every), threshold, ran, waiting, longest)


def _exceeding(finished: int) -> int:
    """How many of the finished tasks tell of the tail: 11 of 30, ever fewer of more."""
    return min(finished - 1, _EXCEEDING, round(2 * math.sqrt(finished)))


def _thinned(values: Sequence[float], most: int) -> list[float]:
    """Evenly among them."""
    step = max(1.0, len(values) / most)
    return [values[int((place + 0.5) * step)] for place in range(min(most, len(values)))]


def _drawn(known: _Known, tail: Tail | OtherKind, draw: random.Random) -> Rest:
    crossing = known.body.crossing
    share, mean, variance = known.body.draw(draw)
    long = _binomial(known.waiting, share, draw)
    crossed = _binomial(crossing.count, min(1.0, crossing.chance * share / known.body.beyond), draw)
    short, staying = known.waiting - long, crossing.count - crossed
    noise = math.sqrt(short * variance + staying * crossing.variance) * draw.gauss(0.0, 1.0)
    below = max(0.0, short * mean + staying * crossing.rest + noise)
    until = long * known.threshold + crossed * crossing.until
    beyond, most = _excesses(tail, long, draw)
    beyond += _excesses(tail, crossed, draw)[0] + _rests_of_long(tail, known.ran, draw)
    residual = _residual(known, tail, share, mean, variance)
    return Rest(below + until + beyond, residual, known.threshold + most if long else 0.0)


def _residual(known: _Known, tail: Tail | OtherKind, share: float, mean: float, variance: float) -> float:
    """Of the distribution that was drawn: this share is beyond the threshold, the others have this mean."""
    room = max(0.0, known.longest - known.threshold)
    survival = max(_NEVER, tail.survival(room))
    excess, spread = tail.moments(survival)
    long = min(known.threshold, known.longest) + (1 - survival) * excess + survival * room
    square = (1 - survival) * ((known.threshold + excess) ** 2 + spread) + survival * known.longest**2
    first = (1 - share) * mean + share * long
    return ((1 - share) * (variance + mean * mean) + share * square) / (2 * first) if first else 0.0


def _excesses(tail: Tail | OtherKind, count: int, draw: random.Random) -> tuple[float, float]:
    """The sum of the excesses of so many tasks, and the largest of them.

    Of very many the longest is drawn; of the others, which are shorter, the sum is nearly normal.
    """
    if count <= _SINGLY:
        found = [tail.excess(1 - draw.random()) for _ in range(count)]
        return math.fsum(found), max(found, default=0.0)
    survival = -math.expm1(math.log(1 - draw.random()) / count)
    mean, variance = tail.moments(survival)
    others = (count - 1) * mean + math.sqrt((count - 1) * variance) * draw.gauss(0.0, 1.0)
    longest = tail.excess(survival)
    return longest + max(0.0, others), longest


def _rests_of_long(tail: Tail | OtherKind, ran: Sequence[float], draw: random.Random) -> float:
    """What is left of the tasks that have run beyond the threshold."""
    if len(ran) <= _SINGLY:
        return math.fsum(tail.further(each) * tail.excess(1 - draw.random()) for each in ran)
    further = [tail.further(each) for each in _thinned(ran, _SINGLY)]
    return math.fsum(further) / len(further) * _excesses(tail, len(ran), draw)[0]


def _binomial(count: int, chance: float, draw: random.Random) -> int:
    """How many of so many, each with this chance."""
    if chance > 0.5:
        return count - _binomial(count, 1 - chance, draw)
    mean = count * chance
    if mean > _SINGLY:
        return round(min(count, max(0.0, draw.gauss(mean, math.sqrt(mean * (1 - chance))))))
    return _rare(count, chance, draw)


def _rare(count: int, chance: float, draw: random.Random) -> int:
    """By the gaps between successes, which are geometric (Devroye 1986, §X.4.3)."""
    found, place = 0, 0
    while chance > 0:
        place += 1 + int(math.log(1 - draw.random()) / math.log1p(-chance))
        if place > count:
            break
        found += 1
    return found
