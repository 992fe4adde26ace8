"""What a site gives a bag in one possible future: the pilots that are there, and requests to come. Pure.

The requests are crafted by the heuristic of the site, from what is free in that future, as the planner does.
A future is either drawn (local jobs run shares of their limits) or as planned, with the waits that requests
really had beside the planned ones. How the queue will look when later requests are made, nobody knows: in one
half of the futures nobody else comes, in the other it looks as it does now.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from adaptor.crafting.availability import PlannedQueue, Schedule
from adaptor.crafting.fits import unit_of
from adaptor.crafting.futures.drawn_queue import drawn, fitting
from adaptor.crafting.planner import PLANNERS
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import CraftingSituation
from adaptor.decisions.outlook.course import Asking, Lease
from adaptor.decisions.outlook.knowledge import KnownPilot, KnownSite
from adaptor.model import Request

_FEWEST_WAITS = 5
"""Waits of a site from which they count."""
_MOST_DRAWN = 1500
"""Jobs of a queue beyond which its futures are not drawn one by one."""


class Site:
    """A site in one future."""

    def __init__(
        self, known: KnownSite, plan: Schedule | None, now: float, draw: random.Random, *, steady: bool
    ) -> None:
        """`plan`: of the queue, as planned; `steady`: whether the queue always looks as it does now."""
        self._known, self._now, self._draw, self._steady = known, now, draw, steady
        self._plan = plan
        self._unit = unit_of(known.rules, known.queue, known.task)
        self._wait_share: float | None = None
        self._schedule = self._future()
        self._others = self._fitting(self._without_own())
        self._late = known.late * 1.5 * draw.random()
        self._batches: list[list[Request]] = []
        """What was made when requests were considered for the first, the second … time in this future."""

    @property
    def crafted(self) -> int:
        return len(self._batches)

    def _future(self) -> Schedule | None:
        known, queue = self._known, self._known.queue
        if queue is None:
            return None
        own = {pilot.job for pilot in known.pilots}
        enough = len(known.wait_shares) >= _FEWEST_WAITS
        if len(queue.running) + len(queue.pending) > _MOST_DRAWN or (enough and self._draw.random() < 0.5):
            self._wait_share = (
                self._draw.choice(known.wait_shares) if enough else 0.2 + 0.8 * self._draw.random()
            )
            return self._plan
        return drawn(
            queue, known.run_shares, known.seen_since, own, self._draw, known.run_shares_by_job, self._plan
        )

    def _without_own(self) -> Profile | None:
        """What the others leave free."""
        queue, future = self._known.queue, self._schedule
        if queue is None or future is None:
            return None
        profile, own = future.profile.copy(), {pilot.job for pilot in self._known.pilots}
        for running in queue.running:
            if running.id in own and running.end > queue.now:
                profile.give(queue.now, running.end - queue.now, running.processors)
        for pending in queue.pending:
            start = future.starts.get(pending.id, math.inf)
            if pending.id in own and start < math.inf:
                profile.give(start, pending.tr, pending.processors)
        return profile

    def _fitting(self, profile: Profile | None) -> Profile | None:
        """Of what is free the part on which tasks of this size find room on single nodes."""
        queue = self._known.queue
        return None if profile is None or queue is None else fitting(profile, queue, self._known.task)

    def leases(self) -> list[Lease]:
        """The pilots in the system."""
        found = []
        for pilot in self._known.pilots:
            start = pilot.started if pilot.started is not None else self._start_of(pilot)
            runs = pilot.started is not None
            found.append(self._lease(start, pilot.tr, pilot.p, pilot.slots, pilot, runs=runs))
        return found

    def _start_of(self, pilot: KnownPilot) -> float:
        """Of a queued pilot; one that the scheduler did not show yet comes last in its queue."""
        start = self._schedule.starts.get(pilot.job) if self._schedule is not None else None
        if start is None and self._others is not None:
            start = self._others.earliest_start(pilot.p, pilot.tr, self._now)
        if start is None or math.isinf(start):
            start = max(self._now, pilot.predicted if pilot.predicted is not None else self._now)
        return self._really(start)

    def _really(self, start: float) -> float:
        """When a request starts that is planned for then."""
        wait = max(0.0, start - self._now)
        if self._wait_share is not None:
            wait *= self._wait_share
        return self._now + wait + self._late

    def _lease(
        self,
        start: float,
        tr: float,
        p: int,
        slots: int,
        pilot: KnownPilot | None = None,
        *,
        runs: bool = False,
    ) -> Lease:
        """The pad is lost at the beginning for the most part."""
        pad = self._known.rules.pad
        last = min(10.0, pad / 2)
        begin = (
            start
            if runs and pilot is not None and pilot.elapsed
            else start + (pad - last) * self._draw.random()
        )
        return Lease(
            start=begin,
            end=start + tr - last,
            slots=slots,
            site=self._known.name,
            p=p,
            elapsed=pilot.elapsed if pilot is not None else (),
            bounds=pilot.bounds if pilot is not None else (),
            useful=tr - pad,
        )

    def asked(self, asking: Asking, turn: int, budget: CraftBudget, sites: int) -> list[Lease]:
        """The requests for so many tasks when requests are considered for the `turn`-th time."""
        limits = self._known.rules.limits
        allowed = limits.max_pending_requests - asking.in_system
        if not self._known.open or self._others is None or allowed <= 0:
            return []
        free = self._free(asking)
        while turn >= len(self._batches):
            if self._batches and not budget.take():
                break
            self._batches.append(self._craft(asking, free, sites))
        profile, found = Profile.of_steps(free), []
        least = min(limits.max_tr, asking.runtime + self._known.rules.pad)
        for each in self._batches[min(turn, len(self._batches) - 1)][:allowed]:
            tr = max(float(each.tr), least)  # what was crafted for shorter tasks is made longer, not anew
            start = profile.earliest_start(each.p, tr, asking.now)
            if start < math.inf:
                profile.take(start, tr, each.p)
                share = 1.0 if self._wait_share is None else self._wait_share
                begin = asking.now + share * (start - asking.now) + self._late
                begin += self._known.poll * self._draw.random()
                found.append(self._lease(begin, tr, each.p, self._unit.slots(each.p)))
        return found

    def _craft(self, asking: Asking, free: Sequence[tuple[float, int]], sites: int) -> list[Request]:
        queue = self._known.queue
        assert queue is not None
        situation = CraftingSituation(
            queue=PlannedQueue(now=asking.now, processors=queue.processors, plan=tuple(free)),
            rules=self._known.rules,
            in_system=asking.in_system,
            remaining_tasks=math.ceil(asking.uncovered / sites),
            runtime=asking.runtime,
            task=self._known.task,
        )
        return [each.request for each in PLANNERS[self._known.heuristic].proposal(situation)]

    def _free(self, asking: Asking) -> tuple[tuple[float, int], ...]:
        """What the others and the pilots in the system leave free from then on."""
        assert self._others is not None
        at = asking.now
        shift = at - self._now if self._steady else 0.0
        profile = _from(self._others, at - shift)
        steps = [(time + shift, free) for time, free in profile.steps()]
        held = [
            (max(at, each.start), each.end, each.p)
            for each in asking.held
            if each.site == self._known.name and each.end > at
        ]
        if not held:
            return tuple(steps)
        changes = [(time, 0) for time, _ in steps]
        for start, end, p in held:
            changes += [(start, p), (end, -p)]
        found: list[tuple[float, int]] = []
        place, free, taken = 0, steps[0][1], 0
        for time, change in sorted(changes):
            taken += change
            while place < len(steps) and steps[place][0] <= time:
                free = steps[place][1]
                place += 1
            left = max(0, free - taken)
            if found and found[-1][0] == time:
                found.pop()
            if not found or found[-1][1] != left:
                found.append((time, left))
        return tuple(found)


class CraftBudget:
    """How often requests may still be crafted for one forecast."""

    def __init__(self, times: int) -> None:
        self._left = times

    def take(self) -> bool:
        self._left -= 1
        return self._left >= 0


class Places:
    """All sites in one future; a `Supply` of one course at a time."""

    def __init__(self, sites: Sequence[Site], budget: CraftBudget) -> None:
        self._sites, self._budget, self._turn = sites, budget, 0

    def again(self) -> list[Lease]:
        """A new course begins; the pilots in the system."""
        self._turn = 0
        return [lease for site in self._sites for lease in site.leases()]

    def asked(self, asking: Asking) -> list[Lease]:
        found = [
            lease
            for site in self._sites
            for lease in site.asked(asking, self._turn, self._budget, len(self._sites))
        ]
        self._turn += bool(found)
        return found


def _from(profile: Profile, at: float) -> Profile:
    """What is free from then on."""
    steps = [step for step in profile.steps() if step[0] > at]
    return Profile.of_steps([(at, profile.free_at(at)), *steps]) if profile.start < at else profile.copy()
