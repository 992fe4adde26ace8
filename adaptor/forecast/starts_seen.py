"""Accuracy of forecasts of starts at a site, by the jobs of all users that waited there. Pure.

Whenever a queue is forecast for a question, some jobs that wait in it are forecast too: the newest, as a new
request comes last. The first forecast of each job is judged, when the job is seen to run, and calibrates
later ones. A job that starts and ends between two looks is never seen to run, so short jobs count less.

Waits are learned at each look, forecast or not (`past_waits`), and again when a job has waited for a quarter
of an hour, an hour, four hours and so on. A job came in the middle of the last look without it and its first
sight, as far as known; one that starts between two looks has not waited.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from statistics import median

import msgspec

from adaptor.crafting.futures.drawn_queue import is_job
from adaptor.forecast.calibration import Kind, score
from adaptor.forecast.estimate import CONFIDENCE
from adaptor.forecast.kept_starts import JudgedStart, KeptStarts
from adaptor.forecast.past_waits import KEPT, PastWait, PastWaits, Waiting, Weights, ratio, weights_of
from adaptor.forecast.record import wilson
from adaptor.forecast.start import StartForecast
from adaptor.model import Estimate, PendingJob, QueueState, RunningJob

MOST_FOLLOWED = 300  # jobs whose forecasts are followed at the same time, at most
_MOST_WAITING = 5000  # jobs whose waits are followed at the same time, at most
_AGES = (0.0, 900.0, 3600.0, 4 * 3600.0, 16 * 3600.0, 64 * 3600.0)
"""Seconds waited at which a job is noted, to be compared with others that have waited as long."""
_MOST_BETWEEN = 1200.0
"""Seconds between two looks beyond which the waits of jobs that came in between are not known."""
_ENOUGH_NEW = 50  # waits after which they are stored again
NEWEST = 200  # starts that count, the newest: queues change


class _Followed(msgspec.Struct):
    """A job that waits."""

    since: float
    """Epoch seconds at which it came, as far as known."""
    noted: list[Waiting]


class StartsSeen:
    def __init__(self, kept: KeptStarts | None = None, hashed: Callable[[str], str] = str) -> None:
        """
        Args:
            kept: what `take_new` gave.
            hashed: what a user is known by.
        """
        kept = kept or KeptStarts()
        self._first: dict[str, StartForecast | None] = {}
        """First forecast of each waiting job; None: no start was foreseen."""
        self._judged = deque(kept.judged, maxlen=NEWEST)
        self._waits = deque(kept.waits, maxlen=KEPT)
        self._hashed = hashed
        self._followed: dict[str, _Followed] = {}
        self._looked: float | None = None
        self._without_since = frozenset[str]()
        """Jobs that waited at the last look of which it is not known since when."""
        self._kept, self._new_waits = True, 0

    def looked(self, queue: QueueState) -> None:
        """Judge the jobs that run by now, learn how long they waited, and forget those that are gone."""
        states = list(queue.partitions.values()) or [queue]
        self._judge(states)
        self._follow(states, queue.now)

    def _judge(self, states: Sequence[QueueState]) -> None:
        if not self._first:
            return
        waiting = {job.id for state in states for job in state.pending}
        started = {
            job.id: job.end - state.limits[job.id]
            for state in states
            for job in state.running
            if job.id in state.limits
        }
        for id, first in list(self._first.items()):
            if id in started and first is not None:
                self._judged.append(_judged(first, started[id]))
                self._kept = False
            if id not in waiting:
                self._first.pop(id, None)

    def _follow(self, states: Sequence[QueueState], now: float) -> None:
        last, self._looked = self._looked, now
        if last is not None and now <= last:
            return
        short = last is not None and now - last <= _MOST_BETWEEN
        since = (last + now) / 2 if last is not None and short else None
        waiting = {job.id for state in states for job in state.pending}
        running = {job.id: (job, state) for state in states for job in state.running if is_job(job.id)}
        for id, (job, state) in running.items():
            start = job.end - state.limits.get(id, math.inf)
            if id in self._followed:
                self._learn(self._followed.pop(id), start)
            elif last is not None and short and start > last and id not in self._without_since:
                self._learn(_Followed(start, [self._started(job, state)]), start)
        for state in states:
            for pending, owner, ahead in self._comparable(state):
                if since is not None and self._is_new(pending):
                    noted = msgspec.structs.replace(self._as_seen(pending, owner, ahead, now), waited=0.0)
                    self._followed[pending.id] = _Followed(since, [noted])
                known = self._followed.get(pending.id)
                if known is not None and len(known.noted) < bisect_right(_AGES, now - known.since):
                    known.noted.append(self._as_seen(pending, owner, ahead, now))
        self._followed = {id: each for id, each in self._followed.items() if id in waiting}
        self._without_since = frozenset(waiting - self._followed.keys())

    def _is_new(self, job: PendingJob) -> bool:
        """Whether a job that waits came since the last look, and may be followed."""
        return (
            job.id not in self._followed
            and job.id not in self._without_since
            and len(self._followed) < _MOST_WAITING
        )

    def _learn(self, followed: _Followed, start: float) -> None:
        """Learn a wait. `start`: negative infinity if it is not known; nothing is learned then."""
        for job in followed.noted if math.isfinite(start) else ():
            self._waits.append(PastWait(job, max(0.0, start - followed.since - job.waited)))
            self._new_waits += 1

    def _started(self, job: RunningJob, state: QueueState) -> Waiting:
        gpus = any(part.gpus for part in job.parts)
        return Waiting(job.processors, state.limits[job.id], gpus, self._hashed(state.owners.get(job.id, "")))

    def waiting(self, queue: QueueState) -> dict[str, Waiting]:
        """Facts by which each waiting job is compared with past waits."""
        return {
            job.id: self._as_seen(job, owner, ahead, queue.now)
            for job, owner, ahead in self._comparable(queue)
        }

    def _comparable(self, queue: QueueState) -> Iterator[tuple[PendingJob, str, int]]:
        """The jobs that wait there, each with what its user is known by, and that user's jobs in front."""
        hashes, ahead = dict[str, str](), Counter[str]()
        for job in queue.pending:
            if not is_job(job.id) or not 0 < job.tr < math.inf:
                continue
            name = queue.owners.get(job.id, "")
            if name not in hashes:
                hashes[name] = self._hashed(name)
            owner = hashes[name]
            yield job, owner, ahead[owner] if owner else 0
            ahead[owner] += 1

    def _as_seen(self, job: PendingJob, owner: str, ahead: int, now: float) -> Waiting:
        known = self._followed.get(job.id)
        return Waiting(
            processors=job.processors,
            limit=job.tr,
            gpus=job.need is not None and job.need.gpus > 0,
            owner=owner,
            ahead=ahead,
            waited=0.0 if known is None else max(0.0, now - known.since),
        )

    @property
    def past(self) -> PastWaits:
        """The newest waits."""
        return PastWaits(tuple(self._waits))

    @property
    def past_weights(self) -> Weights:
        """Weights of past waits next to the plan, by the newest starts."""
        return weights_of(each.ratios for each in self._judged if each.ratios is not None)

    def forecast(self, queue: QueueState, forecast_of: Callable[[str], StartForecast], most: int) -> None:
        """Make the first forecasts of jobs that wait, the last of the queue first.

        Args:
            forecast_of: of a job that waits, by its id.
            most: jobs that are forecast at once.
        """
        new = (job.id for job in reversed(queue.pending) if job.id not in self._first and is_job(job.id))
        for id in islice(new, max(0, min(most, MOST_FOLLOWED - len(self._first)))):
            found = forecast_of(id)
            self._first[id] = None if found.start is None or found.raw is None else found

    def take_new(self) -> KeptStarts | None:
        """All that counts, to be stored; None: there is little new since the last call."""
        if self._kept and self._new_waits < _ENOUGH_NEW:
            return None
        self._kept, self._new_waits = True, 0
        return KeptStarts(tuple(self._judged), tuple(self._waits))

    @property
    def starts(self) -> int:
        """Number of judged starts that count."""
        return len(self._judged)

    @property
    def scores(self) -> dict[Kind, list[float]]:
        """Errors of earlier forecasts by kind, the oldest first."""
        found: dict[Kind, list[float]] = {}
        for judged in self._judged:
            found.setdefault(judged.kind, []).append(judged.score)
        return found

    @property
    def held(self) -> int:
        return sum(each.held for each in self._judged)

    @property
    def right(self) -> bool:
        """Whether that agrees with the share that intervals are meant to hold."""
        return is_right(self.held, self.starts)

    @property
    def error(self) -> float:
        """The median, seconds. Raises statistics.StatisticsError: none was judged."""
        return median(each.error for each in self._judged)


def is_right(held: int, starts: int) -> bool:
    """Whether the share of starts that held agrees with what intervals are meant to hold."""
    return not starts or wilson(held / starts, starts)[1] >= CONFIDENCE


def _judged(first: StartForecast, at: float) -> JudgedStart:
    assert first.start is not None
    assert first.raw is not None
    start, raw = first.start, first.raw
    wait = at - raw.made
    ratios = None
    if first.alone is not None:
        plan, like, shape = (ratio(told - raw.made, wait) for told in first.alone)
        ratios = plan, like, shape
    return JudgedStart(
        held=start.holds(at),
        error=abs(at - start.value),
        kind=raw.kind,
        score=score(raw, at),
        ratios=ratios,
        told=Estimate(start.low - raw.made, start.value - raw.made, start.high - raw.made),
        came=wait,
    )
