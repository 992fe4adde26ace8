"""Number and time of the hosts that a budget pays for: the most speed within it. Pure.

A host loses its start-up, and at its end the time that it idles until the last task of its pilot ends. The
budget pays for that with what it leaves after the work. So a bag buys few hosts where the budget leaves
little, and all that the site has where it leaves enough (Silva et al. 2011, abstract: the most speedup within
a budget).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.accounting.tariffs import begun_units
from adaptor.budget.provisioning.pacing import CERTAINTY, Course

LOST = 0.1  # the part of the money that may always go into starts and ends of hosts
PAID = 3  # start-ups that the money lasts for on each of the first hosts
FIRST_TASKS = 8  # tasks that each of them has time for at most
FEW = 4  # tasks for each of the first hosts at one of several sites
SLACK = 1.2
"""Factor on the useful time of a request: one that ends amid its tasks loses more than a reservation."""
LOOSE = 2
"""Hosts beyond the finished tasks are requested with what the budget leaves if tasks take this many times
their mean so far, or as long as they do with `CERTAINTY`: the first to finish are short ones."""


class Purse(msgspec.Struct, frozen=True):
    """Seconds of a host that the budget of a bag pays for at a site."""

    left: float
    reserved: float
    """Seconds reserved for pilots in the system."""

    @property
    def whole(self) -> float:
        return self.left + self.reserved


def hosts_within(course: Course, purse: Purse) -> int:
    """Hosts that the bag may buy in addition to those that are there.

    Until a runtime is known, one that may run at several sites buys fewer at each.
    """
    mean = task_time(course, purse)
    if course.blind and course.sites > 1:
        some = purse.whole / (FEW * FIRST_TASKS * course.assumed)
        return max(1, math.ceil(max(course.tasks / FEW, some)))
    if course.blind:
        some = int(purse.whole / (PAID * max(1.0, course.terms.startup)))
        return max(0 if course.there else 1, min(course.tasks, some) - course.there)
    spare = max(purse.left - _uncovered(course, mean), LOST * purse.left)
    found = max(1, int(spare / _lost(course, mean)))
    if course.hint is not None or not course.there:
        return found
    longer = mean * max(LOOSE, course.known.deviating(course.waiting, CERTAINTY))
    sure = int((purse.left - _uncovered(course, longer)) / _lost(course, longer))
    return min(found, max(0, sure, course.known.finished - course.there))


def pays_for_all(course: Course, purse: Purse, hosts: int, longest: float, unit: int, grace: int) -> bool:
    """Whether the budget holds requests for all tasks, even if each takes as long as the longest.

    Where a mean is all that is known, and hosts run several tasks, what they lose at their end counts too.

    Args:
        hosts: slots that the site has for the waiting tasks, besides those of the bag.
        longest: estimated seconds of the longest task.
        unit: seconds of a charging unit.
        grace: seconds that a request may last beyond its walltime.
    """
    new = max(0, min(hosts, course.waiting))
    rounds = math.ceil((course.waiting + course.known.running) / max(1, new + course.there))
    lost = course.known.long_task(course.now, longest) - longest
    needed = rounds * longest + (lost if course.hint is not None and rounds > 1 else 0.0)
    each = begun_units(course.terms.startup + needed + grace, unit) * unit
    further = sum(
        host.count * max(0.0, needed - host.time_left(course.now)) for host in course.until_requests_end
    )
    return new * each + further <= purse.left


def useful_seconds(course: Course, purse: Purse, hosts: float, longest: float) -> float:
    """Seconds for which a number of hosts is of use: their part of the work, and one long task.

    Until a runtime is known, each of several sites gets an equal part of the money.

    Args:
        longest: estimated seconds of the longest task.
    """
    mean = task_time(course, purse)
    if course.blind:
        return min(
            purse.whole / (course.sites * hosts), course.terms.startup + max(FIRST_TASKS * mean, 2 * longest)
        )
    last = max(longest, course.known.long_task(course.now, mean))
    return SLACK * (course.terms.startup + course.waiting * mean / (hosts + course.there) + last)


def cheaper_anew(course: Course, purse: Purse, slots: int, ages: Sequence[float], left: float) -> bool:
    """Whether the few tasks of a pilot, whose other slots idle, cost less where they start again.

    Only where tasks wait that the pilot has no time for, and no money is left for them.

    Args:
        course: without the pilot.
        slots: of the pilot.
        ages: seconds for which its tasks have run.
        left: seconds until its end.
    """
    running, startup = len(ages), course.terms.startup
    if course.blind or not course.waiting or not 0 < 2 * running <= slots or min(ages) < startup:
        return False
    mean = task_time(course, purse)
    if left > course.known.long_task(course.now, mean) or purse.left >= _uncovered(course, mean) + startup:
        return False
    last = course.known.residual * (1 + math.log(running))  # the last end of an exponential distribution
    return sum(ages) + running * startup < (slots - running) * min(left, last)


def task_time(course: Course, purse: Purse) -> float:
    """Mean seconds of a task; while nothing is known of it, the budget says what it takes at most."""
    if course.blind:
        return max(course.needed, purse.whole / max(1, course.tasks))
    return course.known.expected(course.now)


def _lost(course: Course, mean: float) -> float:
    """Seconds that a host loses at its start and its end."""
    return course.terms.startup + _lost_at_end(course, mean)


def _lost_at_end(course: Course, mean: float) -> float:
    """Mean seconds that a host idles until its pilot ends with a long task: half a task less than that."""
    return course.known.long_task(course.now, mean) - mean / 2


def _uncovered(course: Course, mean: float) -> float:
    """Seconds of work for which the hosts that are there have no time."""
    work = course.waiting * mean + course.known.running * course.known.residual
    lost = _lost_at_end(course, mean)
    able = sum(host.count * (host.time_left(course.now) - lost) for host in course.until_requests_end)
    return max(0.0, work - able)
