"""How many processor-slots a bag may ask for now, by A²HA and by its deadline. Pure.

Nothing is remembered between two calls: what A²HA has learned after n finished tasks follows from the
running sums of their runtimes and from n, so a daemon that was killed goes on as if nothing had been.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.estimation.bag_knowledge import STARTUPS_PER_UNIT
from adaptor.budget.estimation.runtime_sums import Runtimes, Sums
from adaptor.budget.provisioning import work_bound
from adaptor.budget.provisioning.a2ha import Situation, first_hosts, hosts_to_buy, ratio_after
from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.presets import PREFERENCES
from adaptor.units import format_duration, round_up

_CERTAINTY = 0.9
"""With which the bought hosts can do the work by the deadline."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """Where a bag stands, and what its user wants."""

    now: float
    tasks: int
    """Those that have a result or may still have one."""
    sums: Sums
    hosts: Sequence[Hosts]
    """Slots that are there or have been asked for."""
    terms: HostTerms
    hint: float
    """Seconds that a task is taken to need before any has finished (De Rose §4.4: initial_tr)."""
    prefer: str | None = None
    """A key of `PREFERENCES`; None: as cheap as the deadline allows."""
    deadline: float | None = None


def terms_for(charging_unit: int, startup: float) -> HostTerms:
    """Whole charging units, as many as make the start-up a small part."""
    unit = max(charging_unit, round_up(STARTUPS_PER_UNIT * startup, charging_unit))
    return HostTerms(unit=unit, startup=startup)


def advise(course: Course) -> Advice:
    """The slots that may be bought now, and why no more.

    What is preferred says how many (`PREFERENCES`); where the deadline asks for more, those.
    """
    runtimes = Runtimes(course.sums)
    bought = _preferred(course)
    if course.deadline is None:
        return bought
    needed = _for_deadline(course, runtimes, course.deadline - course.now)
    if needed <= bought.hosts:
        return bought
    waiting = _waiting(course)
    left = format_duration(max(0.0, course.deadline - course.now))
    reason = f"the deadline in {left} needs {needed:,.0f} more"
    if needed > waiting:
        reason = f"the deadline in {left} cannot be kept: as fast as can be"
    return Advice(int(min(needed, waiting)), f"{bought.reason}; {reason}")


def _preferred(course: Course) -> Advice:
    preset = PREFERENCES[course.prefer or "cheap"]
    ratio = ratio_after(course.sums.finished, preset)
    if not course.sums.finished and not course.hosts:
        hinted = math.ceil(course.tasks * course.hint / course.terms.usable)
        return first_hosts(course.tasks, preset, ratio, hinted)
    situation = Situation(
        now=course.now,
        tasks=course.tasks,
        runtimes=Runtimes(course.sums),
        hosts=course.hosts,
        terms=course.terms,
    )
    return hosts_to_buy(situation, preset, ratio, corrected=True).advice


def _for_deadline(course: Course, runtimes: Runtimes, time_left: float) -> float:
    """More slots that are needed to be done in time; infinite where none would do."""
    mean = runtimes.corrected_mean(course.now) if runtimes.finished else course.hint
    usable = time_left - course.terms.startup
    if usable < mean:
        return math.inf
    if not runtimes.finished:
        work = _waiting(course) * course.hint
    else:
        work = work_bound.lower_bound(runtimes, _waiting(course), course.now, 1 - _CERTAINTY)
    rounds = max(1, math.floor(usable / mean))
    there = sum(each.count * min(rounds, int(each.time_left(course.now) / mean)) for each in course.hosts)
    return max(0, math.ceil((work / mean - there) / rounds))


def _waiting(course: Course) -> int:
    return course.tasks - course.sums.finished - course.sums.running
