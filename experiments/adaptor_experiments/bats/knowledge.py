"""What the ways to end a bag expect of the tasks that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adaptor.budget.provisioning.tail_phase import (
    DAEMON,
    Attempts,
    Expectation,
    LateByItsNode,
    Rule,
    RunningTask,
)
from adaptor.runtimes.sample import RuntimeSample
from adaptor_experiments.bats.design import SITES, Way
from adaptor_experiments.bats.throughput import Ending


class Perfect:
    """By the real runtimes: the theoretical optimum of the slides."""

    def __init__(self, runtimes: Sequence[Sequence[float]]) -> None:
        """By site, then by task."""
        self._times = {site.name: times for site, times in zip(SITES, runtimes, strict=True)}

    @property
    def sites(self) -> set[str]:
        return set(self._times)

    def of(self, task: int, attempts: Attempts) -> RunningTask:
        return RunningTask(
            task=task,
            left=min(self._times[site][task] - ran for site, ran in attempts),
            whole={site: times[task] for site, times in self._times.items()},
        )


class LongEverywhere:
    """As the slides of BaTS expect it: a late task is long, and would be as long elsewhere."""

    def __init__(self, sample: RuntimeSample, slower: Mapping[str, float]) -> None:
        """`sample` in seconds of one site, `slower` by site: its seconds for one of those."""
        self._sample, self._slower = sample, slower

    @property
    def sites(self) -> set[str]:
        return set(self._slower)

    def of(self, task: int, attempts: Attempts) -> RunningTask:
        elapsed = max(ran / self._slower[site] for site, ran in attempts)
        return self._taking(self._sample.late(elapsed), task, attempts)

    def on_average(self, task: int, attempts: Attempts) -> RunningTask:
        """Not in a bad case: where an attempt is to be given up for another."""
        elapsed = max(ran / self._slower[site] for site, ran in attempts)
        return self._taking(self._sample.whole(elapsed), task, attempts)

    def _taking(self, seconds: float, task: int, attempts: Attempts) -> RunningTask:
        return RunningTask(
            task=task,
            left=min(seconds * self._slower[site] - ran for site, ran in attempts),
            whole={site: seconds * slower for site, slower in self._slower.items()},
        )


def by_the_slides(ending: Ending) -> LongEverywhere:
    first = ending.learned[SITES[0].name].mean
    return LongEverywhere(
        ending.experience, {site.name: ending.learned[site.name].mean / first for site in SITES}
    )


def expectation(way: Way, ending: Ending, runtimes: Sequence[Sequence[float]]) -> Expectation:
    if way == "perfect":
        return Perfect(runtimes)
    if way == "daemon":
        known = {site: each for site, each in ending.experiences.items() if len(each)}
        most = max(known.values(), key=len)
        return LateByItsNode({site.name: known.get(site.name, most) for site in SITES}, known)
    return by_the_slides(ending)


def rule(way: Way) -> Rule:
    if way == "daemon":
        return DAEMON
    # As the slides have it: idle paid time is given to any copy, which may be lucky.
    return Rule(name=way, exact=way == "perfect", copies=None)
