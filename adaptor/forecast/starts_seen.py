"""How often forecasts of starts held at a site, by the jobs of all users that waited there. Pure.

Whenever a queue is forecast for a question, all jobs that wait in it are forecast too, which costs next to
nothing. The first forecast of each job is judged, when the job is seen to run. One that starts and ends
between two looks is never seen to run, so short jobs count less.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median

import msgspec

from adaptor.crafting.futures.drawn_queue import is_job
from adaptor.forecast.estimate import Estimate
from adaptor.model import QueueState

MOST_FOLLOWED = 300
"""Jobs that are followed at the same time, at most."""
NEWEST = 200
"""Starts that count, the newest: queues change."""


class JudgedStart(msgspec.Struct, frozen=True):
    held: bool
    """Whether the start lies in its interval."""
    error: float
    """Seconds between it and the expected start."""


class StartsSeen:
    def __init__(self) -> None:
        self._first: dict[str, Estimate] = {}
        """By job that waits: its first forecast."""
        self._judged: deque[JudgedStart] = deque(maxlen=NEWEST)

    def looked(self, queue: QueueState) -> None:
        """Judge the jobs that run by now, and forget those that are gone."""
        states = list(queue.partitions.values()) or [queue]
        waiting = {job.id for state in states for job in state.pending}
        started = {
            job.id: job.end - state.limits[job.id]
            for state in states
            for job in state.running
            if job.id in state.limits
        }
        for id, first in list(self._first.items()):
            if id in started:
                at = started[id]
                self._judged.append(JudgedStart(first.holds(at), abs(at - first.value)))
            if id not in waiting:
                self._first.pop(id, None)

    def forecast(self, queue: QueueState, start_of: Callable[[str], Estimate | None]) -> None:
        """Make the first forecasts of jobs that wait, in the order of the queue.

        Args:
            start_of: the start of a job that waits, by its id; None: none can be foreseen.
        """
        for job in queue.pending:
            if len(self._first) >= MOST_FOLLOWED:
                return
            if job.id not in self._first and is_job(job.id):
                start = start_of(job.id)
                if start is not None:
                    self._first[job.id] = start

    @property
    def starts(self) -> int:
        """Those that were judged, as far as they count."""
        return len(self._judged)

    @property
    def held(self) -> int:
        return sum(each.held for each in self._judged)

    @property
    def error(self) -> float:
        """The median, seconds. Raises statistics.StatisticsError: none was judged."""
        return median(each.error for each in self._judged)
