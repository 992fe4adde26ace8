"""Numbers of tasks that a site could finish until any instant, and tasks divided so that all sites end at
once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.crafting.choosing import opened
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.places import Place
from adaptor.crafting.profile import Profile, rectangles
from adaptor.crafting.situation import Demand
from adaptor.model import FreeSlot
from adaptor.units import round_up


def strips(steps: list[tuple[float, int]]) -> list[FreeSlot]:
    """Cut the area under `(time, units from then on)` into horizontal strips of maximal length."""
    return [FreeSlot(begin, end - begin, units - shared) for begin, end, units, shared in rectangles(steps)]


class Capacity:
    """The tasks of one shape that a site could finish, as a function of time.

    Each strip of the availability profile that is long enough for a request runs tasks one after another:
    requests of maxTr, back to back, and a last shorter one, each of which loses the pad. Every request
    starts `delay` seconds later than the profile says. The processors in use at an instant never exceed
    those of the requests allowed until then.
    """

    def __init__(
        self,
        free: Profile,
        shape: RequestShape,
        *,
        now: float,
        requests: int,
        ends: Iterable[float] = (),
        delay: float = 0.0,
        whole_tr: bool = False,
    ) -> None:
        """Args:
        now: epoch seconds; no request starts earlier, though the profile may be older.
        requests: the number of requests allowed now.
        ends: the ends of the requests in the system; each end allows another request.
        delay: seconds by which requests start later than planned.
        whole_tr: every request lasts maxTr, independent of the free slot (the static heuristic).
        """
        self.shape = shape
        limits = shape.rules.limits
        self._longest = round_up(limits.max_tr, shape.rules.time_resolution)
        self._most_rounds = max(1, shape.rounds(limits.max_tr))
        self._strips = [
            (strip.start + delay, strip.processors * shape.unit.tasks, full, rest)
            for strip in strips(_units(free, shape, now, requests, ends))
            for full, rest in [self._requests_in(strip.duration, whole_tr)]
            if full or rest
        ]
        self.total = self._by(math.inf)  # tasks that it can ever finish; may be `math.inf`
        first_round = min(self._longest, shape.rules.pad + shape.runtime)
        self.first = min((begin for begin, _, _, _ in self._strips), default=math.inf) + first_round
        """The earliest end of a first task (epoch seconds); `math.inf`: never."""

    @property
    def openings(self) -> list[tuple[float, int]]:
        """`(instant, further tasks that can run at the same time from then on)`, in order of time."""
        return sorted((begin, tasks) for begin, tasks, _, _ in self._strips)

    def by(self, time: float) -> int:
        """Tasks that could be finished until `time` (for `math.inf` see `total`)."""
        return int(self._by(time))

    def _by(self, time: float) -> float:
        return sum(
            tasks * self._rounds(time - begin, full, rest)
            for begin, tasks, full, rest in self._strips
            if time > begin
        )

    def _requests_in(self, duration: float, whole_tr: bool) -> tuple[float, int]:
        """The number of requests of maxTr that fit in a row, and the rounds of a last, shorter one."""
        usable = duration - self.shape.rules.margin
        if math.isinf(usable):
            return math.inf, 0
        full = max(0, math.floor(usable / self._longest))
        if whole_tr:
            return full, 0
        return full, self.shape.rounds(self.shape.longest_tr(duration - full * self._longest))

    def _rounds(self, elapsed: float, full: float, rest: int) -> float:
        """Tasks that one slot has finished `elapsed` seconds after the start of its strip."""
        if math.isinf(elapsed):
            return full * self._most_rounds + rest
        over = min(full, elapsed // self._longest)
        current = self._most_rounds if over < full else rest
        return over * self._most_rounds + min(current, self.shape.rounds(elapsed - over * self._longest))


def capacity_of(places: Sequence[Place], demand: Demand, tasks: int, requests: int, now: float) -> Capacity:
    """Capacity of a site for a demand if it may make `requests` now, and one more as each pilot ends: that of
    the place which finishes this number of tasks first. Requests of several places are not added up, as they
    may share nodes and limits."""
    able = [place for place in opened(places, demand) if not place.closed] or places
    found = [_capacity(place, demand, min(requests, place.allowed), now) for place in able]
    if len(found) == 1:
        return found[0]

    def soonest(capacity: Capacity) -> tuple[int, float]:
        alone = level({"": capacity}, tasks, now)
        return -alone.assigned, alone.finish

    return min(found, key=soonest)


def _capacity(place: Place, demand: Demand, requests: int, now: float) -> Capacity:
    site, shape = place.site, place.shape(demand)
    whole = HEURISTICS[site.heuristic].fixed_shape
    ends = [
        pilot.ends if pilot.ends is not None else max(now, pilot.predicted_start or now) + pilot.request.tr
        for pilot in site.requests
    ]
    return Capacity(
        place.free.profile(shape.chunk),
        shape,
        now=now,
        requests=requests,
        ends=[] if site.closed else ends,
        delay=site.delay(shape.widest, now, shape.rules.limits.max_tr if whole else None),
        whole_tr=whole,
    )


def _units(
    free: Profile, shape: RequestShape, now: float, requests: int, ends: Iterable[float]
) -> list[tuple[float, int]]:
    """`(time, units of processors that requests may use from then on)`, from now on."""
    later = sorted(ends)
    changes = {time for time, _ in free.steps()} | {end for end in later if end < math.inf}
    widest = shape.widest // shape.unit.processors
    found: list[tuple[float, int]] = []
    for time in sorted({now} | {change for change in changes if change > now}):
        allowed = requests + sum(end <= time for end in later)
        found.append((time, min(allowed * widest, free.free_at(time) // shape.unit.processors)))
    return found


_PRECISE = 1e-3  # seconds within which two sites count as equally fast


class Level(msgspec.Struct, frozen=True):
    """Tasks by site, and the expected end of the last of them (epoch seconds)."""

    shares: dict[str, int]
    finish: float

    @property
    def assigned(self) -> int:
        return sum(self.shares.values())


def level(capacities: Mapping[str, Capacity], tasks: int, now: float) -> Level:
    """Divide the tasks so that the last one ends as early as possible.

    The result equals assigning one task after another to the site that could finish it first (the tasks
    of a site are alike). Bisection over time finds the common finish. Tasks that end at that very instant
    go to the sites in proportion to the tasks that each could finish then. The shares sum up to `tasks`,
    or to all that the sites can ever finish if that is less. A site never gets fewer tasks because its
    capacity grew.
    """
    target = int(min(tasks, sum(capacity.total for capacity in capacities.values())))
    if target <= 0:
        return Level(dict.fromkeys(capacities, 0), now)
    early, late = now, now + 60.0
    while _sum(capacities, late) < target:
        early, late = late, now + 2 * (late - now)
    while late - early > _PRECISE:
        middle = (early + late) / 2
        if _sum(capacities, middle) < target:
            early = middle
        else:
            late = middle
    shares = {name: capacity.by(early) for name, capacity in capacities.items()}
    more = {name: capacity.by(late) - shares[name] for name, capacity in capacities.items()}
    for name, tasks in _in_proportion(more, target - sum(shares.values())).items():
        shares[name] += tasks
    return Level(shares, late)


def _in_proportion(weights: Mapping[str, int], number: int) -> dict[str, int]:
    """Divide `number` (at most the sum of weights) by D'Hondt's method: monotone in each weight."""
    total = max(1, sum(weights.values()))
    parts = {name: number * weight // total for name, weight in weights.items()}
    for _ in range(number - sum(parts.values())):
        parts[min(parts, key=lambda name: (-weights[name] / (parts[name] + 1), name))] += 1
    return parts


def _sum(capacities: Mapping[str, Capacity], time: float) -> int:
    return sum(capacity.by(time) for capacity in capacities.values())


class TargetShares(msgspec.Struct, frozen=True, kw_only=True):
    """The uncovered tasks of one bag, by site."""

    shares: dict[str, int]
    seconds: float
    """Seconds from now until the last task is expected to end; may be `math.inf`."""
    reason: str
    """Why these shares, in one sentence with the numbers."""


def granted(target: TargetShares, capacities: Mapping[str, Capacity], tasks: int, now: float) -> Level:
    """The target shares, limited to `tasks` and to the capacity of each site.

    Tasks beyond a site's capacity go to no other site: the next target shares will assign them.
    """
    shares = {}
    for name, capacity in capacities.items():
        shares[name] = int(min(tasks, target.shares.get(name, 0), capacity.total))
        tasks -= shares[name]
    return Level(shares, now + target.seconds)
