"""The presets of both papers, with the rules of 2008 where they differ from those of 2011, and who buys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from adaptor.budget.provisioning import a2ha
from adaptor.budget.provisioning.a2ha import Situation, first_hosts, hosts_to_buy
from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.pacing import Course, Pace, advise
from adaptor.budget.provisioning.presets import AGGRESSIVE, CONSERVATIVE, Preset
from adaptor.runtimes.known import KnownRuntimes


class PaperPreset(Preset, frozen=True, kw_only=True):
    """A preset as a paper prints it."""

    published: Literal[2008, 2011] = 2011
    """Year of the paper whose rules hold where the papers differ. 2008: int(n·r)+1 hosts, even where n is 0
    (Fig. 3a, lines 12 to 17), the periodic step keeps the ratio (Fig. 3b), and every host ends at its unit
    (§4)."""
    beside_hint: bool = False
    """§3.6 of 2011 bounds the hosts by half the tasks. Its Table 2 (154 and 179 hosts for 256 tasks) goes
    beyond that by half of the hosts that were hinted at: half of the tasks that those leave counts."""

    def part(self, missing: int, ratio: float) -> int:
        """Hosts to buy of those that seem necessary."""
        if self.published == 2008 and ratio < 1:
            return int(missing * ratio) + 1
        return super().part(missing, ratio)


class HintedSituation(Situation, frozen=True, kw_only=True):
    """A situation with the hosts that were bought by a hint and do not count in the bound of §3.6."""

    hinted: int = 0

    @property
    def most(self) -> int:
        """Hosts: the hinted ones, and half of the tasks that they leave."""
        return max(1, (self.tasks + self.hinted) // 2)


def by_2008(preset: Preset) -> bool:
    """Whether the rules of 2008 hold where they differ."""
    return isinstance(preset, PaperPreset) and preset.published == 2008


def goes_on(seen: Situation, preset: Preset, ran: float) -> bool:
    """As `a2ha.goes_on`; by the rules of 2008 no host goes on, except for a task that has no time on any."""
    if not by_2008(preset):
        return a2ha.goes_on(seen, preset, ran)
    alone = not any(host.count and host.time_left(seen.now) for host in seen.hosts)
    return alone or ran >= seen.terms.usable


def _of_2008(preset: Preset) -> PaperPreset:
    return PaperPreset(
        name=f"{preset.name}-2008",
        creation_ratio=preset.creation_ratio,
        increase_ratio=preset.increase_ratio,
        published=2008,
    )


CONSERVATIVE_2008, AGGRESSIVE_2008 = _of_2008(CONSERVATIVE), _of_2008(AGGRESSIVE)
HALF_FILLED = PaperPreset(
    name="conservative, half filled", creation_ratio=0.5, increase_ratio=0.5, beyond_half="fill"
)
AS_THE_TABLE = PaperPreset(
    name="conservative, as the table",
    creation_ratio=0.5,
    increase_ratio=0.5,
    beyond_half="fill",
    beside_hint=True,
)


class Buyer(Protocol):
    """Call `runtimes.start`, `finish` and `stop` as tasks do so."""

    runtimes: KnownRuntimes

    def first(self, hint: int | None = None) -> Advice:
        """With what to begin; `hint`: hosts."""

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:
        """Purchase when a task has finished, and every few minutes with `periodic` (§3.4: 5 minutes)."""


class PublishedBuyer:
    """Purchases as the papers print them: running tasks count in periodic steps only, which in 2008 keep the
    ratio."""

    def __init__(self, tasks: int, terms: HostTerms, preset: Preset) -> None:
        self._tasks, self._terms, self._preset = tasks, terms, preset
        self.runtimes = KnownRuntimes()
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
        average = self.runtimes.corrected_mean(now) if periodic else self.runtimes.mean
        found = hosts_to_buy(situation, self._preset, self._ratio, average)
        if found.grows and not (periodic and by_2008(self._preset)):
            self._ratio += (1 - self._ratio) * self._preset.increase_ratio
        return found.advice


class DaemonBuyer:
    """Purchases as the daemon makes them."""

    def __init__(self, tasks: int, terms: HostTerms, preset: Preset) -> None:
        self._tasks, self._terms, self._preset = tasks, terms, preset
        self.runtimes = KnownRuntimes()
        self.needed = 0.0  # seconds that the waiting tasks are known to need
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
            known=msgspec.structs.replace(self.runtimes, told=hint),
            hosts=hosts,
            terms=self._terms,
            preset=self._preset,
            assumed=self._terms.usable,
            needed=self.needed,
        )
        found = advise(course, self._pace)
        self._pace = found.pace.without(found.advice.hosts)
        return found.advice
