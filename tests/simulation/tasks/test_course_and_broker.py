"""A forecast's course of a bag does what the broker does: exactly with few slots, in the mean with many."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from adaptor.crafting.situation import SiteRules
from adaptor.forecast.bag_simulation import MOST_SLOTS, Work, course_result
from adaptor.forecast.supply import Moment, PilotAhead
from adaptor.model import Limits
from adaptor_simulation.cluster import cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.kernels import NEVER
from adaptor_simulation.tasks.broker_tasks import BrokerTasks
from adaptor_simulation.tasks.protocol import BAG, SITE
from tests.simulation.trace_strategies import jobs_from

IDLE_TIMEOUT = 60  # seconds, as a course assumes
LONGEST = 40_000  # seconds of a pilot


class Pilot(msgspec.Struct, frozen=True):
    start: int
    processors: int
    walltime: int


class InOrder:
    """These runtimes, one after the other."""

    def __init__(self, runtimes: Sequence[int]) -> None:
        self._left = iter([*runtimes] * 3)  # a course draws more of those of which several are asked for

    def one(self, _progress: float) -> float:
        return float(next(self._left))

    def several(self, count: float, _progress: float) -> float:
        return sum(self.one(_progress) for _ in range(round(count)))

    def rest(self, ran: float) -> float:
        raise AssertionError(f"no task has run for {ran} s before")


class NoRequests:
    paced = False

    def asked(self, _moment: Moment) -> list[PilotAhead]:
        return []

    def goes_on(self, _moment: Moment, _pilot: PilotAhead, _ages: Sequence[float]) -> bool:
        return True


def terms(draw: random.Random, initial: int) -> GridTerms:
    return GridTerms(
        rules=SiteRules(limits=Limits(max_pending_requests=1, max_proc=200, max_tr=LONGEST)),
        heuristic=draw.choice(["static", "adaptive", "completion"]),
        workers=msgspec.structs.replace(INSTANT_WORKERS, idle_timeout=IDLE_TIMEOUT),
        initial_tr=float(initial),
    )


def ends(runtimes: Sequence[int], pilots: Sequence[Pilot], terms: GridTerms) -> tuple[float, float]:
    """The end of the bag by the broker, and by the course; `math.inf`: tasks are left."""
    tasks = BrokerTasks(np.array(runtimes), terms, cluster_of_processors(jobs_from([]), 200, "conservative"))
    learner = tasks.board.state.learner(BAG, SITE).copy()
    work = Work(
        now=0.0,
        waiting=len(runtimes),
        learners={SITE: learner},
        most=sum(pilot.processors for pilot in pilots),
    )
    course = course_result(work, [ahead(pilot) for pilot in pilots], InOrder(runtimes), NoRequests())
    return by_broker(tasks, pilots), course.end


def by_broker(tasks: BrokerTasks, pilots: Sequence[Pilot]) -> float:
    now = 0
    for step in sorted({at for pilot in pilots for at in (pilot.start, pilot.start + pilot.walltime)}):
        while now < step:
            now = min(step, tasks.ahead(NEVER))
            tasks.settle(now)
            tasks.leave(now)
        for id, pilot in enumerate(pilots):
            if pilot.start == step:
                tasks.add_pilot(id, pilot.processors, step, step + pilot.walltime)
    return tasks.last_end if tasks.ended and not tasks.failed else math.inf


def ahead(pilot: Pilot) -> PilotAhead:
    return PilotAhead(
        site=SITE,
        slots=pilot.processors,
        start=pilot.start,
        end=pilot.start + pilot.walltime,
        useful=pilot.walltime,
    )


@pytest.mark.parametrize("seed", range(4))
def test_it_ends_in_the_same_second_where_each_slot_is_followed(seed: int) -> None:
    """At most two tasks for each slot, which then takes one at a time. Hardly two events are simultaneous."""
    draw = random.Random(seed)
    finished = []
    for _ in range(60):
        pilots = [
            Pilot(draw.randint(0, 60_000), draw.randint(1, 4), draw.randint(5_000, LONGEST))
            for _ in range(draw.randint(1, MOST_SLOTS // 4))
        ]
        slots = sum(pilot.processors for pilot in pilots)
        runtimes = [draw.randint(1_000, 36_000) for _ in range(draw.randint(1, 2 * slots))]
        broker, course = ends(runtimes, pilots, terms(draw, draw.randint(1_000, 30_000)))
        assert course == broker, (runtimes, pilots)
        finished.append(course < math.inf)
    assert 0.1 < statistics.mean(finished) < 0.9


@pytest.mark.parametrize("narrow", [True, False])
def test_it_ends_at_about_the_same_time_where_many_slots_count_as_one(narrow: bool) -> None:
    """With 20 to 120 slots and up to eight tasks for each. No bias above a twentieth in the mean."""
    draw = random.Random(7)
    ratios = []
    for _ in range(50):
        pilots = [
            Pilot(draw.randint(0, 3_000), draw.randint(1, 2), draw.randint(10_000, LONGEST))
            if narrow
            else Pilot(draw.randint(0, 3_000), draw.randint(20, 40), draw.randint(10_000, LONGEST))
            for _ in range(draw.randint(20, 60) if narrow else draw.randint(1, 3))
        ]
        slots = sum(pilot.processors for pilot in pilots)
        runtimes = [draw.randint(1, 2_900) for _ in range(draw.randint(slots, 8 * slots))]
        broker, course = ends(runtimes, pilots, terms(draw, draw.randint(10, 2_000)))
        assert broker < math.inf
        ratios.append(math.log(course / broker))
    assert abs(statistics.mean(ratios)) < 0.05
    assert statistics.median(map(abs, ratios)) < 0.1
