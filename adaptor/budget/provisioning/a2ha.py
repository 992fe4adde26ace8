"""A²HA: how many hosts to buy for a bag whose task runtimes are not known (Silva et al. 2008, 2011). Pure.

The daemon asks through `pacing.advise`; the experiments ask so too, and as the papers print it, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.provisioning import work_bound
from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.presets import Preset
from adaptor.runtimes.known import KnownRuntimes
from adaptor.units import format_duration

FINDING_OUT = "the first hosts find out how long the tasks take"


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Facts on which a bag buys hosts."""

    now: float
    tasks: int
    """Tasks that have a result or may still have one."""
    runtimes: KnownRuntimes
    told: int = 0
    """Finished tasks among `runtimes` that are none of the bag: for as many a hint counts."""
    hosts: Sequence[Hosts]
    """Hosts that are paid now, or asked for."""
    terms: HostTerms
    needed: float = 0.0
    """Seconds that the longest task which is known needs; 0: it does not matter."""

    @property
    def remaining(self) -> int:
        """Tasks without a result, running ones included."""
        return self.tasks + self.told - self.runtimes.finished

    @property
    def waiting(self) -> int:
        return self.runtimes.not_started(self.tasks + self.told)

    @property
    def there(self) -> int:
        """Number of hosts that are paid now, or asked for."""
        return sum(host.count for host in self.hosts)

    @property
    def most(self) -> int:
        """Hosts, so that each runs two tasks (2011, §3.6)."""
        return max(1, self.tasks // 2)


class Purchase(msgspec.Struct, frozen=True):
    """Purchase to make now."""

    advice: Advice
    grows: bool
    """Whether the ratio grows by this step (2011, Fig. 5, line 16)."""


def first_hosts(tasks: int, preset: Preset, ratio: float, hint: int | None = None) -> Advice:
    """Hosts with which to begin: one, or the number by a hint on the runtimes, corrected by the ratio (2011,
    §6).

    Args:
        hint: hosts that would be necessary if the tasks took as long as the user, or a sample, says.
    """
    if preset.certainty is not None:
        return Advice(min(tasks, work_bound.samples(tasks)), FINDING_OUT)
    if hint is None:
        return Advice(min(tasks, 1), FINDING_OUT)
    bought = max(1, min(tasks, math.ceil(hint * ratio)))
    return Advice(bought, f"{bought} of the {hint} hosts that the hint asks for")


def ratio_after(finished: int, preset: Preset) -> float:
    """The ratio after one step for each finished task (2011, Fig. 5, line 16)."""
    return 1 - (1 - preset.creation_ratio) * (1 - preset.increase_ratio) ** finished


def hosts_to_buy(seen: Situation, preset: Preset, ratio: float, average: float) -> Purchase:
    """The purchase to make now (2011: Figs 3, 5 and 7, §3.6).

    The time for it grows with the groups of hosts, not with the number of tasks. Tasks must be taken in
    random order (§3.2).

    Args:
        ratio: the part to buy of the hosts that seem necessary.
        average: seconds of a task; in a periodic step running tasks count that have run longer than the
            finished ones took (Fig. 7).
    """
    if not seen.remaining:
        return Purchase(Advice(0, "all tasks are finished"), grows=False)
    if not average:
        return Purchase(Advice(0 if seen.there else 1, "no task has finished yet"), grows=False)
    wanted, grows = _wanted(seen, preset, ratio, average)
    if not seen.there:
        wanted = max(1, wanted)
    return Purchase(_within_half(seen, preset, wanted, average), grows)


def _wanted(seen: Situation, preset: Preset, ratio: float, average: float) -> tuple[int, bool]:
    if preset.certainty is not None:
        uncovered = work_bound.overflow(seen.runtimes, seen.waiting, seen.hosts, seen.now, preset.certainty)
        return min(seen.waiting, work_bound.necessary(seen.runtimes, uncovered, seen.terms)), False
    possible = sum(host.count * int(host.time_left(seen.now) / average) for host in seen.hosts)
    processing = seen.terms.usable / preset.willing_to_pay  # hostProcessingTime
    missing = round((seen.remaining - possible) * average / processing)
    if missing < 0:
        return 0, False
    return preset.part(missing, ratio), True


def _within_half(seen: Situation, preset: Preset, wanted: int, average: float) -> Advice:
    """Hosts to buy, at most half the number of tasks; where that bounds them, each is paid for two tasks
    (§3.6)."""
    allowed = max(0, seen.most - seen.there)
    possible = min(wanted, seen.waiting)
    bounded = allowed < possible
    bought = min(possible, allowed)
    if bounded and preset.beyond_half == "none":
        bought = 0 if seen.there else 1
    reason = (
        f"{seen.remaining} of {seen.tasks} tasks remain, of {format_duration(average)} each: "
        f"hosts there {seen.there}, more to buy {bought}"
    )
    if bounded:
        reason += f", not {possible}, so that each runs two tasks at least"
    elif possible < wanted:
        reason += f", not {wanted}, because no more tasks wait"
    work = (2 if bounded else 1) * max(average, seen.needed)
    return Advice(bought, reason, units_for(seen.terms, work))


def units_for(terms: HostTerms, work: float) -> int:
    """Charging units in which a host does `work` seconds of work (§3.5: multiples for long tasks)."""
    return max(1, math.ceil((terms.startup + work) / terms.unit))


def goes_on(seen: Situation, preset: Preset, ran: float) -> bool:
    """Whether a host whose paid time is over goes on with its task, which ran for `ran` seconds (§3.5).

    `seen.hosts` are the others. A task that is cut starts again elsewhere.
    """
    average = seen.runtimes.mean
    longest = max((host.time_left(seen.now) for host in seen.hosts if host.count), default=0.0)
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
