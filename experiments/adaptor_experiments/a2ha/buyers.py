"""Who buys hosts for a simulated bag: A²HA step by step as the papers print it, or the daemon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adaptor.budget.provisioning.a2ha import first_hosts, hosts_to_buy
from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.pacing import Course, Pace, advise
from adaptor.budget.provisioning.presets import Preset
from adaptor.runtimes.sums import RuntimeSums
from adaptor_experiments.a2ha.paper_presets import HintedSituation, PaperPreset, by_2008


class Buyer(Protocol):
    """Call `runtimes.start`, `finish` and `stop` as tasks do so."""

    runtimes: RuntimeSums

    def first(self, hint: int | None = None) -> Advice:
        """With what to begin; `hint`: hosts."""

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:
        """What to buy when a task has finished, and every few minutes with `periodic` (§3.4: 5 minutes)."""


class PublishedBuyer:
    """As the papers print it: running tasks count in periodic steps only, which in 2008 keep the ratio."""

    def __init__(self, tasks: int, terms: HostTerms, preset: Preset) -> None:
        self._tasks, self._terms, self._preset = tasks, terms, preset
        self.runtimes = RuntimeSums()
        self._ratio, self._hinted = preset.creation_ratio, 0

    def first(self, hint: int | None = None) -> Advice:
        advice = first_hosts(self._tasks, self._preset, self._ratio, hint)
        if hint is not None and isinstance(self._preset, PaperPreset) and self._preset.beside_hint:
            self._hinted = advice.hosts
        return advice

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:
        situation = HintedSituation(
            now=now,
            tasks=self._tasks,
            runtimes=self.runtimes,
            hosts=hosts,
            terms=self._terms,
            hinted=self._hinted,
        )
        found = hosts_to_buy(situation, self._preset, self._ratio, corrected=periodic)
        if found.grows and not (periodic and by_2008(self._preset)):
            self._ratio += (1 - self._ratio) * self._preset.increase_ratio
        return found.advice


class DaemonBuyer:
    """As the daemon asks."""

    def __init__(self, tasks: int, terms: HostTerms, preset: Preset) -> None:
        self._tasks, self._terms, self._preset = tasks, terms, preset
        self.runtimes = RuntimeSums()
        self.needed = 0.0
        """Seconds that the waiting tasks are known to need."""
        self._pace: Pace | None = None

    def first(self, hint: int | None = None) -> Advice:
        """`hint`: hosts; the daemon knows how long a task takes."""
        seconds = None if hint is None else hint * self._terms.usable / self._tasks
        return self._asked(0.0, [], seconds)

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:  # noqa: ARG002
        return self._asked(now, hosts)

    def _asked(self, now: float, hosts: Sequence[Hosts], hint: float | None = None) -> Advice:
        course = Course(
            now=now,
            tasks=self._tasks,
            sums=self.runtimes,
            hosts=hosts,
            terms=self._terms,
            preset=self._preset,
            hint=hint,
            assumed=self._terms.usable,
            needed=self.needed,
        )
        found = advise(course, self._pace)
        self._pace = found.pace.without(found.advice.hosts)
        return found.advice
