"""Requests that a bag may make now, by budget, deadline, preference and max-running, and ends of its
pilots."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.accounting.credits import format_credits, in_credits, millionths, rounded_up
from adaptor.budget.accounting.entries import bag_name, bag_pauses, larger_budget
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.provisioning.a2ha import goes_on
from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.budget.provisioning.pacing import (
    Course,
    Paced,
    advise,
    least_request,
    longest_before,
    longest_to_learn,
    needed_for_deadline,
    situation_of,
    starts_in_time,
    terms_for,
)
from adaptor.budget.provisioning.presets import preset_of
from adaptor.budget.provisioning.within_budget import Purse, cheaper_anew, hosts_within, pays_for_all
from adaptor.crafting.coverage import time_left
from adaptor.crafting.fits import unit_of, width
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.situation import Demand, Funds
from adaptor.decisions.memory import Memory, MemoryDraft, donated_nodes
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.requests import (
    charges_whole_units,
    ends_with_units,
    expected_end,
    host_terms,
    known_shortest,
    most_slots,
    paid_in_parts,
    pilot_start,
    purse_of,
    shape_of,
    sites_of,
    slots_of,
    staying,
    unit_end,
)
from adaptor.decisions.shares import part_of_money, shares_of
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.forecast import Forecast
from adaptor.model import Estimate, PilotState
from adaptor.units import counted, format_duration, format_instant, round_up


def aimed(snapshot: Snapshot, draft: MemoryDraft, demand: Demand) -> Demand:
    """The demand, limited to what the aims of its bag allow, and to one task at a time if that must be. A bag
    that gets no request now is paused."""
    found = _within_aims(snapshot, draft, demand)
    return _one_at_a_time(snapshot.here, found) if demand.alone else found


def _one_at_a_time(site: SiteFacts, demand: Demand) -> Demand:
    """The demand with requests no wider than one task, if each task must have its worker for itself."""
    least = shape_of(site, demand).processors_for(1)
    why = "tasks under which workers have died repeatedly run alone, one after another"
    return demand.at_most(least, why)


def _within_aims(snapshot: Snapshot, draft: MemoryDraft, demand: Demand) -> Demand:
    """The demand, limited to what the aims of its bag allow; unchanged for a bag without aims."""
    bag = snapshot.payer(demand.bag)
    if bag is None or not demand.waiting:
        return demand
    site, memory = snapshot.here, draft.memory
    if not bag.spec.aims:
        return _within_money(snapshot, memory, bag, demand)
    demand = msgspec.structs.replace(demand, paced=bag.spec.paced)
    if why := _neither_can_be_kept(snapshot, memory, bag):
        draft.pause_bags(snapshot.site, demand.payers, why)
        return demand.at_most(0, why)
    needed, resolution = demand.runtime + site.rules.pad, site.rules.time_resolution
    if bag.spec.deadline is not None:
        ledger = snapshot.ledger
        unit = host_terms(ledger, site).unit if charges_whole_units(ledger, site) else 0.0
        longest = longest_before(bag.spec.deadline, snapshot.now, needed, unit, resolution)
        demand = msgspec.structs.replace(demand, longest=longest)
    if not bag.spec.paced:
        return _within_money(snapshot, memory, bag, demand)
    course = course_of(snapshot, bag, known_shortest(site, bag, demand))
    demand = msgspec.structs.replace(
        demand, longest=longest_to_learn(course, demand.longest, needed, resolution)
    )
    paced = advise(course, memory.paces.get(bag.id))
    hosts = _within_share(memory, site, bag, paced.advice.hosts)
    if demand.formal_only and not any(pilot.bag == bag.id for pilot in site.requests):
        hosts = max(hosts, 1)  # donated nodes are no hosts for these tasks
    limited = _for_whole_units(snapshot, bag, demand, paced).at_most(
        shape_of(site, demand).processors_for(hosts),
        f"{bag_name(bag.id)} ({_wanted(bag)}): {paced.advice.reason}",
    )
    draft.keep_pace(bag.id, paced.pace)
    return _within_money(snapshot, memory, bag, limited, course)


def _within_money(
    snapshot: Snapshot, memory: Memory, bag: BagFacts, demand: Demand, course: Course | None = None
) -> Demand:
    """The demand with no more hosts than the bag's budget pays for in addition to the work of its tasks.

    `course`: that of the bag, if it is known already.
    """
    purse = purse_of(snapshot.ledger, snapshot.here, bag)
    if purse is None:
        return demand
    if snapshot.here.narrow and not demand.paced:
        return msgspec.structs.replace(demand, funds=_funds(snapshot, memory, bag, purse))
    if not demand.hosts_counted:
        demand = _for_a_unit(snapshot, demand)
    course = course or course_of(snapshot, bag, known_shortest(snapshot.here, bag, demand))
    needed = demand.shortest if bag.learned[snapshot.site].lowered else demand.runtime
    tariff = snapshot.ledger.tariff(snapshot.site)
    slots = most_slots(snapshot.here, demand.task) - sum(each for _, each in staying(snapshot.here, bag))
    if pays_for_all(course, purse, slots, needed, tariff.charging_unit, tariff.grace):
        return demand
    hosts = hosts_within(course, purse)
    if hosts >= demand.waiting:
        return demand
    why = f"what its budget leaves after the work pays for {counted(hosts, 'more host')}"
    if not HEURISTICS[snapshot.here.heuristic].replans:  # else what these hosts cover would never get more
        demand = msgspec.structs.replace(demand, hosts_counted=True)
    return demand.at_most(shape_of(snapshot.here, demand).processors_for(hosts), why)


def _funds(snapshot: Snapshot, memory: Memory, bag: BagFacts, purse: Purse) -> Funds:
    """Funds of a site in what is left of a bag's budget: pilots that run tasks one after another waste
    nothing but their start-up, so no other rule keeps the bag within it."""
    tariff, each = snapshot.ledger.tariff(snapshot.site), width(snapshot.queue, bag.spec.task)
    return Funds(
        work=part_of_money(snapshot, memory, bag) * purse.left * each,
        unit=tariff.charging_unit,
        grace=tariff.grace,
        in_parts=paid_in_parts(bag.spec),
    )


def _for_a_unit(snapshot: Snapshot, demand: Demand) -> Demand:
    """The demand with requests of at least a charging unit, which is paid anyway."""
    site = snapshot.here
    if not charges_whole_units(snapshot.ledger, site):
        return demand
    unit = host_terms(snapshot.ledger, site).unit
    least = round_up(math.ceil(unit), site.rules.time_resolution)
    return msgspec.structs.replace(demand, hosts_counted=True, least_tr=least)


def _for_whole_units(snapshot: Snapshot, bag: BagFacts, demand: Demand, paced: Paced) -> Demand:
    """The demand with requests of at least a charging unit, which is paid anyway.

    If pilots end with units, the requests last for the units of the estimator.
    """
    site, ledger = snapshot.here, snapshot.ledger
    if not charges_whole_units(ledger, site):
        return msgspec.structs.replace(demand, hosts_counted=True)
    ends = ends_with_units(bag, ledger, site)
    tr = least_request(
        paced.advice.units,
        host_terms(ledger, site).unit,
        demand.shortest + site.rules.pad,
        site.rules.time_resolution,
        ends=ends,
    )
    if demand.longest is not None:
        tr = min(tr, demand.longest)
    return msgspec.structs.replace(
        demand, hosts_counted=True, least_tr=tr, longest=tr if ends else demand.longest
    )


def _terms(ledger: Statements, site: SiteFacts, bag: BagFacts) -> HostTerms:
    """The charging unit and start-up for a bag's hosts. Where units are short, a longer unit makes the
    start-up, and the part of a task that a host loses at its end, a small part of it."""
    if charges_whole_units(ledger, site):
        return host_terms(ledger, site)
    lost = bag.known_at(site.name).residual
    return terms_for(ledger.tariff(site.name).charging_unit, site.rules.pad, lost)


def _within_share(memory: Memory, site: SiteFacts, bag: BagFacts, hosts: int) -> int:
    """Hosts within the share of the site by cost and time, after those of sites that cost less.

    All hosts of the share count if no share keeps the deadline.
    """
    shares = shares_of(memory, bag.id)
    if shares is None:
        return hosts
    mine = shares.slots(site.name)
    if shares.urgent:
        return mine
    return max(0, min(mine, hosts - shares.slots_at_less(site.name)))


def _wanted(bag: BagFacts) -> str:
    words: list[str] = [bag.spec.prefer or "cheap"]
    if bag.spec.deadline is not None:
        words.append("with a deadline")
    return " ".join(words)


class Courses:
    """The courses of bags at the site of a step, each computed once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[int, tuple[Course, list[int]]] = {}
        """Course of each bag, with the ids of its pilots in the order of its hosts."""

    def without(self, bag: BagFacts, pilot: Pilot) -> Course:
        """The course of a bag as if it did not have this pilot."""
        if bag.id not in self._known:
            ids = [each.id for _, _, each, _ in _pilots_of(self._snapshot, bag)]
            self._known[bag.id] = course_of(self._snapshot, bag), ids
        course, ids = self._known[bag.id]
        if pilot.id not in ids:
            return course
        place, lasting = ids.index(pilot.id), course.until_requests_end
        return msgspec.structs.replace(
            course,
            hosts=[*course.hosts[:place], *course.hosts[place + 1 :]],
            lasting=[*lasting[:place], *lasting[place + 1 :]],
        )


def _pilots_of(snapshot: Snapshot, bag: BagFacts) -> list[tuple[BagFacts, SiteFacts, Pilot, int]]:
    """The pilots of a bag at all sites, with their slots."""
    return [
        (bag, site, pilot, slots)
        for site in sites_of(bag, snapshot.sites)
        for pilot, slots in staying(site, bag)
    ]


def course_of(snapshot: Snapshot, bag: BagFacts, needed: float = 0.0) -> Course:
    """State of a bag between its start and its end.

    Args:
        needed: seconds that its waiting tasks are known to need at least.
    """
    site, now = snapshot.here, snapshot.now
    there, whole_units = _pilots_of(snapshot, bag), charges_whole_units(snapshot.ledger, site)
    return Course(
        now=now,
        tasks=bag.tasks,
        known=bag.known_at(site.name),
        hosts=[_paid(snapshot, *each) for each in there],
        lasting=[_lasting(snapshot, *each) for each in there],
        terms=_terms(snapshot.ledger, site, bag),
        preset=preset_of(bag.spec.prefer),
        assumed=bag.learned[site.name].assumed,
        needed=needed,
        deadline=bag.spec.deadline,
        slow=bag.spec.prefer is None,
        whole_units=whole_units,
        sites=len(sites_of(bag, snapshot.sites)),
        requests_left=max(0, site.rules.limits.in_system - len(site.requests)),
        newest=max(
            (pilot.submitted if pilot.started is None else pilot.started for _, _, pilot, _ in there),
            default=-math.inf,
        ),
        widest=max(1, site.rules.limits.max_proc // width(site.queue, bag.spec.task)),
    )


def _lasting(snapshot: Snapshot, bag: BagFacts, site: SiteFacts, pilot: Pilot, slots: int) -> Hosts:
    """The slots of a pilot, queued or running, until it is expected to end, or the time that is paid for
    does."""
    start = pilot_start(pilot, snapshot.now)
    ends = expected_end(bag, snapshot.ledger, site, pilot, snapshot.now)
    known = snapshot.ledger.open_pilots.get(pilot.id)
    if known is not None and known.paid is not None:
        ends = min(ends, start + known.paid)
    return Hosts(slots, start + site.rules.pad, ends)


def _paid(snapshot: Snapshot, bag: BagFacts, site: SiteFacts, pilot: Pilot, slots: int) -> Hosts:
    """The slots of a pilot until the end of the unit that is paid, or of another one where units are
    short."""
    lasting, terms = _lasting(snapshot, bag, site, pilot, slots), _terms(snapshot.ledger, site, bag)
    if charges_whole_units(snapshot.ledger, site):
        paid = terms.paid_until(pilot_start(pilot, snapshot.now), pilot.granted, snapshot.now)
    else:  # it goes on for nothing but what it costs
        paid = max(snapshot.now, lasting.ready) + terms.unit
    return msgspec.structs.replace(lasting, ends=min(lasting.ends, paid))


def _neither_can_be_kept(snapshot: Snapshot, memory: Memory, bag: BagFacts) -> str:
    """Why the bag pauses and what it needs; empty: its budget or its deadline can still be kept."""
    now, balance = snapshot.now, snapshot.ledger.budget_of(bag.id)
    if balance is None or bag.spec.deadline is None:
        return ""
    ahead = memory.forecasts[bag.id].forecast if bag.id in memory.forecasts else None
    if ahead is None or ahead.cost is None or ahead.least <= in_credits(balance.budget.amount):
        return ""
    slots = sum(most_slots(site, bag.spec.task) for site in sites_of(bag, snapshot.sites))
    soonest = now + snapshot.here.rules.pad + ahead.work.low / max(1, slots)
    if soonest <= bag.spec.deadline:
        return ""
    return _needs(bag, ahead, ahead.cost, balance.budget.amount, soonest, slots)


def _needs(bag: BagFacts, ahead: Forecast, cost: Estimate, budget: int, soonest: float, slots: int) -> str:
    least, most = (
        format_credits(millionths(max(figure, 1e-6), "a cost")) for figure in (ahead.least, cost.high)
    )
    late = format_duration(soonest - (bag.spec.deadline or 0.0))
    end = format_instant(soonest)
    enough = rounded_up(millionths(max(cost.high, 1e-6), "a cost"))
    return (
        f"{bag_pauses(bag.id)}: neither its budget nor its deadline can be kept: it will cost {least} to "
        f"{most} credits, and the budget is {format_credits(budget)}; it takes until {end} at the least, "
        f"on {slots} slots, which is {late} late: {larger_budget(bag.id, enough)} lets it go on"
    )


def why_not_another_unit(snapshot: Snapshot, courses: Courses, site: SiteFacts, pilot: Pilot) -> str:
    """Why a pilot ends with the charging unit that is nearly over; empty: it goes on, or no unit ends.

    A pilot is charged as a whole, so its slots go on together: where half of them at least run a task that
    should go on.
    """
    bag = snapshot.payer(pilot.bag)
    if bag is None or pilot.node or pilot.leaving or pilot.started is None:
        return ""
    if not ends_with_units(bag, snapshot.ledger, site):
        return ""
    ends = unit_end(snapshot.ledger, site, pilot, snapshot.now)
    if ends is None or ends > snapshot.now:
        return ""
    slots, course = slots_of(site, pilot, bag), courses.without(bag, pilot)
    going = _going_on(snapshot, course, bag, pilot)
    if course.deadline is not None:
        going = max(going, int(min(slots, needed_for_deadline(course))))
        if bag.by_pilot.get(pilot.id) and not starts_in_time(course):
            return ""  # its tasks would end too late elsewhere
    if 2 * going >= slots:
        return ""
    return (
        f"its charging unit ends, and of its {counted(slots, 'slot')} {going} should go on: "
        "the other tasks cost less if they start again elsewhere"
    )


def why_tasks_start_anew(snapshot: Snapshot, courses: Courses, site: SiteFacts, pilot: Pilot) -> str:
    """Why a pilot with few tasks ends, although they still run; empty: it goes on.

    What its idle slots cost pays for tasks that wait for money.
    """
    bag = snapshot.payer(pilot.bag)
    if bag is None or pilot.node or pilot.leaving or pilot.started is None or not pilot.processors:
        return ""
    purse = purse_of(snapshot.ledger, site, bag)
    if purse is None or charges_whole_units(snapshot.ledger, site):
        return ""
    ages = [snapshot.now - start for start in bag.by_pilot.get(pilot.id, ())]
    slots, course = slots_of(site, pilot, bag), courses.without(bag, pilot)
    if not cheaper_anew(course, purse, slots, ages, time_left(pilot, snapshot.now)):
        return ""
    return (
        f"tasks wait for which no credits are left, and of its {counted(slots, 'slot')} {len(ages)} run a "
        "task: these cost less where they start again"
    )


def _going_on(snapshot: Snapshot, course: Course, bag: BagFacts, pilot: Pilot) -> int:
    """Number of its running tasks that should go on. `course`: without the pilot."""
    others = situation_of(course)
    starts = bag.by_pilot.get(pilot.id, ())
    return sum(goes_on(others, course.preset, snapshot.now - start) for start in starts)


def why_paused(memory: Memory, bag: int, sites: Sequence[str]) -> str:
    """Why no site may request hosts for a bag; empty: one may.

    Sites and donated nodes that get none of the waiting tasks, by cost and time, do not count.
    """
    shares = shares_of(memory, bag)
    places = sites if shares is None else [*sites, *map(donated_nodes, sites)]
    wanted = [place for place in places if shares is None or shares.tasks(place)] or sites
    reasons = [memory.paused.get(place, {}).get(bag, "") for place in wanted]
    return reasons[0] if reasons and all(reasons) else ""


def within_together(snapshot: Snapshot, demand: Demand) -> Demand:
    """The demand, limited to the slots that its tasks can use in addition to those in the system at all
    sites."""
    if demand.together is None:
        return demand
    there = _slots(snapshot, demand)
    left = max(0, demand.together - there)
    unit = unit_of(snapshot.here.rules, snapshot.queue, demand.task)
    most = math.ceil(left / unit.tasks) * unit.processors
    why = (
        f"{counted(demand.together, 'task')} may run at the same time (max-running, canary), and requests in "
        f"the system have {counted(there, 'slot')}"
    )
    return demand.at_most(most, why)


def _slots(snapshot: Snapshot, demand: Demand) -> int:
    """Tasks that the pilots in the system for such tasks can run at the same time.

    Of those that end too soon for any waiting task, only what runs counts.
    """
    found = ending = 0
    for site in snapshot.sites.values():
        unit = unit_of(site.rules, site.queue, demand.task)
        for pilot in site.pilots:
            same = pilot.bag == demand.bag and pilot.shape in (None, demand.shape)
            if same and pilot.state.in_system and not pilot.leaving:
                slots = unit.slots(pilot.request.p)
                if pilot.state is PilotState.RUNNING and time_left(pilot, snapshot.now) < demand.shortest:
                    ending += slots
                else:
                    found += slots
    return max(found, min(found + ending, demand.running))
