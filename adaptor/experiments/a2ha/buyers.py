"""Who buys hosts for a simulated bag: A²HA step by step as the papers print it, or the daemon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adaptor.budget.estimation.runtime_sums import Runtimes
from adaptor.budget.provisioning import work_bound
from adaptor.budget.provisioning.a2ha import Situation, first_hosts, hosts_to_buy
from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.pacing import Course, advise
from adaptor.budget.provisioning.presets import PREFERENCES, Preset


class Buyer(Protocol):
    """Call `runtimes.start`, `finish` and `stop` as tasks do so."""

    runtimes: Runtimes

    def first(self, hint: int | None = None) -> Advice:
        """With what to begin; `hint`: hosts."""

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:
        """What to buy when a task has finished, and every few minutes with `periodic` (§3.4: 5 minutes)."""


class PublishedBuyer:
    """As the papers print it: the ratio grows with each step, running tasks count in periodic ones only."""

    def __init__(self, tasks: int, terms: HostTerms, preset: Preset) -> None:
        self._tasks, self._terms, self._preset = tasks, terms, preset
        self.runtimes = Runtimes()
        self._ratio, self._hinted = preset.creation_ratio, 0

    def first(self, hint: int | None = None) -> Advice:
        advice = first_hosts(self._tasks, self._preset, self._ratio, hint)
        if hint is not None:
            self._hinted = advice.hosts
        return advice

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:
        situation = Situation(
            now=now,
            tasks=self._tasks,
            runtimes=self.runtimes,
            hosts=hosts,
            terms=self._terms,
            hinted=self._hinted,
        )
        found = hosts_to_buy(situation, self._preset, self._ratio, corrected=periodic)
        if found.grows:
            self._ratio += (1 - self._ratio) * self._preset.increase_ratio
        return found.advice


class DaemonBuyer:
    """As the daemon asks: nothing is remembered between two steps, and running tasks always count."""

    def __init__(self, tasks: int, terms: HostTerms, preset: Preset, hint: float) -> None:
        """`hint`: seconds that a task is taken to need before any has finished (`initial_tr`)."""
        self._tasks, self._terms, self._hint = tasks, terms, hint
        self._prefer = next(word for word, each in PREFERENCES.items() if each == preset)
        self.runtimes = Runtimes()

    def first(self, hint: int | None = None) -> Advice:  # noqa: ARG002
        return self.step(0.0, [])

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:  # noqa: ARG002
        return advise(
            Course(
                now=now,
                tasks=self._tasks,
                sums=self.runtimes.sums,
                hosts=hosts,
                terms=self._terms,
                hint=self._hint,
                prefer=self._prefer,
            )
        )


def goes_on(seen: Situation, preset: Preset, ran: float) -> bool:
    """Whether a host whose paid time is over goes on with its task, which ran for `ran` seconds (§3.5).

    `seen.hosts` are the others. A task that is cut starts anew elsewhere. The daemon has no such choice: its
    requests end when they were asked to end.
    """
    average = seen.runtimes.mean
    longest = max((each.time_left(seen.now) for each in seen.hosts if each.count), default=0.0)
    if not longest:
        return True
    if preset.certainty is not None:
        return _worth_a_unit(seen, preset.certainty, ran, longest)
    return not average or average > seen.terms.usable or ran >= average


def _worth_a_unit(seen: Situation, certainty: float, ran: float, longest: float) -> bool:
    """Whether the other hosts have no time for the task, or for all of the work."""
    if ran + seen.runtimes.residual > longest:
        return True
    return ran + work_bound.overflow(seen.runtimes, seen.waiting, seen.hosts, seen.now, certainty) > 0
