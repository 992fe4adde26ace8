"""Number of processor-slots that a bag may ask for now, by A²HA and by its deadline. Pure.

A²HA decides once for each task that finishes, and every few minutes (Silva et al. 2011, §3.1, §3.4). The
caller keeps the `Pace` of a bag from one look to the next. Without one, after a restart, what was learned
from n finished tasks follows from the running sums of their runtimes and from n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.provisioning import work_bound
from adaptor.budget.provisioning.a2ha import (
    FINDING_OUT,
    Purchase,
    Situation,
    first_hosts,
    hosts_to_buy,
    ratio_after,
    units_for,
)
from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.presets import Preset
from adaptor.runtimes.known import HINTED_TASKS, KnownRuntimes
from adaptor.units import format_duration, round_up

STARTUPS_PER_UNIT = 12  # a pilot lasts for at least this many start-ups (A²HA §4: 5 of 60 minutes)
CORRECTION_PERIOD = 1 / 12
"""Charging units between two steps in which running tasks count (2011, §3.4: 5 of 60 minutes)."""
SPARE_UNITS = 1
"""Charging units of a request beyond those that the bag plans to pay. A pilot that ends before them is not
charged for them; without them no pilot could go on with a task (2011, §3.5)."""
CERTAINTY = 0.9  # with which hosts can do the work by the deadline, in their requests or within the budget
_AIMED_AT = 0.5
"""The part of the time to a deadline, in whole units, in which the work is to be done: requests may wait."""
_LEARN, _LEARN_FOR_FEW = 1 / 16, 1 / 4
"""Parts of the time left for which the newest hosts run before more are requested for a deadline.

The latter where fewer are needed than 1/(r + 1) of those that are there, r being the requests left. On seeds
2 and 3 of `adaptor replay budget-frontier`, 1/8 for these loses 3 of 32 deadlines of twice the time.
"""
_FIRST = 4  # times `samples`: most first hosts that an assumed runtime asks for
_ONLY = 1 / 4
"""The part of the time left that the only request a site allows lasts at most while runtimes are unknown."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """State of a bag, and the aims of its user."""

    now: float
    tasks: int
    """Tasks that have a result or may still have one."""
    known: KnownRuntimes
    """Runtimes of its tasks at all sites."""
    hosts: Sequence[Hosts]
    """Slots that are there or have been asked for, until the end of the unit that is paid."""
    lasting: Sequence[Hosts] | None = None
    """Slots until their requests end, as counts for a deadline; None: as `hosts`."""
    terms: HostTerms
    preset: Preset
    """Preset of how aggressively to buy hosts."""
    slow: bool = False
    """Whether the bag buys no more hosts after the first ones than a deadline needs."""
    whole_units: bool = False
    """Whether charging units are long: the rest of a unit in which a host works is paid anyway."""
    assumed: float
    """Seconds that are assumed of a task where a deadline cannot wait until one has finished."""
    needed: float = 0.0
    """Seconds that the tasks which wait are known to need at least; 0: nothing is known."""
    deadline: float | None = None
    sites: int = 1
    """Number of sites at which the bag may run."""
    requests_left: float = math.inf
    """Requests that the site allows now."""
    widest: float = math.inf
    """Hosts of the largest request."""
    newest: float = -math.inf
    """Epoch seconds at which the newest request of the bag started, or was made if it is queued."""

    @property
    def hint(self) -> float | None:
        """Seconds of a task by its user, a sample or earlier bags of its kind; None: nothing is known."""
        return self.known.hint

    @property
    def waiting(self) -> int:
        return self.known.not_started(self.tasks)

    @property
    def there(self) -> int:
        """Number of hosts that are paid now, or asked for."""
        return sum(host.count for host in self.hosts)

    @property
    def until_requests_end(self) -> Sequence[Hosts]:
        """The hosts, with all the time of their requests."""
        return self.hosts if self.lasting is None else self.lasting

    @property
    def blind(self) -> bool:
        """Whether nothing is known of the runtimes: the first tasks to finish are short ones."""
        return self.hint is None and self.known.outnumbered_by(self.known.running)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions of the estimator for a bag so far."""

    finished: int
    """Tasks that had finished when it last decided."""
    ratio: float
    """The part of the hosts that seem necessary which the next decision buys."""
    next_look: float
    """Epoch seconds from which running tasks count again."""
    allowed: Advice
    """Hosts that may still be asked for."""

    def without(self, hosts: int) -> Pace:
        """Pace after a request for `hosts` more."""
        left = max(0, self.allowed.hosts - hosts)
        return msgspec.structs.replace(self, allowed=msgspec.structs.replace(self.allowed, hosts=left))


class Paced(msgspec.Struct, frozen=True):
    """The slots that may be bought now, and what to remember for the next look."""

    advice: Advice
    pace: Pace


def terms_for(charging_unit: int, startup: float, lost: float = 0.0) -> HostTerms:
    """Whole charging units, as many as make the start-up, and what a host loses at its end, a small part."""
    unit = max(charging_unit, round_up(STARTUPS_PER_UNIT * (startup + lost), charging_unit))
    return HostTerms(unit=unit, startup=startup)


def advise(course: Course, pace: Pace | None = None) -> Paced:
    """The slots that may be bought now, and why no more.

    The preset says how many; where the deadline asks for more, those.
    """
    pace = _decided(course, pace or _resumed(course))
    bought = pace.allowed
    if course.deadline is None:
        return Paced(bought, pace)
    left, needed = format_duration(max(0.0, course.deadline - course.now)), needed_for_deadline(course)
    learns = _learns_for(course, needed)
    if course.slow and course.hosts:
        reason = FINDING_OUT if course.blind else "the deadline needs no more"
        if learns > 0:
            reason = f"for {format_duration(learns)} the newest hosts find out how long the tasks take"
        bought = msgspec.structs.replace(bought, hosts=0, reason=reason)
    needed = 0 if learns > 0 else needed
    if course.hint is None and course.widest <= needed < math.inf:
        needed -= needed % course.widest  # whole requests
    if needed <= bought.hosts:
        return Paced(bought, pace)
    reason = f"the deadline in {left} needs {needed:,.0f} more"
    if needed > course.waiting:
        reason = f"the deadline in {left} cannot be kept: as fast as can be"
    if bought.hosts:
        reason = f"{bought.reason}; {reason}"
    return Paced(Advice(int(min(needed, course.waiting)), reason, bought.units), pace)


def _resumed(course: Course) -> Pace:
    """Pace after a restart, as if every task that has finished had been answered already."""
    return Pace(
        finished=course.known.finished,
        ratio=ratio_after(course.known.finished, course.preset),
        next_look=course.now + CORRECTION_PERIOD * course.terms.unit,
        allowed=Advice(0, "no task has finished since the daemon started"),
    )


def _decided(course: Course, pace: Pace) -> Pace:
    """The pace after the decision that is due now, if one is.

    Tasks that have finished between two looks are one decision, with the ratio of the last of them.
    """
    finished, periodic = course.known.finished, course.now >= pace.next_look
    if not finished and not course.hosts:
        return msgspec.structs.replace(pace, allowed=_first(course))
    if finished <= pace.finished and not periodic and course.hosts:
        return pace
    growth = course.preset.increase_ratio
    ratio = 1 - (1 - pace.ratio) * (1 - growth) ** max(0, finished - pace.finished - 1)
    seen = situation_of(course)
    average = seen.runtimes.corrected_mean(course.now) if periodic else seen.runtimes.mean
    sparing = course.whole_units and course.preset.certainty is None
    if sparing and course.requests_left == 1:  # a host too few lasts for another unit
        average = course.known.expected(course.now)
        average *= seen.runtimes.deviating(course.waiting, CERTAINTY)
        ratio = 1.0
    found = hosts_to_buy(seen, course.preset, ratio, average)
    hosts, enough = found.advice.hosts, seen.there / (1 + course.requests_left)
    if sparing and course.hint is None and 0 < hosts < enough:  # small steps use up the requests
        found = Purchase(Advice(0, f"{found.advice.reason}, too few for a request of their own"), found.grows)
    if found.grows and (finished > pace.finished or periodic):
        ratio += (1 - ratio) * growth
    next_look = pace.next_look
    while next_look <= course.now:
        next_look += CORRECTION_PERIOD * course.terms.unit
    return Pace(finished=finished, ratio=ratio, next_look=next_look, allowed=found.advice)


def _first(course: Course) -> Advice:
    """Hosts with which to begin: at most half the number of tasks, so that each host runs two at least."""
    preset, terms = course.preset, course.terms
    if course.hint is None:
        found = first_hosts(course.tasks, preset, preset.creation_ratio)
        cut = units_for(terms, course.needed) if course.needed else 1  # first hosts were too short
        return msgspec.structs.replace(found, units=max(cut, int(course.assumed / terms.unit)))
    hinted = math.ceil(course.tasks * course.hint * preset.willing_to_pay / terms.usable)
    found = first_hosts(course.tasks, preset, preset.creation_ratio, hinted)
    hosts = min(found.hosts, max(1, course.tasks // 2))
    return Advice(hosts, found.reason, units_for(terms, max(course.hint, course.needed)))


def situation_of(course: Course) -> Situation:
    """The course as A²HA sees it. Paid time after a deadline that is ahead has no use."""
    by = math.inf if course.deadline is None or course.deadline <= course.now else course.deadline
    hosts = [msgspec.structs.replace(host, ends=min(host.ends, by)) for host in course.hosts]
    frugal = course.preset.certainty is not None
    # A frugal bag is cheaper without a hint.
    known = msgspec.structs.replace(course.known, told=None, earlier=None) if frugal else course.known
    return Situation(
        now=course.now,
        tasks=course.tasks,
        runtimes=known.with_hint,
        told=0 if known.hint is None else HINTED_TASKS,
        hosts=hosts,
        terms=course.terms,
        needed=course.needed,
    )


def needed_for_deadline(course: Course) -> float:
    """Number of further slots that are needed to be done in time; infinite if no number would do.

    The larger of two numbers: slots that do the expected work so that its last task, a long one, can still
    end; and slots that nearly certainly do all of it, less those that later requests can still bring. If a
    mean is known from the beginning, none are left to later requests: hosts do most if they are requested
    first.

    Before enough tasks have finished, the age of the running ones stands for the runtime. So the need grows
    while little is learned. The runtime that the site assumes counts for the first hosts alone.
    """
    assert course.deadline is not None
    known, time_left = course.known, course.deadline - course.now
    usable = time_left - course.terms.startup
    if not course.blind:
        mean, residual = known.expected(course.now), known.residual
        doubt = known.with_hint.with_long_ones(course.now).deviating(course.waiting, CERTAINTY)
    elif usable < course.assumed:
        return math.inf
    else:
        age = known.age(course.now) if course.there else course.assumed
        mean = residual = max(1.0, course.needed, known.mean, age)
        doubt = 1.0
    if usable < mean:
        return math.inf
    last = min(usable / 2, known.long_task(course.now, mean))
    aimed = min(max(_aimed_at(course, time_left), mean), usable - last + residual)
    work, running = course.waiting * mean, known.running * residual
    lasting = course.until_requests_end
    paid = course.hosts if course.whole_units else lasting  # another unit costs as much as another host
    expected = _missing(course.now, paid, work + running, aimed, residual, mean)
    if course.whole_units and time_left >= 2 * course.terms.unit:
        sure = 0.0  # requests end in time and make room for others
    elif course.hint is not None:
        sure = _missing(course.now, lasting, doubt * work + running, usable, residual, mean)
    else:
        later = max(0, course.requests_left - 1) * course.widest
        sure = _missing(course.now, lasting, doubt * work + running, aimed, residual, mean) - later
        sure = min(sure, course.widest)
    needed = math.ceil(max(0.0, expected, sure))
    first = course.blind and not course.there
    return min(needed, _FIRST * work_bound.samples(course.tasks)) if first else needed


def least_request(units: int, unit: float, needed: float, resolution: int, *, ends: bool) -> int:
    """Seconds that a request lasts at least where begun units are paid: one of them; where pilots end with
    units, those that the bag plans to pay and one in which to go on.

    Args:
        units: that the bag plans to pay of each pilot.
        unit: seconds of one.
        needed: seconds of the shortest task in a pilot; no task would start in a shorter one.
        resolution: seconds to whole multiples of which requests are rounded up.
        ends: whether pilots end with units.
    """
    count = max(units + SPARE_UNITS, math.ceil(needed / unit)) if ends else 1
    return round_up(math.ceil(count * unit), resolution)


def longest_before(deadline: float, now: float, needed: float, unit: float, resolution: int) -> int | None:
    """Longest useful tr in seconds: its last task starts before the deadline. None: no request keeps one.

    A begun unit that is long is paid anyway: tasks that may take longer than the others can still start.

    Args:
        needed: seconds of a task, with what a request loses besides.
        unit: seconds of the charging unit; 0 where units are short.
        resolution: seconds to whole multiples of which requests are rounded up.
    """
    if deadline <= now + needed:
        return None
    return round_up(math.ceil(max(deadline - now + needed, unit)), resolution)


def longest_to_learn(course: Course, longest: int | None, needed: float, resolution: int) -> int | None:
    """Longest useful tr in seconds of a request that takes the only place while the runtimes are unknown.

    A request until the deadline would leave no place for those that it shows to be needed.

    Args:
        longest: as `longest_before` says; None: no request keeps the deadline.
        needed: seconds of a task, with what a request loses besides.
        resolution: seconds to whole multiples of which requests are rounded up.
    """
    alone = course.requests_left == 1 and not course.there
    if longest is None or course.deadline is None or course.whole_units or not (alone and course.blind):
        return longest
    part = _ONLY * (course.deadline - course.now)
    return min(longest, round_up(math.ceil(max(part, needed)), resolution))


def starts_in_time(course: Course) -> bool:
    """Whether even a task as long as the longest seen that starts now is done by the deadline."""
    assert course.deadline is not None
    return course.now + course.terms.startup + course.known.longest_seen(course.now) <= course.deadline


def _learns_for(course: Course, needed: float) -> float:
    """Seconds for which the newest hosts run yet before more are requested for the deadline; none: 0 or less.

    A site takes few requests, and one for few slots uses up one of them. So a bag of unknown runtimes first
    sees what its newest hosts have to tell.
    """
    assert course.deadline is not None
    if not needed or math.isinf(needed) or course.hint is not None:
        return 0.0
    part = _LEARN_FOR_FEW if needed < course.there / (1 + course.requests_left) else _LEARN
    shown = course.newest + course.terms.startup + part * course.deadline
    return shown / (1 + part) - course.now


def _aimed_at(course: Course, time_left: float) -> float:
    """Seconds of a host in half of the time left, as requests may wait and estimates change.

    In whole units, all of the time in the first one: it is paid anyway, and half of it costs twice as much.
    """
    aimed = min(time_left, course.terms.unit) if course.whole_units else _AIMED_AT * time_left
    return aimed - course.terms.startup


def _missing(
    now: float, hosts: Sequence[Hosts], work: float, usable: float, lost: float, mean: float
) -> float:
    """Hosts for the work for which those that are there have no time; negative: they have time to spare.

    Args:
        work: seconds.
        usable: seconds of a host.
        lost: of these, at its end.
        mean: seconds of a task.
    """
    there = sum(host.count * max(0.0, min(host.time_left(now), usable) - lost) for host in hosts)
    return (work - there) / max(mean, usable - lost)
