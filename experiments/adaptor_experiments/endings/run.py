"""One bag on the queue of a trace, by the decisions of the daemon; forecasts on the way."""

from __future__ import annotations

import math
from collections import deque

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.outlook.endings import bags_ahead, end_of
from adaptor.decisions.site_memory import SiteSettings
from adaptor.model import Limits, TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.state import SiteTerms
from adaptor.simulation.driver import SimulatedDriver
from adaptor.simulation.scene.site import ScenePlace, SimulatedSite
from adaptor.simulation.scene.world import World
from adaptor.simulation.worker import Attempt
from adaptor_experiments.endings.design import MOMENTS, CheckedBag, Row
from adaptor_experiments.endings.place import QueueAt

SITE = "site"
_POLL = 60.0
_WINDOW = 30.0
_GIVEN_UP = 4 * 86400
"""Seconds after which a bag is left out."""


class Piece(msgspec.Struct, frozen=True, eq=False):
    trace: str
    processors: int
    queue: QueueAt
    number: int
    bag: CheckedBag


def limits_for(processors: int) -> Limits:
    """A quarter of the machine for each of four requests, four hours at most."""
    return Limits(max_pending_requests=4, max_proc=max(1, processors // 4), max_tr=4 * 3600)


def run_piece(piece: Piece) -> list[Row]:
    """The forecasts of a bag at the moments; none if the bag never ends."""
    return _Run(piece).rows()


class _Run:
    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        rules = SiteRules(limits=limits_for(piece.processors), pad=30.0, time_resolution=60)
        settings = SiteSettings(name=SITE, rules=rules, heuristic="adaptive", poll=_POLL, idle_timeout=60.0)
        place = ScenePlace(settings=settings, jobs=piece.queue.jobs, processors=piece.processors, startup=15)
        self._site = SimulatedSite(place)
        terms = SiteTerms(initial_tr=3600.0, growth_factor=2, longest=rules.longest_task)
        self._driver = SimulatedDriver(
            {SITE: self._site},
            Broker({SITE: terms}),
            {SITE: Tariff(price_explicit=1.0, price_donated=1.0)},
            watched={SITE: piece.queue.shares},
        )
        self._world = World({SITE: self._site}, self._driver)
        spec = BagSpec(
            name="", cwd="", output="", environment={}, time=piece.bag.hint, order="file", replicas=0
        )
        runtimes = piece.bag.runtimes
        self._bag = Bag(1, spec, len(runtimes))
        self._bag.fill()
        self._seen: deque[tuple[float, int]] = deque([(0.0, 0)])
        self._world.add_bag(self._bag, lambda key, _site: Attempt(float(runtimes[key.task])))

    def rows(self) -> list[Row]:
        left, told = list(MOMENTS), []
        bag, world = self._bag, self._world
        while not bag.ended and world.now < _GIVEN_UP:
            world.go_on(min(world.now + round(_POLL), _GIVEN_UP))
            self._look()
            while left and not bag.ended and bag.count(TaskState.DONE) >= left[0] * bag.total:
                if (row := self._row(left[0])) is not None:
                    told.append(row)
                left.pop(0)
        if not bag.ended:
            return []
        end = max(each.at for each in world.ended)
        return [msgspec.structs.replace(row, end=end) for row in told]

    def _look(self) -> None:
        now, seen = float(self._world.now), self._seen
        seen.append((now, self._bag.count(TaskState.DONE) + self._bag.count(TaskState.FAILED)))
        while len(seen) > 2 and seen[1][0] <= now - _WINDOW:
            seen.popleft()

    def _row(self, moment: float) -> Row | None:
        """By the very function that `adaptor status` shows the result of."""
        now, piece = float(self._world.now), self._piece
        (ahead,) = bags_ahead(self._driver.broker.state, {}, now)
        end = end_of(ahead, self._driver.facts(now), now)
        return Row(
            trace=piece.trace,
            bag=piece.number,
            kind=piece.bag.kind,
            tasks=len(piece.bag.runtimes),
            hint=piece.bag.hint is not None,
            moment=moment,
            at=now,
            low=end.low if end else math.nan,
            value=end.value if end else math.nan,
            high=end.high if end else math.nan,
            end=math.nan,
            pace=self._pace(now),
            planned=self._planned(),
        )

    def _pace(self, now: float) -> float:
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        rate = (after - before) / (last - first) if last > first else 0.0
        left = self._bag.count(TaskState.WAITING) + self._bag.count(TaskState.LEASED)
        return now + left / rate if rate > 0 else math.nan

    def _planned(self) -> float:
        queue = self._site.queue_state()
        own = self._driver.jobs_of(SITE)
        ends = [job.end for job in queue.running if job.id in own]
        ends += [
            job.planned_start + job.tr
            for job in queue.pending
            if job.id in own and job.planned_start is not None
        ]
        return max(ends, default=math.nan)
