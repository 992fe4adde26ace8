"""How often forecasts of starts held at a site, by the jobs of all users that waited there. Pure.

Whenever a queue is forecast for a question, some jobs that wait in it are forecast too: the newest, as a new
request comes last. The first forecast of each job is judged, when the job is seen to run, and calibrates
later ones. A job that starts and ends between two looks is never seen to run, so short jobs count less.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from statistics import median

import msgspec

from adaptor.crafting.futures.drawn_queue import is_job
from adaptor.forecast.calibration import Kind, Raw, score
from adaptor.forecast.start import StartForecast
from adaptor.model import Estimate, QueueState

MOST_FOLLOWED = 300  # jobs that are followed at the same time, at most
NEWEST = 200  # starts that count, the newest: queues change


class JudgedStart(msgspec.Struct, frozen=True):
    held: bool
    """Whether the start lies in its interval."""
    error: float
    """Seconds between it and the expected start."""
    kind: Kind
    score: float


class StartsSeen:
    def __init__(self, judged: Iterable[JudgedStart] = ()) -> None:
        """`judged`: those that were kept, the oldest first."""
        self._first: dict[str, tuple[Estimate, Raw] | None] = {}
        """By job that waits: its first forecast; None: no start was foreseen."""
        self._judged = deque(judged, maxlen=NEWEST)
        self._kept = True

    def looked(self, queue: QueueState) -> None:
        """Judge the jobs that run by now, and forget those that are gone."""
        if not self._first:
            return
        states = list(queue.partitions.values()) or [queue]
        waiting = {job.id for state in states for job in state.pending}
        started = {
            job.id: job.end - state.limits[job.id]
            for state in states
            for job in state.running
            if job.id in state.limits
        }
        for id, first in list(self._first.items()):
            if id in started and first is not None:
                at, (start, raw) = started[id], first
                error = abs(at - start.value)
                self._judged.append(JudgedStart(start.holds(at), error, raw.kind, score(raw, at)))
                self._kept = False
            if id not in waiting:
                self._first.pop(id, None)

    def forecast(self, queue: QueueState, forecast_of: Callable[[str], StartForecast], most: int) -> None:
        """Make the first forecasts of jobs that wait, the last of the queue first.

        Args:
            forecast_of: of a job that waits, by its id.
            most: jobs that are forecast at once.
        """
        new = (job.id for job in reversed(queue.pending) if job.id not in self._first and is_job(job.id))
        for id in islice(new, max(0, min(most, MOST_FOLLOWED - len(self._first)))):
            found = forecast_of(id)
            start, raw = found.start, found.raw
            self._first[id] = None if start is None or raw is None else (start, raw)

    def take_new(self) -> tuple[JudgedStart, ...]:
        """All that count, to be stored, if there are new ones since the last call; the oldest first."""
        new, self._kept = () if self._kept else tuple(self._judged), True
        return new

    @property
    def starts(self) -> int:
        """Those that were judged, as far as they count."""
        return len(self._judged)

    @property
    def scores(self) -> dict[Kind, list[float]]:
        """By kind of forecast: how far earlier ones were off, the oldest first."""
        found: dict[Kind, list[float]] = {}
        for judged in self._judged:
            found.setdefault(judged.kind, []).append(judged.score)
        return found

    @property
    def held(self) -> int:
        return sum(each.held for each in self._judged)

    @property
    def error(self) -> float:
        """The median, seconds. Raises statistics.StatisticsError: none was judged."""
        return median(each.error for each in self._judged)
