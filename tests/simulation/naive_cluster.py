"""A second, slow and independent scheduler to hold the fast one against.

It follows the description of pyss to the letter: a heap of events, and the processors in use written
down second by second. What is done from outside comes after all other events of its second.
"""

from __future__ import annotations

import heapq
from typing import Literal

import numpy as np

SUBMISSION, TERMINATION, START, OUTSIDE = range(4)
HORIZON = 6000


class NaiveCluster:
    """Small traces only: everything must be over before HORIZON."""

    def __init__(self, processors: int, policy: Literal["conservative", "easy"]) -> None:
        self.policy = policy
        self.free = np.full(HORIZON, processors)
        self.events: list[tuple[int, int, int, str, int]] = []
        self.counter = 0
        self.jobs: list[list[int]] = []  # processors, limit, run
        self.planned: dict[int, int] = {}
        self.started: dict[int, int] = {}
        self.first_promise: dict[int, int] = {}
        self.waiting: list[int] = []
        self.gone: set[int] = set()
        self.booked: dict[int, int] = {}
        """By planned job: the event that starts it."""
        self.wishes: dict[int, list[int]] = {}

    def add(self, at: int, processors: int, limit: int, run: int, *, outside: bool = False) -> int:
        self.jobs.append([processors, limit, run])
        self._push(at, OUTSIDE if outside else SUBMISSION, "submit", len(self.jobs) - 1)
        return len(self.jobs) - 1

    def cancel(self, at: int, job: int) -> None:
        self._push(at, OUTSIDE, "cancel", job)

    def reshape(self, at: int, job: int, processors: int, limit: int) -> None:
        """From `at` on the job asks for so much, if it still waits."""
        self.wishes[job] = [processors, limit, limit]
        self._push(at, OUTSIDE, "reshape", job)

    def run(self) -> dict[int, int]:
        while self.events:
            now, _, number, what, job = heapq.heappop(self.events)
            if what == "submit":
                self._submit(now, job)
            elif what == "start" and job in self.planned and self.booked[job] == number:
                self.started[job] = now
                self._push(now + self.jobs[job][2], TERMINATION, "end", job)
            elif what == "reshape" and job in self.waiting and job not in self.started:
                self._change(now, job)
            elif what in ("end", "cancel") and job not in self.gone:
                self._leave(now, job)
        return self.started

    def _push(self, at: int, kind: int, what: str, job: int) -> None:
        self.counter += 1
        if what == "start":
            self.booked[job] = self.counter
        heapq.heappush(self.events, (at, kind, self.counter, what, job))

    def _submit(self, now: int, job: int) -> None:
        self.waiting.append(job)
        if self.policy == "easy":
            self._easy(now)
        else:
            self._plan(now, job, self._earliest(self.free, now, job))
            self.first_promise[job] = self.planned[job]

    def _leave(self, now: int, job: int) -> None:
        self.gone.add(job)
        processors, limit, _ = self.jobs[job]
        if job in self.planned:
            start = self.planned[job]
            self.free[max(now, start) : start + limit] += processors
        if job in self.waiting:
            self.waiting.remove(job)
        if job not in self.started:
            self.planned.pop(job, None)
        self._easy(now) if self.policy == "easy" else self._compress(now)

    def _change(self, now: int, job: int) -> None:
        if self.policy == "easy":
            self.jobs[job] = self.wishes[job]
            self._easy(now)
            return
        processors, limit, _ = self.jobs[job]
        self.free[self.planned[job] : self.planned[job] + limit] += processors
        self.jobs[job] = self.wishes[job]
        self._plan(now, job, self._earliest(self.free, now, job))
        self._compress(now)

    def _compress(self, now: int) -> None:
        for job in self.waiting:
            before = self.planned[job]
            if before <= now:
                continue
            processors, limit, _ = self.jobs[job]
            self.free[before : before + limit] += processors
            start = self._earliest(self.free, now, job)
            assert start <= before
            if start == before:
                self.free[before : before + limit] -= processors
            else:
                self._plan(now, job, start)

    def _plan(self, now: int, job: int, start: int) -> None:
        processors, limit, _ = self.jobs[job]
        self.free[start : start + limit] -= processors
        assert self.free.min() >= 0
        self.planned[job] = start
        self._push(start, START, "start", job)

    def _earliest(self, free: np.ndarray, now: int, job: int) -> int:
        processors, limit, _ = self.jobs[job]
        start = now
        while (free[start : start + limit] < processors).any():
            start += 1
        return start

    def _easy(self, now: int) -> None:
        undecided = [job for job in self.waiting if job not in self.planned]
        while undecided and self.free[now] >= self.jobs[undecided[0]][0]:
            self._plan(now, undecided.pop(0), now)
        for job in undecided[1:]:
            head = undecided[0]
            reserved = self.free.copy()
            shadow = self._earliest(reserved, now, head)
            reserved[shadow : shadow + self.jobs[head][1]] -= self.jobs[head][0]
            if self.free[now] >= self.jobs[job][0] and self._earliest(reserved, now, job) == now:
                self._plan(now, job, now)
        self.waiting = [job for job in self.waiting if job not in self.planned]
