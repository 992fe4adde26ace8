"""A second, slow and independent scheduler of nodes to hold the fast one against.

The free part of each node is written down second by second; the events are those of `NaiveCluster`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tests.simulation.naive_cluster import HORIZON, NaiveCluster

Size = tuple[int, tuple[int, ...]]
"""Chunks, and what each takes by dimension."""


class NaiveNodes(NaiveCluster):
    def __init__(self, capacity: np.ndarray, policy: Literal["conservative", "easy"]) -> None:
        super().__init__(0, policy)
        self.room = np.repeat(capacity[None], HORIZON, axis=0)
        self.sizes: list[Size] = []
        self.new_sizes: dict[int, Size] = {}
        self.on: dict[int, np.ndarray] = {}
        """By job that has nodes: the chunks on each."""

    def put(self, at: int, size: Size, limit: int, run: int, *, outside: bool = False) -> int:
        self.sizes.append(size)
        return self.add(at, size[0] * size[1][0], limit, run, outside=outside)

    def _chunks(self, room: np.ndarray, job: int, start: int) -> np.ndarray:
        """By node, how many stay there from `start` until the limit."""
        chunks, each = self.sizes[job]
        least = room[start : start + self.jobs[job][1]].min(axis=0)
        fitting = [least[:, d] // size for d, size in enumerate(each) if size]
        return np.minimum(chunks, np.min(fitting, axis=0))

    def _first(self, room: np.ndarray, now: int, job: int) -> int:
        start = now
        while self._chunks(room, job, start).sum() < self.sizes[job][0]:
            start += 1
        return start

    def _take(self, room: np.ndarray, job: int, start: int) -> np.ndarray:
        """On the first nodes with room; returns the chunks on each."""
        left, on = self.sizes[job][0], self._chunks(room, job, start)
        for node, count in enumerate(on):
            on[node] = min(left, count)
            left -= on[node]
        room[start : start + self.jobs[job][1]] -= on[:, None] * np.array(self.sizes[job][1])
        return on

    def _reserve(self, now: int, job: int, start: int) -> None:
        self.on[job] = self._take(self.room, job, start)
        assert self.room.min() >= 0
        self.planned[job] = start
        self._push(start, 2, "start", job)

    def _give(self, job: int, since: int) -> None:
        held = self.on[job][:, None] * np.array(self.sizes[job][1])
        self.room[since : self.planned[job] + self.jobs[job][1]] += held

    def _submit(self, now: int, job: int) -> None:
        self.waiting.append(job)
        if self.policy == "easy":
            self._easy(now)
        else:
            self._reserve(now, job, self._first(self.room, now, job))

    def _leave(self, now: int, job: int) -> None:
        self.gone.add(job)
        if job in self.planned:
            self._give(job, max(now, self.planned[job]))
        if job in self.waiting:
            self.waiting.remove(job)
        if job not in self.started:
            self.planned.pop(job, None)
        self._easy(now) if self.policy == "easy" else self._compress(now)

    def ask_anew(self, at: int, job: int, size: Size, limit: int) -> None:
        self.new_sizes[job] = size
        self.reshape(at, job, size[0] * size[1][0], limit)

    def _change(self, now: int, job: int) -> None:
        if self.policy == "conservative":
            self._give(job, self.planned[job])
        self.jobs[job], self.sizes[job] = self.wishes[job], self.new_sizes[job]
        if self.policy == "easy":
            self._easy(now)
            return
        self._reserve(now, job, self._first(self.room, now, job))
        self._compress(now)

    def _compress(self, now: int) -> None:
        for job in self.waiting:
            before = self.planned[job]
            if before <= now:
                continue
            self._give(job, before)
            start = self._first(self.room, now, job)
            assert start <= before
            if start < before:
                self._reserve(now, job, start)
            else:
                self.room[before : before + self.jobs[job][1]] -= self.on[job][:, None] * np.array(
                    self.sizes[job][1]
                )

    def _easy(self, now: int) -> None:
        undecided = [job for job in self.waiting if job not in self.planned]
        while undecided and self._first(self.room, now, undecided[0]) == now:
            self._reserve(now, undecided.pop(0), now)
        if undecided:
            head, limit = undecided[0], self.jobs[undecided[0]][1]
            shadow = self._first(self.room, now, head)
            kept = self._take(self.room, head, shadow)
            for job in undecided[1:]:
                if self._chunks(self.room, job, now).sum() >= self.sizes[job][0]:
                    self._reserve(now, job, now)
            self.room[shadow : shadow + limit] += kept[:, None] * np.array(self.sizes[head][1])
        self.waiting = [job for job in self.waiting if job not in self.planned]
