"""The compiled kernel does what the scheduling core does: the same bag, pilots and ends, field by field."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.core_execution import CoreExecution
from adaptor.simulation.driver import run_grid_job
from adaptor.simulation.execution import Served
from adaptor.simulation.grid_job import INSTANT_WORKERS, GridTerms, WorkerTerms
from adaptor.simulation.kernel_execution import KernelExecution
from tests.simulation.grid_strategies import MAX_TR, bags, cluster_of, scenes, terms
from tests.simulation.trace_strategies import PROCESSORS, jobs_from

ENDLESS = 5000
"""Questions to the planner; none of these small bags needs a tenth of them."""


class Recorder:
    """An execution that writes down what the planner is told, and what is known then."""

    def __init__(self, make):
        self.make = make
        self.told = []

    def __call__(self, runtimes, terms, cluster):
        execution = self.execution = self.make(runtimes, terms, cluster)
        demands = execution.demands

        def recorded():
            self.told.append((cluster.now, demands(), execution.learned))
            assert len(self.told) < ENDLESS, "the bag never ends"
            return demands()

        execution.demands = recorded
        return execution


def outcome(make, cluster, runtimes, terms):
    """All that can be seen of a grid job."""
    recorder = Recorder(make)
    result = run_grid_job(cluster, np.array(runtimes), terms, recorder)
    execution = recorder.execution
    cluster.finish()
    return {
        **msgspec.structs.asdict(result),
        "told": recorder.told,
        "learned": execution.learned,
        "failed tasks": execution.failed,
        "last end": execution.last_end,
        "starts of the others": cluster.starts().tolist(),
    }


@given(scenes, bags, terms())
@settings(max_examples=400, deadline=None)
def test_a_grid_job_goes_the_same_way(scene, runtimes, terms):
    by_kernel = outcome(KernelExecution, cluster_of(scene), runtimes, terms)
    by_core = outcome(CoreExecution, cluster_of(scene), runtimes, terms)
    assert by_kernel == by_core


class Pilot(msgspec.Struct, frozen=True):
    """One of a random site: it starts, and the scheduler may end it before its time."""

    start: int
    processors: int
    tr: int
    taken: int | None


pilots = st.lists(
    st.builds(
        Pilot,
        st.integers(0, 60),
        st.integers(1, PROCESSORS),
        st.integers(1, MAX_TR) | st.integers(MAX_TR - 4, MAX_TR),
        st.none() | st.integers(1, MAX_TR),
    ),
    max_size=12,
)


def life(make, runtimes: list[int], terms: GridTerms, drawn: list[Pilot], steps: list[int]):
    """What an execution makes of pilots that come and go, as seen at these steps."""
    execution = make(np.array(runtimes), terms, empty_cluster())
    here: dict[int, Pilot] = {}
    seen, now = [], 0
    widest = terms.rules.limits.max_proc

    def leave():
        for id, tasks in sorted(execution.leave(now).items()):
            seen.append(("left", now, id, tasks))
            del here[id]

    for step in sorted({*steps, 0, 110, *(moment for pilot in drawn for moment in moments(pilot))}):
        changed = False
        while now < step:
            now = min(step, execution.ahead())
            changed |= execution.settle(now)
            leave()
        for id in [id for id, pilot in here.items() if pilot.taken is not None and ends(pilot) <= now]:
            seen.append(("taken", now, id, execution.end_pilot(id, now)))
            del here[id]
        for id, pilot in enumerate(drawn):
            if pilot.start == now:
                here[id] = pilot
                execution.add_pilot(id, min(pilot.processors, widest), now, now + pilot.tr)
        leave()
        seen.append((now, changed, execution.demands(), execution.learned, execution.last_end))
    return seen, list(execution.failed)


def empty_cluster() -> Simulation:
    return Simulation(jobs_from([]), PROCESSORS, "conservative")


def ends(pilot: Pilot) -> int:
    return pilot.start + min(pilot.taken or MAX_TR, pilot.tr)


def moments(pilot: Pilot) -> tuple[int, int]:
    return pilot.start, ends(pilot)


@given(bags, terms(), pilots, st.lists(st.integers(0, 110)))
@settings(max_examples=400, deadline=None)
def test_pilots_come_and_go_as_they_like(runtimes, terms, drawn, steps):
    by_kernel = life(KernelExecution, runtimes, terms, drawn, steps)
    assert by_kernel == life(CoreExecution, runtimes, terms, drawn, steps)


def by_completion(max_proc: int, *, pad: int = 0, workers: WorkerTerms = INSTANT_WORKERS) -> GridTerms:
    limits = Limits(max_pending_requests=1, max_proc=max_proc, max_tr=MAX_TR)
    return GridTerms(
        rules=SiteRules(limits=limits, pad=float(pad)),
        heuristic="completion",
        workers=workers,
        initial_tr=1.0,
        growth_factor=2,
    )


def test_a_slot_that_stood_idle_gets_a_task_when_less_time_is_known_to_do():
    runtimes = [1, 1, 10, 15, 16, 20, 4, 11, 7, 5, 2, 2, 2, 1, 1, 1, 1]
    terms = by_completion(4, pad=1)
    by_kernel = outcome(KernelExecution, empty_cluster(), runtimes, terms)
    assert by_kernel == outcome(CoreExecution, empty_cluster(), runtimes, terms)
    assert by_kernel["turnaround"] == 27  # tasks of 2 s start in two idle slots as the eighth ends at 22


def test_a_task_of_a_pilot_that_was_taken_starts_at_even_odds():
    runtimes, terms = [30, 30, 1, 1, 1, 1, 1, 1, 1], by_completion(2)
    drawn = [Pilot(0, 1, 1, None), Pilot(6, 2, 30, None), Pilot(31, 1, 14, None), Pilot(34, 1, 16, 1)]
    by_kernel = life(KernelExecution, runtimes, terms, drawn, [])
    assert by_kernel == life(CoreExecution, runtimes, terms, drawn, [])
    assert ("left", 37, 2, Served(6, 6)) in by_kernel[0]


def test_a_pilot_that_ends_in_the_same_second_is_heeded_before_idle_slots_get_tasks():
    workers = msgspec.structs.replace(INSTANT_WORKERS, last=1, idle_timeout=3)
    runtimes, terms = [30, 30, 1, 1, 1, 1, 2, 36, 30], by_completion(2, pad=1, workers=workers)
    drawn = [Pilot(0, 1, 1, None), Pilot(0, 2, 17, None), Pilot(0, 2, 35, None), Pilot(33, 1, 32, None)]
    by_kernel = life(KernelExecution, runtimes, terms, drawn, [])
    assert by_kernel == life(CoreExecution, runtimes, terms, drawn, [])
    assert ("left", 33, 3, Served(0, 0)) in by_kernel[
        0
    ]  # the task that is cut at 34 had 32 s, and needs more
