"""The throughput phase: self-scheduling, and a re-evaluation every five minutes, until few tasks wait."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from adaptor.budget.errors import InfeasibleError
from adaptor.budget.provisioning.allocation import Allocation, fastest
from adaptor.budget.provisioning.menu_line import Line
from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.sample import RuntimeSample
from adaptor_experiments.bats.design import INTERVAL, SITES, THRESHOLD
from adaptor_experiments.bats.sampling import IDLE, Fleet, Sampled

SAMPLE = 30
LATE = (
    0.05  # relative, of the time that was chosen: what is later is a violation (ours; the slides print none)
)


class Ending(msgspec.Struct, frozen=True):
    """State of a bag at the start of the tail phase."""

    now: float
    waiting: tuple[int, ...]
    fleet: Fleet
    learned: dict[str, TaskTime]
    experience: RuntimeSample
    """In seconds of the first site."""
    experiences: dict[str, RuntimeSample]
    """By site, in its own seconds."""
    asked: bool
    """Whether the budget was expected to be too small, and the user would have been called."""


class Throughput:
    """One run of a bag, with the configuration that the user chose."""

    def __init__(
        self, times: Sequence[Sequence[float]], order: list[int], chosen: Line, budget: float,
        sampled: Sampled,
    ) -> None:  # fmt: skip
        """`times` are the runtimes by site, then by task; `budget` is for what was sampled too."""
        self._runtimes = times
        self._waiting = deque(order)
        self._budget, self._known = budget, sampled.known
        self._seen = [KnownRuntimes() for _ in SITES]
        self._experience = RuntimeSample(len(order))
        self._experiences = {site.name: RuntimeSample() for site in SITES}
        self._chosen = self._wanted = [chosen.processors.get(site.name, 0) for site in SITES]
        self._planned_end = chosen.seconds.value
        self._fleet = sampled.fleet.copy()
        self._asked = False

    def run(self) -> Ending:
        """Until no more than the threshold of tasks wait."""
        now, check, fleet = 0.0, INTERVAL, self._fleet
        self._buy(now)
        while len(self._waiting) > THRESHOLD:
            now = min(check, fleet.next_event()) if fleet.machines else check
            self._finish(now)
            self._end_units(now)
            if now >= check:
                self._check(now)
                check += INTERVAL
            self._fill(now)
        experience = self._experience, self._experiences
        return Ending(now, tuple(self._waiting), fleet, self._estimates(), *experience, self._asked)

    def _finish(self, now: float) -> None:
        for machine in self._fleet.machines:
            if machine.task != IDLE and machine.end <= now:
                runtime, site = machine.end - machine.started, SITES[machine.site].name
                to_first = self._known[SITES[0].name].mean / self._known[site].mean
                self._seen[machine.site].add(runtime)
                self._experience.add(machine.task, runtime * to_first)
                self._experiences[site].add(machine.task, runtime)
                machine.task = IDLE

    def _end_units(self, now: float) -> None:
        """Machines whose time is over are paid for again as far as they are wanted; the others leave."""
        if all(machine.paid_until > now for machine in self._fleet.machines):
            return
        kept = Counter(machine.site for machine in self._fleet.machines if machine.paid_until > now)
        gone = []
        for machine in self._fleet.machines:
            if machine.paid_until > now:
                continue
            if kept[machine.site] < self._wanted[machine.site]:
                kept[machine.site] += 1
                self._fleet.renew(machine)
            else:
                gone.append(machine)
        self._waiting.extendleft(machine.task for machine in gone if machine.task != IDLE)
        self._fleet.leave(gone)

    def _fill(self, now: float) -> None:
        idle = self._fleet.idle()
        have = Counter(machine.site for machine in self._fleet.machines) if idle else Counter[int]()
        for machine in idle:
            if not self._waiting:
                return
            leaving = have[machine.site] > self._wanted[machine.site]
            if leaving and now + self._estimate(machine.site).mean > machine.paid_until:
                continue  # it would have to be killed
            task = self._waiting.popleft()
            machine.start(task, self._runtimes[machine.site][task], now)

    def _check(self, now: float) -> None:
        """Re-evaluate where a violation is expected."""
        offers, left = self._offers(now), self._budget - self._fleet.spent
        if not self._is_violated(now, offers, left):
            return
        try:
            plan = fastest(len(self._waiting), offers, left)
        except InfeasibleError:
            self._asked, self._wanted = True, self._chosen  # and the bag goes on until the user answers
        else:
            self._planned_end = now + plan.seconds
            self._wanted = [_paid(plan, site.name) for site in SITES]
        self._buy(now)

    def _is_violated(self, now: float, offers: Sequence[SiteOffer], left: float) -> bool:
        """Whether the machines would be late, or cost more than is left, by T_e and B_e of the slides."""
        running = [machine for machine in self._fleet.machines if machine.task != IDLE]
        parts = sum(
            max(0.0, 1 - (now - machine.started) / offers[machine.site].task.mean) for machine in running
        )
        at_work = list(zip(self._wanted, offers, strict=True))
        speed = sum(count / offer.task.mean for count, offer in at_work)
        ends = sum(count * offer.lost / offer.task.mean for count, offer in at_work)
        if not speed:
            return True
        seconds, cost = (len(self._waiting) + parts + ends) / speed, 0.0
        for wanted, offer in at_work:
            paid = sorted((held.paid for held in offer.held for _ in range(held.processors)), reverse=True)
            kept = [*paid[:wanted], *[0.0] * (wanted - len(paid))]
            cost += sum(offer.cost(seconds - until) for until in kept)
        return seconds > (self._planned_end - now) * (1 + LATE) or cost > left

    def _buy(self, now: float) -> None:
        have = Counter(machine.site for machine in self._fleet.machines)
        for site, wanted in enumerate(self._wanted):
            self._fleet.buy(site, max(0, wanted - have[site]), now)
        self._fill(now)

    def _estimates(self) -> dict[str, TaskTime]:
        return {site.name: self._estimate(place) for place, site in enumerate(SITES)}

    def _estimate(self, site: int) -> TaskTime:
        return self._known[SITES[site].name].learned(self._seen[site], 0.0, SAMPLE)

    def _offers(self, now: float) -> list[SiteOffer]:
        """The sites with the machines that we hold, in groups that are paid equally long."""
        groups = Counter((machine.site, machine.paid_until) for machine in self._fleet.machines)
        estimates = self._estimates()
        return [
            msgspec.structs.replace(
                each.offer(estimates[each.name]),
                held=tuple(
                    HeldSlots(count, paid - now) for (at, paid), count in sorted(groups.items()) if at == site
                ),
            )
            for site, each in enumerate(SITES)
        ]


def _paid(plan: Allocation, site: str) -> int:
    """Machines to be kept for longer than they are paid, or to be bought."""
    return sum(held.processors for held in plan.holdings if held.site == site and held.cost > 0)
