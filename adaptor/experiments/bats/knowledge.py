"""What the ways to end a bag know of the tasks that run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adaptor.budget.estimation.experience import Experience
from adaptor.budget.estimation.task_time import TaskTime
from adaptor.budget.provisioning.tail_phase import RunningTask
from adaptor.experiments.bats.design import SITES
from adaptor.experiments.bats.machines import Machine


class Knowledge(Protocol):
    def of(self, task: int, attempts: Sequence[Machine], now: float, moving: bool = False) -> RunningTask:
        """What is expected of a task with these attempts."""


class Stochastic:
    """By the runtimes of the finished tasks (slide "BaTS' Tail Phase")."""

    def __init__(self, experience: Experience, learned: dict[str, TaskTime]) -> None:
        self._experience = experience
        first = learned[SITES[0].name].mean
        self._slower = [learned[site.name].mean / first for site in SITES]
        """Seconds of each site for a second of the first."""

    def of(self, task: int, attempts: Sequence[Machine], now: float, moving: bool = False) -> RunningTask:
        """In a bad case; on average where an attempt is to be given up for another."""
        elapsed = max((now - each.started) / self._slower[each.site] for each in attempts)
        total = self._experience.whole(elapsed) if moving else self._experience.late(elapsed)
        return RunningTask(
            task=task,
            left=min(total * self._slower[each.site] - (now - each.started) for each in attempts),
            whole={site.name: total * slower for site, slower in zip(SITES, self._slower, strict=True)},
        )


class Perfect:
    """By the real runtimes: the theoretical optimum of the slides."""

    def __init__(self, runtimes: Sequence[Sequence[float]]) -> None:
        """By site, then by task."""
        self._runtimes = runtimes

    def of(
        self,
        task: int,
        attempts: Sequence[Machine],
        now: float,
        moving: bool = False,  # noqa: ARG002
    ) -> RunningTask:
        return RunningTask(
            task=task,
            left=min(each.end for each in attempts) - now,
            whole={site.name: times[task] for site, times in zip(SITES, self._runtimes, strict=True)},
        )
