"""Possible runtimes of a bag's tasks, from the first second on: a guess, what runs, what has finished. Pure.

Each case is a distribution of runtimes that agrees with what is known. Finished runtimes count as they are,
with random weights (Bayesian bootstrap, Rubin 1981). A running task takes longer than it has run: like a
longer finished one, or as the tail says. The tail is log-normal, drawn from all that what has finished, what
runs and the guess leave likely; it stands for one further task besides those that have finished (a Dirichlet
process), so that it counts for all before the first result and for little in the end. Once enough tasks have
finished, the longest of them are not taken as they are: a few may carry much of the mean, so what lies
beyond a threshold is drawn from the generalised Pareto tails that they make likely (`tail`).

Some tasks may be of another kind that takes far longer: that none has finished says little where all tasks
have started at the same time. Where tasks are taken in the order of the file, runtimes may grow or shrink
along it (`trend`). How likely either is follows from what has finished and what runs.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Sequence
from typing import Protocol

import msgspec

from adaptor.runtimes.tail import Tail, beyond, likely_tails, log_survival, survival
from adaptor.runtimes.trend import LEAST, TrendRuntimes, trends

_ATOMS = 100  # runtimes of a case, at most
_LOOKED_AT = 24  # finished and running tasks that the tail is drawn from, of each at most
_SPREADS = {0.05: 0.5, 0.1: 1.0, 0.2: 1.5, 0.35: 2.0, 0.5: 2.0, 0.7: 1.5, 0.85: 1.2, 1.0: 1.0, 1.4: 0.5}
"""Possible deviations of the logarithms of runtimes, with how likely each is at first."""
_ALIKE = {0.01: 0.3, 0.02: 0.4}
"""Deviations that finished tasks may also show: without them one that outlasts alike ones is about to end."""
_STEPS = 14
"""Means of logarithms that are considered where the guess lies, and as many where what is known lies."""
_OTHERS = 0.15  # first probability that some tasks are of another kind, which takes longer
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)  # possible shares of these among all tasks
_SEEN, _MOST_TIMES = 1.5, 30.0  # by which factor they take longer than others, at least and at most
_ENOUGH = 20  # finished tasks from which on the longest ones show a tail
_EXCEEDING = 64  # finished tasks beyond the threshold, at most
_FURTHER = 6  # runtimes of a case that are drawn from the tail


class RuntimeKnowledge(msgspec.Struct, frozen=True, kw_only=True):
    """Observations of the runtimes of a bag's tasks, in seconds."""

    finished: Sequence[float] = ()
    """Runtimes of finished tasks; of many a sample, of one in `every`."""
    places: Sequence[int] = ()
    """The places in the file of those tasks; empty where the order is random."""
    every: int = 1
    running: Sequence[float] = ()
    """Seconds for which the running tasks have run."""
    guess: float
    """Guessed runtime of a task before anything is known."""
    surety: float
    """Deviation of the logarithm of the guess."""
    tasks: int
    """Tasks of the bag, for the trend along the file."""


class ParetoTail(msgspec.Struct, frozen=True):
    """Distribution beyond a threshold in one case, up to the longest task of it."""

    tail: Tail
    threshold: float
    survival: float
    """The share of what lies beyond that is longer than the longest task."""

    @property
    def mean(self) -> float:
        """Mean time beyond the threshold, seconds."""
        return self.threshold + self.tail.moments(self.survival)[0]

    def drawn(self, ran: float, draw: random.Random) -> float:
        """Runtime of a task that takes longer than `ran`, seconds."""
        excess = self.tail.excess(self.survival + (1 - self.survival) * (1 - draw.random()))
        if ran <= self.threshold:
            return self.threshold + excess
        return ran + max(LEAST, self.tail.further(ran - self.threshold) * excess)


class Atom(msgspec.Struct, frozen=True):
    """A runtime of a case, in seconds."""

    value: float
    weight: float
    beyond: float = 0.0
    """Seconds beyond which the runtime lies, for tasks of which no more is known; 0: the runtime is
    `value`."""
    tail: ParetoTail | None = None
    """Distribution of the time beyond; None: by the log-normal tail of the case."""


class Runtimes(Protocol):
    """Possible runtimes of the tasks that have not finished, in one case. Seconds."""

    @property
    def mean(self) -> float:
        """Mean runtime of a task."""

    def one(self, progress: float) -> float:
        """Runtime of a waiting task; `progress`: the share of the waiting tasks that start before it."""

    def several(self, count: float, progress: float) -> float:
        """Runtime of a number of waiting tasks together, one after the other."""

    def rest(self, ran: float) -> float:
        """Time left of a task that has run for `ran` seconds."""


class MixedRuntimes:
    """All tasks are taken from one distribution, wherever they are in the file."""

    def __init__(self, atoms: Sequence[Atom], tail: tuple[float, float], draw: random.Random) -> None:
        """`tail`: mean and deviation of the logarithm beyond what is known."""
        self._atoms = sorted(atoms, key=lambda each: each.value)
        self.values = [atom.value for atom in self._atoms]
        self._sums = list(itertools.accumulate(atom.weight for atom in self._atoms))
        self._tail, self._draw = tail, draw
        total = self._sums[-1]
        first = sum(atom.value * atom.weight for atom in self._atoms) / total
        square = sum(atom.value * atom.value * atom.weight for atom in self._atoms) / total
        self.mean = first  # of a task, seconds
        self.deviation = math.sqrt(max(0.0, square - first * first))
        self._stock: list[Atom] = []  # drawn and not used yet

    def one(self, progress: float) -> float:  # noqa: ARG002
        """Runtime of a waiting task, drawn; the same wherever it is in the file."""
        if not self._stock:
            self._stock = self._draw.choices(self._atoms, cum_weights=self._sums, k=64)
        atom = self._stock.pop()
        return self._beyond(atom, atom.beyond) if atom.beyond else atom.value

    def _beyond(self, atom: Atom, ran: float) -> float:
        return beyond(ran, *self._tail, self._draw) if atom.tail is None else atom.tail.drawn(ran, self._draw)

    def several(self, count: float, progress: float) -> float:
        """Runtime of a number of waiting tasks together, drawn; of many, by the normal distribution."""
        if count <= 3:
            return math.fsum(self.one(progress) for _ in range(round(count)))
        total = count * self.mean + math.sqrt(count) * self.deviation * self._draw.gauss(0.0, 1.0)
        return max(total, count * self.values[0])

    def rest(self, ran: float) -> float:
        """Time left of a task that has run for `ran` seconds, drawn."""
        first = bisect.bisect_right(self.values, ran)
        below = self._sums[first - 1] if first else 0.0
        left = self._sums[-1] - below
        if first == len(self.values) or left <= 0:
            longer = self._draw.paretovariate(2.0)  # the older a task, the longer it goes on
            return max(LEAST, ran * (longer - 1.0))
        place = bisect.bisect_left(self._sums, below + self._draw.random() * left)
        atom = self._atoms[min(place, len(self._atoms) - 1)]
        value = self._beyond(atom, max(ran, atom.beyond)) if atom.beyond else atom.value
        return max(LEAST, value - ran)


class _OtherKind(msgspec.Struct, frozen=True):
    share: float
    """Share of all tasks."""
    takes: float
    """Seconds."""

    def chance(self, survival: float) -> float:
        """Chance that a running task is one of them, if the share `survival` of the others would have run as
        long."""
        return self.share / (self.share + (1 - self.share) * survival)


class RuntimeCases:
    """The cases that agree with what is known; equally likely."""

    def __init__(self, known: RuntimeKnowledge, draw: random.Random) -> None:
        self._known, self._draw = known, draw
        self._finished = sorted(max(LEAST, runtime) for runtime in known.finished)
        self._running = sorted(max(LEAST, runtime) for runtime in known.running)
        self._tails = _likely_tails(known, self._finished, self._running)
        self._chances = [chance for _, _, chance in self._tails]
        self._others: dict[tuple[float, float], list[float]] = {}
        self._trends = trends(known.places, known.finished, known.tasks)
        self._exceeding = 0
        if len(self._finished) >= _ENOUGH:
            self._exceeding = min(_EXCEEDING, round(2 * math.sqrt(len(self._finished))))
            self._threshold = self._finished[-self._exceeding - 1]
            ran = [runtime - self._threshold for runtime in self._running if runtime > self._threshold]
            some = ran[:: max(1, len(ran) // _LOOKED_AT)]
            times = len(ran) / known.every / len(some) if some else 0.0
            excesses = [runtime - self._threshold for runtime in self._finished[-self._exceeding :]]
            self._long = likely_tails(excesses, some, times, self._threshold)

    def next(self) -> Runtimes:
        draw = self._draw
        if (trend := self._trends.drawn(draw)) is not None:
            known = self._known
            ended = min(1.0, len(known.finished) * known.every / max(1, known.tasks))
            started = min(1.0, ended + len(known.running) / max(1, known.tasks))
            return TrendRuntimes(trend, ended, started, draw)
        middle, spread, _ = draw.choices(self._tails, self._chances)[0]
        # Those up to the threshold, if there is one.
        below = _thinned(self._finished[: len(self._finished) - self._exceeding], _ATOMS)
        atoms = [Atom(value, draw.gammavariate(each, 1.0) + 1e-9) for value, each in below]
        if self._exceeding:
            atoms.append(self._long_ones())
        else:
            atoms += [
                Atom(max(LEAST, draw.lognormvariate(middle, spread)), 1.0 / _FURTHER)
                for _ in range(_FURTHER if atoms else _ATOMS)
            ]
        other = self._other_kind(middle, spread)
        for ran, weight in _thinned(self._running, _ATOMS // 2):
            mass = draw.gammavariate(weight / self._known.every, 1.0)
            if other is not None and draw.random() < other.chance(survival(ran, middle, spread)):
                atoms.append(Atom(max(ran, other.takes * draw.lognormvariate(0.0, 0.15)), mass))
            else:
                atoms.append(self._longer(ran, mass, middle, spread))
        return MixedRuntimes(atoms, (middle, spread), draw)

    def _long_ones(self) -> Atom:
        """Tasks beyond the threshold, by one of the likely tails up to the longest task of the bag."""
        draw, known = self._draw, self._known
        share = (self._exceeding + 1) / (len(self._finished) + 1)
        left = max(1.0, known.tasks - len(self._finished) * known.every)
        least = -math.expm1(math.log(1 - draw.random()) / max(1.0, share * left))
        tail = ParetoTail(draw.choices(*self._long)[0], self._threshold, least)
        return Atom(tail.mean, draw.gammavariate(self._exceeding + 1, 1.0), self._threshold, tail)

    def _other_kind(self, middle: float, spread: float) -> _OtherKind | None:
        """Tasks of another kind among those that run, of which none has finished; None: there are none.

        Of those that have been seen to run longer than the others only the age is known: in half of the cases
        they go on as long again. Of those that are not seen yet nothing is known.
        """
        if not self._finished or not self._running:
            return None
        draw, key = self._draw, (middle, spread)
        if key not in self._others:
            self._others[key] = self._chances_of_others(middle, spread)
        (share,) = draw.choices((0.0, *_SHARES), self._others[key])
        if not share:
            return None
        usual = math.exp(middle + spread)
        oldest = self._running[-1]
        if oldest > _SEEN * usual:
            return _OtherKind(share, oldest * min(_MOST_TIMES, draw.paretovariate(1.0)))
        return _OtherKind(share, usual * _SEEN * (_MOST_TIMES / _SEEN) ** draw.random())

    def _chances_of_others(self, middle: float, spread: float) -> list[float]:
        """Chances that there are no such tasks, and that they are each share of all (`_SHARES`), up to a
        factor.

        Finished tasks, none of which is one of them, speak against them; running tasks older than usual speak
        for them.
        """
        running = [
            (survival(ran, middle, spread), weight / self._known.every)
            for ran, weight in _thinned(self._running, _LOOKED_AT)
        ]
        scores = [math.log(1 - _OTHERS)]
        for share in _SHARES:
            score = math.log(_OTHERS / len(_SHARES)) + len(self._finished) * math.log(1 - share)
            scores.append(score + sum(each * math.log(1 - share + share / left) for left, each in running))
        best = max(scores)
        return [math.exp(max(-60.0, score - best)) for score in scores]

    def _longer(self, ran: float, mass: float, middle: float, spread: float) -> Atom:
        """A task that takes longer than `ran`: as one of those that have finished, or as the tail says."""
        longer = self._finished[bisect.bisect_right(self._finished, ran) :]
        if longer and self._draw.random() * (len(longer) + 1) > 1:
            return Atom(self._draw.choice(longer), mass)
        return Atom(beyond(ran, middle, spread, self._draw), mass, ran)


def _thinned(values: Sequence[float], most: int) -> list[tuple[float, float]]:
    """Values evenly spread among ordered ones, with the number for which each stands; the longest is always
    there."""
    count = len(values)
    if count <= most:
        return [(value, 1.0) for value in values]
    each = count / most
    return [(values[min(count - 1, int((place + 1) * each) - 1)], each) for place in range(most)]


def _likely_tails(
    known: RuntimeKnowledge, finished: Sequence[float], running: Sequence[float]
) -> list[tuple[float, float, float]]:
    """Means and deviations of logarithms, with their chances by all that is known."""
    done = [(math.log(value), weight) for value, weight in _thinned(finished, _LOOKED_AT)]
    begun = [(math.log(value), weight) for value, weight in _thinned(running, _LOOKED_AT)]
    guess = math.log(max(LEAST, known.guess))
    low, high = guess - 2.5 * known.surety, guess + 2.5 * known.surety
    if done:
        low, high = min(low, done[0][0]), max(high, done[-1][0])
    if begun:
        high = max(high, begun[-1][0] + 2.0)
    count = len(finished)
    middles = [low + (high - low) * (step + 0.5) / _STEPS for step in range(_STEPS)]
    if done or begun:
        least = min(atom[0] for atom in (*done, *begun)) - 0.5
        most = max(atom[0] for atom in (*done, *begun)) + 1.5
        middles += [least + (most - least) * (step + 0.5) / _STEPS for step in range(_STEPS)]
    spreads = _SPREADS
    if done:
        spreads = _ALIKE | _SPREADS
        middles.append(sum(value * weight for value, weight in done) / sum(weight for _, weight in done))
    scored = []
    for middle in middles:
        # The guess fades as results come: it is of no use to weigh it against many.
        for spread, chance in spreads.items():
            off = (middle + spread * spread / 2 - guess) / known.surety
            score = math.log(chance) - 0.5 * off * off / (1 + count / 4)
            for value, weight in done:
                score -= weight * (0.5 * ((value - middle) / spread) ** 2 + math.log(spread))
            for value, weight in begun:
                score += weight / known.every * log_survival((value - middle) / spread)
            scored.append((middle, spread, score))
    best = max(score for _, _, score in scored)
    return [(middle, spread, math.exp(max(-60.0, score - best))) for middle, spread, score in scored]
