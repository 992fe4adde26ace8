"""The compiled kernel does what the broker does: the same bag, pilots and ends, after each call."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.situation import SiteRules
from adaptor.donation.situation import DonationRules
from adaptor.model import Limits
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms, WorkerTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.kernels import NEVER
from adaptor_simulation.tasks.kernel_tasks import KernelTasks
from adaptor_simulation.tasks.protocol import Served
from tests.examples import examples
from tests.simulation.grid_strategies import MAX_TR, bags, cluster_of, scenes, terms
from tests.simulation.tasks.both_tasks import BothTasks
from tests.simulation.test_donated_processors import terms_of
from tests.simulation.trace_strategies import PROCESSORS, jobs_from

pytestmark = pytest.mark.compiles


# --- pilots that come and go as they like ----------------------------------------------------------


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


class Life:
    """What both make of pilots that come and go."""

    def __init__(self, runtimes: list[int], terms: GridTerms, drawn: list[Pilot]) -> None:
        self.tasks = BothTasks(np.array(runtimes), terms, empty_cluster())
        self.seen: list[tuple[str, int, int, Served]] = []
        self._widest = terms.rules.limits.max_proc
        self._drawn, self._now = drawn, 0
        self._here: dict[int, Pilot] = {}

    def live(self, steps: list[int]) -> None:
        for step in sorted({*steps, 0, 110, *(at for pilot in self._drawn for at in moments(pilot))}):
            while self._now < step:
                self._now = min(step, self.tasks.ahead(NEVER))
                self.tasks.settle(self._now)
                self._leave()
            for id in [
                id for id, pilot in self._here.items() if ends(pilot) <= step and pilot.taken is not None
            ]:
                self._gone("taken", id, self.tasks.end_pilot(id, step))
            for id, pilot in enumerate(self._drawn):
                if pilot.start == step:
                    self._add(id, pilot)
            self._leave()

    def _add(self, id: int, pilot: Pilot) -> None:
        self._here[id] = pilot
        self.tasks.add_pilot(id, min(pilot.processors, self._widest), self._now, self._now + pilot.tr)

    def _leave(self) -> None:
        for id, served in sorted(self.tasks.leave(self._now).items()):
            self._gone("left", id, served)

    def _gone(self, how: str, id: int, served: Served) -> None:
        self.seen.append((how, self._now, id, served))
        del self._here[id]


def empty_cluster() -> Cluster:
    return cluster_of_processors(jobs_from([]), PROCESSORS, "conservative")


def ends(pilot: Pilot) -> int:
    return pilot.start + min(pilot.taken or MAX_TR, pilot.tr)


def moments(pilot: Pilot) -> tuple[int, int]:
    return pilot.start, ends(pilot)


@given(bags, terms(), pilots, st.lists(st.integers(0, 110)))
@examples(400)
def test_pilots_come_and_go_as_they_like(runtimes, terms, drawn, steps):
    Life(runtimes, terms, drawn).live(steps)


# --- whole runs ------------------------------------------------------------------------------------


@given(scenes, bags, terms())
@examples(400)
def test_a_grid_job_goes_the_same_way(scene, runtimes, terms):
    run_grid_job(cluster_of(scene), np.array(runtimes), terms, BothTasks)


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
    result = run_grid_job(empty_cluster(), np.array(runtimes), by_completion(4, pad=1), BothTasks)
    assert result.turnaround == 27  # tasks of 2 s start in two idle slots as the eighth ends at 22


def test_a_task_of_a_pilot_that_was_taken_starts_at_even_odds():
    drawn = [Pilot(0, 1, 1, None), Pilot(6, 2, 30, None), Pilot(31, 1, 14, None), Pilot(34, 1, 16, 1)]
    life = Life([30, 30, 1, 1, 1, 1, 1, 1, 1], by_completion(2), drawn)
    life.live([])
    assert ("left", 37, 2, Served(6, 6)) in life.seen


def test_a_pilot_that_ends_in_the_same_second_is_heeded_before_idle_slots_get_tasks():
    workers = msgspec.structs.replace(INSTANT_WORKERS, last=1, idle_timeout=3)
    drawn = [Pilot(0, 1, 1, None), Pilot(0, 2, 17, None), Pilot(0, 2, 35, None), Pilot(33, 1, 32, None)]
    life = Life([30, 30, 1, 1, 1, 1, 2, 36, 30], by_completion(2, pad=1, workers=workers), drawn)
    life.live([])
    assert ("left", 33, 3, Served()) in life.seen  # the task that is cut at 34 had 32 s, and needs more


def test_a_pilot_too_short_for_what_waits_leaves_before_the_next_one_takes_it():
    """The task that was cut at 1 needs 2 s: the third pilot lacks the time, the fourth has it."""
    limits = Limits(max_pending_requests=1, max_proc=1, max_tr=MAX_TR)
    terms = GridTerms(
        rules=SiteRules(limits=limits),
        heuristic="static",
        workers=msgspec.structs.replace(INSTANT_WORKERS, idle_timeout=3),
        initial_tr=1.0,
        growth_factor=2,
    )
    drawn = [Pilot(0, 1, 1, None), Pilot(0, 1, 1, None), Pilot(1, 1, 1, None), Pilot(1, 1, 2, None)]
    life = Life([1, 2], terms, drawn)
    life.live([])
    assert ("left", 1, 2, Served()) in life.seen
    assert ("left", 3, 3, Served(1, 2)) in life.seen


# --- what the kernel does not know -------------------------------------------------------------------


def test_the_kernel_refuses_donated_nodes():
    with pytest.raises(ReplayError, match="the compiled kernel knows"):
        KernelTasks(np.array([1]), terms_of(donation=DonationRules()), empty_cluster())
