"""A second, slow and independent scheduler to hold the fast one against.

It follows the description of pyss to the letter: a heap of events, and what is free on each node written down
second by second. What is done from outside comes after all other events of its second.
"""

from __future__ import annotations

import heapq
from typing import Literal

import numpy as np

SUBMISSION, TERMINATION, START, OUTSIDE = range(4)
HORIZON = 6000

Size = tuple[int, tuple[int, ...]]
"""Chunks, and what each takes by dimension."""


class NaiveCluster:
    """Small traces only: everything must be over before HORIZON."""

    def __init__(self, capacity: np.ndarray, policy: Literal["conservative", "easy"]) -> None:
        """`capacity`: by node and dimension."""
        self.policy = policy
        self.room = np.repeat(capacity[None], HORIZON, axis=0)
        self.events: list[tuple[int, int, int, str, int]] = []
        self.counter = 0
        self.jobs: list[tuple[Size, int, int]] = []
        """Size, limit, run."""
        self.wishes: dict[int, tuple[Size, int, int]] = {}
        self.on: dict[int, np.ndarray] = {}
        """By planned job: what it takes of each node."""
        self.planned: dict[int, int] = {}
        self.booked: dict[int, int] = {}
        """By planned job: the event that starts it."""
        self.started: dict[int, int] = {}
        self.first_promise: dict[int, int] = {}
        self.waiting: list[int] = []
        self.gone: set[int] = set()

    def add(self, at: int, size: Size, limit: int, run: int, *, outside: bool = False) -> int:
        self.jobs.append((size, limit, run))
        self._push(at, OUTSIDE if outside else SUBMISSION, "submit", len(self.jobs) - 1)
        return len(self.jobs) - 1

    def cancel(self, at: int, job: int) -> None:
        self._push(at, OUTSIDE, "cancel", job)

    def reshape(self, at: int, job: int, size: Size, limit: int) -> None:
        """From `at` on the job asks for this, if it still waits."""
        self.wishes[job] = (size, limit, limit)
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
            self._plan(job, self._earliest(now, job))
            self.first_promise[job] = self.planned[job]

    def _leave(self, now: int, job: int) -> None:
        self.gone.add(job)
        if job in self.planned:
            self._take(job, max(now, self.planned[job]), -1)
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
        self._take(job, self.planned[job], -1)
        self.jobs[job] = self.wishes[job]
        self._plan(job, self._earliest(now, job))
        self._compress(now)

    def _compress(self, now: int) -> None:
        for job in self.waiting:
            before = self.planned[job]
            if before <= now:
                continue
            self._take(job, before, -1)
            start = self._earliest(now, job)
            assert start <= before
            if start == before:
                self._take(job, before, 1)
            else:
                self._plan(job, start)

    def _easy(self, now: int) -> None:
        undecided = [job for job in self.waiting if job not in self.planned]
        while undecided and self._earliest(now, undecided[0]) == now:
            self._plan(undecided.pop(0), now)
        if undecided:
            head, *others = undecided
            self._choose(head, self._earliest(now, head))
            for job in others:
                if self._fits(job, now):
                    self._plan(job, now)
            self._take(head, self.planned[head], -1)
            del self.planned[head]
        self.waiting = [job for job in self.waiting if job not in self.planned]

    def _plan(self, job: int, start: int) -> None:
        self._choose(job, start)
        self._push(start, START, "start", job)

    def _choose(self, job: int, start: int) -> None:
        """Plan it on the first nodes with room."""
        (left, each), on = self.jobs[job][0], self._chunks(job, start)
        for node, count in enumerate(on):
            on[node] = min(left, count)
            left -= on[node]
        self.on[job], self.planned[job] = on[:, None] * np.array(each), start
        self._take(job, start, 1)

    def _take(self, job: int, since: int, sign: int) -> None:
        """Take from then on what a job holds, or give it back (-1)."""
        self.room[since : self.planned[job] + self.jobs[job][1]] -= sign * self.on[job]
        assert self.room.min() >= 0

    def _earliest(self, now: int, job: int) -> int:
        start = now
        while not self._fits(job, start):
            start += 1
        return start

    def _fits(self, job: int, start: int) -> bool:
        return bool(self._chunks(job, start).sum() >= self.jobs[job][0][0])

    def _chunks(self, job: int, start: int) -> np.ndarray:
        """By node, how many stay there from `start` until the limit."""
        (chunks, each), limit, _ = self.jobs[job]
        least = self.room[start : start + limit].min(axis=0)
        fitting = [least[:, d] // size for d, size in enumerate(each) if size]
        return np.minimum(chunks, np.min(fitting, axis=0))
