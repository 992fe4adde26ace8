"""What the ways to end a bag expect of the tasks that run."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.budget.provisioning.tail_phase import (
    DAEMON,
    SLIDES,
    Attempts,
    Expectation,
    LateByItsNode,
    LongEverywhere,
    Rule,
    RunningTask,
)
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
    return Rule(name=way, exact=way == "perfect", copies=SLIDES.copies)
