"""When a worker reports and what: news at once, but in one message what comes together; else heartbeats."""

from __future__ import annotations

from adaptor.protocol.messages import AttemptKey, Report
from adaptor.worker.tasks import Tasks

GAP = 0.005
"""Seconds between two reports, at least."""
GAP_WITH_RESERVE = 0.05
"""The same while more leases are queued than slots, so that nothing waits for an answer."""
AGAIN_AFTER = 3
"""Heartbeats after which a result is sent again that was not acknowledged."""


class Reporter:
    """Reports on the tasks. `now` is monotonic seconds throughout."""

    def __init__(self, tasks: Tasks, heartbeat: float) -> None:
        self.heartbeat = heartbeat
        self._tasks = tasks
        self._last = float("-inf")
        self._last_load = float("-inf")
        self._told: tuple[int, int, int] | None = None
        """The room as last reported."""

    def renew(self, heartbeat: float) -> None:
        """The daemon knows nothing of our room: report it at once."""
        self.heartbeat = heartbeat
        self._told = None

    def next_due(self) -> float:
        news = self._tasks.outbox.has_unsent or self._tasks.started or self._told != self._room()
        if not news:
            return self._last + self.heartbeat
        slots = self._tasks.slots
        return self._last + (GAP_WITH_RESERVE if len(slots.queue) > slots.processors else GAP)

    def compose(self, now: float, *, leaving: bool = False) -> Report:
        """The report to send now. A worker that leaves offers no room."""
        self._last = now
        self._told = self._room()
        processors, memory, queued = (0, 0, 0) if leaving else self._told
        started, self._tasks.started = self._tasks.started, []
        load: list[tuple[AttemptKey, float]] = []
        if now - self._last_load >= self.heartbeat:
            self._last_load = now
            load = self._tasks.runner.loads(now)
        return Report(
            results=self._tasks.outbox.batch(now, AGAIN_AFTER * self.heartbeat),
            started=started,
            free_processors=processors,
            free_memory=memory,
            queued=queued,
            load=load,
        )

    def _room(self) -> tuple[int, int, int]:
        slots = self._tasks.slots
        return slots.free_processors, slots.free_memory, len(slots.queue)
