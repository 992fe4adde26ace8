"""A second, slow and independent scheduler to hold the fast one against.

It follows the description of pyss to the letter: a heap of events, and what is free on each node written down
second by second. What is done from outside comes after all other events of its second.

The usage of a user is the integral of what its jobs have held, from scratch at each look.
"""

from __future__ import annotations

import heapq
import math
from typing import Literal

import numpy as np

from adaptor_simulation.queue_rules import BY_SUBMISSION, QueueRules

RANKING, SUBMISSION, TERMINATION, START, OUTSIDE = range(5)
HORIZON = 6000

Size = tuple[int, tuple[int, ...]]
"""Chunks, and what each takes by dimension."""


class NaiveCluster:
    """Small traces only: everything must be over before HORIZON."""

    def __init__(
        self,
        capacity: np.ndarray,
        policy: Literal["conservative", "easy"],
        rules: QueueRules = BY_SUBMISSION,
        users: int = 1,
    ) -> None:
        """`capacity`: by node and dimension."""
        self.policy, self.rules = policy, rules
        self.number_of_users = users
        self.users: list[int] = []
        """By job."""
        self.submitted: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.priorities: dict[int, int] = {}
        self.placed = False
        """Whether a job entered before others since all were planned."""
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
        if rules.fair_share:
            for time in range(0, HORIZON, rules.fair_share.period):
                self._push(time, RANKING, "rank", -1)

    def add(self, at: int, size: Size, limit: int, run: int, user: int = 0, *, outside: bool = False) -> int:
        self.jobs.append((size, limit, run))
        self.users.append(user)
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
                if self.policy == "conservative":
                    self._plan_missing(now)
            elif what == "rank" and any(job not in self.started for job in self.waiting):
                self._rank(now)
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
        self.submitted[job] = now
        self._seat(now, job)
        if self.policy == "easy":
            self._easy(now)
        else:
            self._plan_missing(now)
            self.first_promise[job] = self.planned.get(job, HORIZON)

    def _leave(self, now: int, job: int) -> None:
        self.gone.add(job)
        self.ended[job] = now
        if job in self.planned:
            self._take(job, max(now, self.planned[job]), -1)
        if job in self.waiting:
            self.waiting.remove(job)
        if job not in self.started:
            self.planned.pop(job, None)
        if self.policy == "easy":
            self._easy(now)
            return
        self._compress(now)
        self._plan_missing(now)

    def _change(self, now: int, job: int) -> None:
        if self.policy == "easy":
            self.jobs[job] = self.wishes[job]
            self._easy(now)
            return
        if job in self.planned:
            self._take(job, self.planned[job], -1)
            del self.planned[job]
        self.jobs[job] = self.wishes[job]
        self._plan_missing(now)
        self._compress(now)

    def _compress(self, now: int) -> None:
        for job in self.waiting:
            before = self.planned.get(job, 0)
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
                ahead = [head, *(each for each in others[: others.index(job)] if each not in self.planned)]
                if self._looked_at(job, ahead) and self._fits(job, now):
                    self._plan(job, now)
            self._take(head, self.planned[head], -1)
            del self.planned[head]
        self.waiting = [job for job in self.waiting if job not in self.planned]

    # --- the order of the queue, and how far it is looked at -------------------------------------

    def _queue(self) -> list[int]:
        return [job for job in self.waiting if job not in self.started]

    def _looked_at(self, job: int, ahead: list[int]) -> bool:
        """Whether backfilling looks at a job with these before it."""
        per_user, depth = self.rules.per_user or HORIZON, self.rules.depth or HORIZON
        counts = dict[int, int]()
        for each in [*ahead, job]:
            user = self.users[each]
            looks = sum(counts.values()) < depth and counts.get(user, 0) < per_user
            counts[user] = counts.get(user, 0) + looks
        return looks

    def _plan_missing(self, now: int) -> None:
        queue = self._queue()
        for row, job in enumerate(queue):
            if job not in self.planned and self._looked_at(job, queue[:row]):
                self._plan(job, self._earliest(now, job))

    def _seat(self, now: int, job: int) -> None:
        self.waiting.append(job)
        if self.rules.fair_share is None:
            return
        self.priorities[job] = self._priority(now, job)
        queue = self._queue()[:-1]
        lower = [each for each in queue if self.priorities[each] < self.priorities[job]]
        if lower:
            self.waiting.insert(self.waiting.index(lower[0]), self.waiting.pop())
            self.placed = True

    def _rank(self, now: int) -> None:
        queue = self._queue()
        for job in queue:
            self.priorities[job] = self._priority(now, job)
        ranked = sorted(queue, key=lambda job: -self.priorities[job])
        self.waiting = [job for job in self.waiting if job in self.started] + ranked
        if self.policy == "easy":
            if ranked != queue:
                self._easy(now)
        elif ranked != queue or self.placed:
            for job in ranked:
                if job in self.planned:
                    self._take(job, self.planned[job], -1)
                    del self.planned[job]
            self.placed = False
            self._plan_missing(now)

    def _priority(self, now: int, job: int) -> int:
        share = self.rules.fair_share
        assert share is not None
        usages = [math.floor(self._usage(now, user) + 0.5) for user in range(self.number_of_users)]
        standing = sum(usage >= usages[self.users[job]] for usage in usages)
        age = min(1.0, (now - self.submitted[job]) / share.longest_age)
        return int(share.weight * (standing / len(usages)) + share.age_weight * age)

    def _usage(self, now: int, user: int) -> float:
        """Processor-seconds, of which one that is as old as the half-life counts for half."""
        assert self.rules.fair_share is not None
        rate, found = math.log(2) / self.rules.fair_share.half_life, 0.0
        for job, start in self.started.items():
            if self.users[job] == user:
                (chunks, each), until = self.jobs[job][0], min(now, self.ended.get(job, now))
                grown = math.exp(rate * (until - now)) - math.exp(rate * (start - now))
                found += chunks * each[0] * grown / rate
        return found

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
