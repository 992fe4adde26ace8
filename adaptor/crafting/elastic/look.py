"""One look at the queue for a demand: pilots that start now, and pilots that wait. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.choosing import Wanted, by_partition, situation_in
from adaptor.crafting.coverage import slots_left, time_left
from adaptor.crafting.elastic.holes import Hole, holes, merged
from adaptor.crafting.elastic.walltimes import MOST_ROUNDS, SURE, further_rounds, needed, queued_walltimes
from adaptor.crafting.fits import RequestShape, RequestUnit, unit_of
from adaptor.crafting.places import Place
from adaptor.crafting.profile import Profile
from adaptor.crafting.reasons import none_left, nothing_possible, shown, work_held
from adaptor.crafting.situation import PREPAID, Demand, Funds, PilotView, Reshape, SiteState, Withdraw
from adaptor.model import CraftedRequest, PilotState
from adaptor.units import counted, format_duration, round_down, round_up, verb

CLASSES = 8  # lengths of pilots for the holes of one look: each is a submission
PART = 2  # divisor of the pilots for holes if a pilot for each processor is too many
IDLE = 0.5
"""The longest task may outlast a mean one by this part of the time for which a slot of a wide pilot works.
The other slots are idle meanwhile, as the pilot ends with its last task."""
UNKNOWN = 2  # tasks that each slot of a wide pilot is to run while nothing is known of them
MUCH = 2  # times what is needed that a queued pilot asks for before it is shortened
KEPT = 8  # one queued pilot in this number keeps its walltime
SHORTENED = 8  # pilots that are shortened in one look, at most: each is a command
SURPLUS = 20  # queued pilots are withdrawn when one in this number has no task to wait for


class Look:
    """One look at the queue for a demand."""

    def __init__(self, places: Sequence[Place], wanted: Wanted) -> None:
        """`places`: of one site."""
        view = places[0].site
        self._view, self._wanted, self._demand = view, wanted, wanted.demand
        demand = wanted.demand
        self._need = needed(demand, view.now)
        if not demand.waiting:  # the pilots are for copies of running tasks
            hole = max(self._need.hole, demand.threat.enough)
            self._need = msgspec.structs.replace(self._need, hole=hole)
        self._places = [place for place in places if not place.closed]
        runtime = max(1.0, self._need.hole)
        # `_most` bounds all of them together.
        unbounded = msgspec.structs.replace(demand, runtime=runtime, most=math.inf)
        self._shapes = {place.name: _in_pilots(place.shape(unbounded)) for place in self._places}
        shape = next(iter(self._shapes.values()), None)
        self._unit = shape.unit if shape else None
        slots = self._slots = _slots(wanted.pilots, demand, self._unit)
        self._queued = [
            pilot for pilot in wanted.pilots if pilot.state is not PilotState.RUNNING and not pilot.leaving
        ]
        running = [pilot for pilot in wanted.pilots if pilot.state is PilotState.RUNNING]
        self._running = sum(slots[pilot.id] for pilot in running)
        idle = max(0, self._running - demand.running)
        starting = sum(int(each.slots) for each in wanted.elsewhere.values() if not (each.start or each.age))
        self._covered = sum(slots[pilot.id] for pilot in self._queued)
        if demand.waiting:
            risk = at_risk(view, demand, running)
            self._todo = max(0, demand.waiting + demand.coming + risk - idle - starting)
        else:  # slots that are idle now lack the time
            self._todo = max(0, demand.threat.tasks - starting)
        if not wanted.replans:
            self._todo = min(self._todo, wanted.remaining + self._covered)
        self._coming: set[int] = set()
        self._profiles: dict[str, Profile] = {}
        able = [place for place in self._places if self._todo and self._shapes[place.name].widest]
        self._free = {place.name: self._free_in(place) for place in able}
        self._left = wanted.allowed
        self._most = demand.most
        self._funds = demand.funds
        self._work = {place.name: Funds(work=self._work_in(place)) for place in self._places}
        self.withdrawn: list[Withdraw] = []
        self.reshaped: list[Reshape] = []

    def crafted(self) -> list[CraftedRequest]:
        self._trim()
        if not self._shapes or self._todo <= 0:
            return []
        made = list(self._in_holes()) if self._seen else []
        made += self._in_queue(sum(self._tasks(new) for new in made))
        self._shorten()
        return made

    def why_nothing(self, closed: Mapping[str, str]) -> str:
        """Why no pilot is made. `closed`: see `why_closed`."""
        tasks = counted(self._todo, "task")
        if self._todo <= 0:
            return ""
        if self._left <= 0:
            return none_left(self._view.rules.limits, self._todo)
        if self._covered >= self._todo:
            queued = len(self._queued)
            pilots = f"{counted(queued, 'queued pilot')} {verb(queued, 'wait')} to start"
            return f"{pilots}, enough for the {tasks}, and no hole fits one"
        reasons = dict(closed)
        for place in self._places:
            held = not self._paid(place, 1)[0] and self._funds.endless
            nothing = nothing_possible(situation_in(place, self._wanted))
            reasons[place.name] = work_held(self._view, place.name) if held else nothing
        return by_partition(reasons)

    # --- what is queued ------------------------------------------------------------------------------

    def _trim(self) -> None:
        """Withdraw queued pilots without a task, the youngest first, and those too short for every task."""
        shortest = min(
            self._demand.shortest if self._need.known else self._demand.times.not_enough,
            max((s.rules.longest_task for s in self._shapes.values()), default=0),
        )
        for pilot in self._queued.copy():
            if pilot.request.tr < shortest and pilot.job is not None:
                lasts, needs = format_duration(pilot.request.tr), format_duration(shortest)
                self._withdraw(pilot, f"{lasts} is too short: every waiting task needs {needs}")
        surplus = self._covered - self._todo - self._starting
        if surplus * SURPLUS < self._covered:
            return
        for pilot in self._youngest():
            if self._slots[pilot.id] <= surplus:
                surplus -= self._slots[pilot.id]
                self._withdraw(
                    pilot, f"other pilots are queued for the {counted(self._todo, 'task')} that may need them"
                )

    def _withdraw(self, pilot: PilotView, reason: str, *, recraft: bool = False) -> None:
        self._queued.remove(pilot)
        self._coming.discard(pilot.id)
        self._covered -= self._slots[pilot.id]
        self.withdrawn.append(Withdraw(pilot.id, reason, recraft=recraft))

    def _youngest(self) -> list[PilotView]:
        """The queued pilots that may be withdrawn, the youngest first; those about to start may not."""
        return [
            pilot
            for pilot in reversed(self._queued)
            if pilot.job is not None and pilot.id not in self._coming
        ]

    def _shorten(self) -> None:
        """Let queued pilots ask for what is needed by now, if they start sooner then; the oldest first.

        The first one shows whether the scheduler takes such a change. Where tasks differ, long pilots in the
        queue are there for the longest ones.
        """
        mine = [pilot for pilot in self._queued if pilot.job is not None and pilot.id not in self._coming]
        may = self._view.rules.may_reshape and self._need.alike
        if not may or any(pilot.fixed for pilot in mine):
            return
        left = SHORTENED if any(pilot.reshaped for pilot in self._wanted.pilots) else 1
        rounds = math.ceil(self._todo / max(1, self._running + self._covered))
        for place in self._places:
            shape = self._shapes[place.name]
            needs = self._need.own + further_rounds(self._need, max(1, rounds)) + shape.rules.pad
            tr = round_up(needs, shape.rules.time_resolution)
            there = [pilot for pilot in mine if pilot.partition == place.name]
            late = {
                request
                for request in {pilot.request for pilot in there if pilot.request.tr >= MUCH * tr}
                for free in [self._profile(place)]
                if free.earliest_start(request.p, tr) < free.earliest_start(request.p, request.tr)
            }
            long = [pilot for pilot in there if pilot.request in late]
            for pilot in long[: min(left, len(long) - len(there) // KEPT)]:
                left -= 1
                request = shape.request(pilot.request.p, tr, tr)
                why = f"{shown(request)}: tasks need no more, and it starts sooner"
                crafted = CraftedRequest(request, None, 1, why, place.name)
                self.reshaped.append(Reshape(pilot.id, crafted, self._demand))

    # --- what starts now -----------------------------------------------------------------------------

    @property
    def _starting(self) -> int:
        """Tasks for which queued pilots are about to start."""
        return sum(self._slots[pilot] for pilot in self._coming)

    @property
    def _seen(self) -> bool:
        """Whether backfilling looks at a new pilot, behind those that are queued."""
        looks = self._view.rules.backfilled
        return looks is None or len(self._queued) < looks

    def _in_holes(self) -> Iterator[CraftedRequest]:
        """Pilots that start now, in the longest holes first; queued ones make room for them."""
        left = self._todo - self._starting
        for place in self._places:
            shape, unit = self._shapes[place.name], self._shapes[place.name].unit
            if left <= 0 or not shape.widest:
                continue
            free = self._free[place.name]
            longest = self._longest(shape, sum(hole.processors for hole in free))
            found = [
                Hole(hole.processors // unit.processors, tr)
                for hole in free
                if (tr := self._tr(shape, hole.duration, longest)) and hole.processors >= unit.processors
            ]
            classes = merged(found, CLASSES, longest)
            units = min(sum(hole.processors for hole in classes), math.ceil(left / unit.tasks))
            width = self._width_in_holes(shape, units)
            # A much narrower pilot is worth more in the queue.
            classes = [hole for hole in classes if 2 * hole.processors >= width]
            units = min(units, sum(hole.processors for hole in classes))
            paid, longest_paid, first = self._paid(place, units)
            more = 0
            for hole in classes:
                units = min(hole.processors, math.ceil(left / unit.tasks), paid)
                paid -= units
                while units > 0 and left > 0:
                    p = min(units, width) * unit.processors
                    if self._left <= 0 or p > self._most:
                        more += 1
                    else:
                        tr = int(min(hole.duration, longest_paid))
                        why = "fits a slot that is free now"
                        yield self._made(place, p, tr, first, self._view.now, why)
                    units -= min(units, width)
                    left -= shape.slots(p)
            self._make_room(more)

    def _width_in_holes(self, shape: RequestShape, units: int) -> int:
        """Units of a pilot for a hole: one, if each unit of the holes can have a pilot of its own."""
        if self._demand.alone or units <= self._left + len(self._queued):
            return 1
        pilots = max(1, self._left // PART)
        wide = math.ceil(min(units, max(pilots, self._busy(shape))) / pilots)
        return min(wide, _widest(shape))

    def _busy(self, shape: RequestShape) -> int:
        """Further units of wide pilots whose slots are busy for long enough, one task after another."""
        known = self._demand.times.finished
        rounds = (self._need.top / max(1.0, self._need.mean) - 1) / IDLE if known else UNKNOWN
        slots = self._todo / max(1.0, min(MOST_ROUNDS, rounds)) - self._running
        return math.ceil(max(0.0, slots) / shape.unit.tasks)

    def _width(self, shape: RequestShape) -> int:
        """Units of a pilot with which all that the site allows have a slot for each task.

        Slots that the machine does not have are of use only where its own would run fewer than half of the
        tasks, one after another.
        """
        units = math.ceil(self._todo / shape.unit.tasks)
        machine = shape.site_processors // shape.unit.processors
        rounds = max(1.0, min(MOST_ROUNDS, shape.rules.longest_task / max(1.0, self._need.mean)))
        pilots = shape.rules.limits.in_system
        useful = min(units, max(machine, math.ceil(2 * units / rounds)), max(pilots, self._busy(shape)))
        return max(1, min(math.ceil(useful / pilots), _widest(shape)))

    def _make_room(self, wanted: int) -> None:
        """Withdraw the youngest queued pilots for as many that would start now, if a limit is used up."""
        if not self._view.rules.may_withdraw or self._demand.withheld:
            return
        why = (
            self._demand.why_most if self._left > 0 else f"{self._view.rules.limits.in_system_key} is used up"
        )
        for pilot in self._youngest()[:wanted]:
            self._withdraw(pilot, f"a slot is free now for another one: {why}", recraft=True)

    def _profile(self, place: Place) -> Profile:
        """Free processors next to the jobs of others."""
        if place.name in self._profiles:
            return self._profiles[place.name]
        ours = {pilot.queued_as for pilot in self._view.requests if pilot.state is not PilotState.RUNNING}
        pending = tuple(job for job in place.queue.pending if job.id not in ours)
        queue = msgspec.structs.replace(place.queue, pending=pending)
        found = self._profiles[place.name] = Availability(queue).profile(self._shapes[place.name].chunk)
        return found

    def _free_in(self, place: Place) -> list[Hole]:
        """The holes without those that queued pilots fit: the scheduler is about to start these."""
        queued = [
            pilot
            for pilot in self._queued
            if pilot.partition == place.name and pilot.request.tr >= self._need.hole
        ]
        queued.sort(key=lambda pilot: -pilot.request.tr)
        left = list[Hole]()
        for hole in holes(self._profile(place), self._view.now):
            processors = hole.processors
            for pilot in queued.copy():
                if pilot.request.tr <= hole.duration and pilot.request.p <= processors:
                    queued.remove(pilot)
                    self._coming.add(pilot.id)
                    processors -= pilot.request.p
            if processors:
                left.append(Hole(processors, hole.duration))
        return left

    def _paid(self, place: Place, units: int, *, waits: bool = False) -> tuple[int, float, float]:
        """Number of these units for which the funds and the scheduler's bound on running jobs last, their
        longest walltime then, and the seconds of it that are paid for at first.

        All is divided among them, as each gives back what it does not use. Where a budget leaves too little
        for a single one, that one is asked for, so that it is said what the budget lacks.
        """
        shape, found = self._shapes[place.name], units
        each, least, resolution = shape.unit.processors, self._least_tr(shape), shape.rules.time_resolution
        begins = self._funds.paid(self._need.hole + shape.rules.pad)
        bounds = [each for each in (self._funds, self._work[place.name]) if not each.endless]
        for funds in bounds:
            cost = each * begins if funds.in_parts else funds.cost(each, least)
            found = min(found, int((PREPAID if waits and funds.in_parts else 1) * funds.work // cost))
        if found <= 0:
            first_one = self._funds is self._demand.funds and bool(self._demand.waiting)
            work = self._work[place.name]
            return int(first_one and work.cost(each, least) <= work.work), least, begins
        longest = first = math.inf
        for funds in bounds:
            if funds.in_parts:
                part = PREPAID if waits else found / max(found, self._most_at_once(shape))
                first = max(begins, round_down(part * funds.work / (found * each), funds.unit))
            else:
                longest = min(longest, round_down(funds.longest(found * each), resolution))
        return found, longest, first

    def _most_at_once(self, shape: RequestShape) -> int:
        """Units that all tasks can use at the same time, if others leave the machine to them."""
        machine = shape.site_processors // shape.unit.processors
        return min(math.ceil(self._todo / shape.unit.tasks), machine - self._running)

    def _work_in(self, place: Place) -> float:
        """Processor-seconds that the scheduler allows other pilots; if there are no pilots yet, enough for
        one to wait."""
        left, shape = self._view.work_left(place.name), self._shapes[place.name]
        return left if self._view.requests else max(left, shape.unit.processors * self._least_tr(shape))

    def _least_tr(self, shape: RequestShape) -> int:
        """Seconds of the shortest pilot that is of use."""
        rules = shape.rules
        return round_up(min(self._need.hole + rules.pad, rules.limits.max_tr), rules.time_resolution)

    def _tr(self, shape: RequestShape, duration: float, longest: int) -> int:
        """The walltime of a pilot in such a hole; 0: it is of no use."""
        enough = min(self._need.hole + shape.rules.pad, shape.rules.limits.max_tr)
        tr = min(shape.longest_tr(duration), longest)
        return tr if tr >= enough else 0

    def _longest(self, shape: RequestShape, free: int) -> int:
        """The longest walltime that is of use, if this number of processors is free now."""
        rules = shape.rules
        if not self._demand.times.finished:
            return rules.limits.max_tr
        slots = max(1, self._running + self._covered, shape.slots(free))
        rounds = max(MOST_ROUNDS, 2 * math.ceil(self._todo / slots))
        use = self._need.own + (rounds - 1) * self._need.mean + rules.pad
        return int(min(rules.limits.max_tr, round_up(use, rules.time_resolution)))

    # --- what waits ----------------------------------------------------------------------------------

    def _in_queue(self, started: int) -> Iterator[CraftedRequest]:
        """Pilots for the uncovered tasks: one pilot for each task, wider pilots if few are allowed."""
        uncovered = self._todo - started - self._covered
        place = self._home()
        if place is None or uncovered <= 0 or self._left <= 0:
            return
        shape = self._shapes[place.name]
        unit = shape.unit
        each = 1
        if not self._demand.alone:
            narrow = math.ceil(uncovered / unit.tasks / self._left)
            each = min(narrow, self._width(shape))
        count = min(self._left, math.ceil(uncovered / max(1, each * unit.tasks)))
        paid, longest_paid, first = self._paid(place, count * each, waits=True)
        count = paid // each
        p = int(min(each * unit.processors, self._most) // unit.processors * unit.processors)
        rounds = math.ceil(
            self._todo / max(1, self._running + self._covered + started + count * shape.slots(p))
        )
        there = [pilot.request.tr - shape.rules.pad for pilot in self._queued]
        longest = shape.rules.longest_task
        for seconds in islice(queued_walltimes(self._need, there, rounds, longest), count):
            if not 0 < p <= self._most:
                return
            tr = min(
                shape.rules.limits.max_tr,
                longest_paid,
                round_up(seconds + shape.rules.pad, shape.rules.time_resolution),
            )
            yield self._made(place, p, int(tr), first, None, "waits in the queue")

    def _home(self) -> Place | None:
        """Place of the queued pilots: the first one that has a slot for them."""
        able = [place for place in self._places if self._shapes[place.name].widest]
        if len(able) < 2:
            return able[0] if able else None

        def start(place: Place) -> float:
            shape = self._shapes[place.name]
            free = place.free.profile(shape.chunk)
            return free.earliest_start(shape.unit.processors, min(shape.enough(), shape.rules.limits.max_tr))

        return min(able, key=start)

    def _made(
        self, place: Place, p: int, tr: int, first: float, start: float | None, why: str
    ) -> CraftedRequest:
        shape = self._shapes[place.name]
        self._left -= 1
        self._most -= p
        paid = int(first) if first < tr + self._funds.grace else None
        self._funds = self._funds.after(p, tr, paid)
        self._work = {name: left.after(p, tr) for name, left in self._work.items()}
        least = shape.enough() if start is not None else tr
        request = shape.request(p, tr, least)
        rounds = max(1, math.floor((tr - shape.rules.pad) / max(1.0, self._need.mean or shape.runtime)))
        tasks = min(self._todo, shape.slots(p) * rounds)
        purpose = "" if self._demand.waiting else "for tasks that their pilots may cut: "
        reason = f"{shown(request)}: {purpose}{why}"
        return CraftedRequest(request, start, tasks, reason, place.name, paid)

    def _tasks(self, new: CraftedRequest) -> int:
        return self._shapes[new.partition].slots(new.request.p)


def _in_pilots(shape: RequestShape) -> RequestShape:
    """The shape in units of the narrowest pilot that the scheduler takes."""
    unit = shape.unit
    count = math.ceil(shape.least / unit.processors)
    wide = RequestUnit(count * unit.processors, count * unit.tasks, unit.each)
    return msgspec.structs.replace(shape, unit=wide) if count > 1 else shape


def _widest(shape: RequestShape) -> int:
    """Units of the widest pilot."""
    return shape.widest // shape.unit.processors


def at_risk(view: SiteState, demand: Demand, pilots: Sequence[PilotView]) -> int:
    """Running tasks that may have to start again: their pilots are too short for the longest task seen."""
    top, times = needed(demand, view.now).top, demand.times
    unit = unit_of(view.rules, view.queue, demand.task)
    slots = 0
    for pilot in pilots:
        if pilot.state is PilotState.RUNNING:
            age = view.now - max(pilot.started or 0.0, times.first_start or 0.0)
            if time_left(pilot, view.now) + age < SURE * top:
                slots += slots_left(pilot, demand, unit)
    return min(slots, demand.running)


def _slots(pilots: Sequence[PilotView], demand: Demand, unit: RequestUnit | None) -> dict[int, int]:
    """Tasks that run in each pilot at the same time; equal pilots are looked at once."""
    known: dict[object, int] = {}
    found: dict[int, int] = {}
    for pilot in pilots:
        kind = pilot.request.p, pilot.processors, pilot.state is PilotState.RUNNING, pilot.shape, pilot.rooms
        if kind not in known:
            known[kind] = slots_left(pilot, demand, unit) if unit else 0
        found[pilot.id] = known[kind]
    return found
