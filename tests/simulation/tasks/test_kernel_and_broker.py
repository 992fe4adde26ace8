"""The compiled kernel does what the broker does: the same bag, pilots and ends, after each call."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.situation import SiteRules
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import DonationRules, Hours
from adaptor.model import Limits
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms, WorkerTerms
from adaptor_simulation.grid_run import Watched, run_grid_job
from adaptor_simulation.kernels import NEVER
from adaptor_simulation.places import Places
from adaptor_simulation.tasks.kernel_tasks import KernelTasks
from adaptor_simulation.tasks.protocol import SITE, Served
from tests.examples import examples
from tests.simulation.grid_strategies import MAX_TR, bags, cluster_of, scenes, terms
from tests.simulation.tasks.both_tasks import BothTasks
from tests.simulation.test_donated_processors import cluster_with, donating, instant_terms, jobs, terms_of
from tests.simulation.trace_strategies import PROCESSORS, jobs_from

pytestmark = pytest.mark.compiles

allocations = st.sampled_from(["transparent", "mixed"])
rules = st.builds(
    DonationRules,
    choose=st.sampled_from(["likely", "likely", "likely", "all"]),
    useful_time=st.sampled_from([0.0, 5.0, 600.0]),
    fit=st.sampled_from([0.1, 0.5, 0.9]),
    last_fit=st.sampled_from([0.01, 0.1, 0.9]),
    patience=st.integers(1, 3),
)


@st.composite
def learners(draw: st.DrawFn) -> IdleLearner:
    """What was seen of idle periods before: nothing, or many that were about as short as the tasks."""
    learner = IdleLearner()
    for length in draw(st.lists(st.integers(1, 100), max_size=5)):
        learner.saw(0.0, float(length), taken=draw(st.booleans()), nodes=draw(st.integers(1, 200)))
    return learner


plain_terms = instant_terms().filter(lambda terms: not terms.traits.even_odds)


# --- pilots that come and go as they like ----------------------------------------------------------


class Pilot(msgspec.Struct, frozen=True):
    """One of a random site: it starts, and the scheduler may end it before its time."""

    start: int
    processors: int
    tr: int
    taken: int | None
    idle: int | None = None
    """Of a donated node: for how long it has been idle; None: a formal request."""
    planned: tuple[int, int] = (NEVER, NEVER)
    """Of a donated node: seconds until a job is planned there, as known first and later."""


def pilots(donated: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[Pilot]]:
    planned = st.just(NEVER) | st.integers(1, 2 * MAX_TR)
    return st.lists(
        st.builds(
            Pilot,
            st.integers(0, 60),
            st.integers(1, PROCESSORS),
            st.integers(1, MAX_TR) | st.integers(MAX_TR - 4, MAX_TR),
            st.none() | st.integers(1, MAX_TR),
            donated,
            st.tuples(planned, planned),
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

    def live(self, steps: list[int], expected: dict[int, int] | None = None) -> None:
        expected = expected or {}
        for step in sorted(
            {*steps, *expected, 0, 110, *(at for pilot in self._drawn for at in moments(pilot))}
        ):
            while self._now < step:
                self._now = min(step, self.tasks.ahead(NEVER))
                self.tasks.settle(self._now)
                self._leave()
            for id in [
                id for id, pilot in self._here.items() if ends(pilot) <= step and pilot.taken is not None
            ]:
                self._gone("taken", id, self.tasks.end_pilot(id, step))
            if step in expected:
                self.tasks.expect_requests(SITE, {None: float(step + expected[step])})
            self._know(later=True)
            for id, pilot in enumerate(self._drawn):
                if pilot.start == step:
                    self._add(id, pilot)
            self._leave()

    def _add(self, id: int, pilot: Pilot) -> None:
        processors = min(pilot.processors, self._widest) if pilot.idle is None else 1
        self._here[id] = pilot
        self._know(later=False)
        self.tasks.add_pilot(id, processors, self._now, self._now + pilot.tr)

    def _know(self, *, later: bool) -> None:
        for id, pilot in self._here.items():
            if pilot.idle is not None:
                planned = pilot.planned[later]
                until = math.inf if planned == NEVER else float(pilot.start + planned)
                self.tasks.use_node(id, DonatedNode(since=float(pilot.start - pilot.idle), until=until))

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


@given(bags, terms(), pilots(st.none()), st.lists(st.integers(0, 110)))
@examples(400)
def test_pilots_come_and_go_as_they_like(runtimes, terms, drawn, steps):
    Life(runtimes, terms, drawn).live(steps)


@given(
    bags,
    plain_terms,
    rules,
    allocations,
    learners(),
    pilots(st.none() | st.integers(0, 300)),
    st.lists(st.integers(0, 110)),
    st.dictionaries(st.integers(0, 110), st.integers(1, 200), max_size=3),
)
@examples(400)
def test_donated_nodes_come_and_go_as_they_like(
    runtimes, terms, rules, allocation, learner, drawn, steps, expected
):
    terms = msgspec.structs.replace(terms, donation=rules, allocation=allocation)
    if allocation == "transparent":
        drawn = [pilot for pilot in drawn if pilot.idle is not None]
    life = Life(runtimes, terms, drawn)
    life.tasks.learn_hazard(SITE, learner.hazard)
    life.live(steps, expected)


# --- whole runs ------------------------------------------------------------------------------------


@given(scenes, bags, terms())
@examples(400)
def test_a_grid_job_goes_the_same_way(scene, runtimes, terms):
    run_grid_job(cluster_of(scene), np.array(runtimes), terms, BothTasks)


@given(scenes, bags, plain_terms, rules, learners(), allocations)
@examples(300)
def test_a_bag_on_donated_nodes_goes_the_same_way(scene, runtimes, terms, rules, learner, allocation):
    run_both(cluster_of(scene), runtimes, donating(terms, rules, allocation), learner)


@given(
    st.lists(jobs(900), max_size=25) | st.lists(jobs(60), min_size=20, max_size=60),
    st.lists(st.integers(1, 199), min_size=1, max_size=30)
    | st.lists(st.integers(50, 199), max_size=6, min_size=1),
    rules,
    learners(),
    allocations,
)
@examples(300)
def test_tasks_are_cut_and_preempted_often(rows, runtimes, rules, learner, allocation):
    run_on(rows, runtimes, rules, allocation, learner)


def run_on(rows, runtimes, rules, allocation="transparent", learner=None):
    return run_both(cluster_with(rows), runtimes, donating(terms_of(), rules, allocation), learner)


def run_both(cluster, runtimes, terms, learner=None):
    seen = SeenNodes(None if learner is None else learner.idleness)
    watched = Watched(Places(cluster), seen)
    return run_grid_job(cluster, np.array(runtimes), terms, BothTasks, watched=watched)


# --- scenes found by search: random ones seldom show these rules -----------------------------------

_HELD_WHILE_OTHERS_WAIT = [
    (230, 6, 102, 96),
    (198, 6, 110, 19),
    (167, 7, 139, 138),
    (305, 8, 112, 112),
    (161, 8, 143, 143),
    (176, 8, 53, 15),
    (36, 6, 108, 36),
    (44, 6, 44, 23),
]
_PLANNED_SOONER_THAN_BEFORE = [(53, 7, 141, 141), (4, 6, 99, 72), (322, 8, 100, 100)]


@pytest.mark.parametrize(
    ("rows", "runtimes", "rules"),
    [
        pytest.param(
            _HELD_WHILE_OTHERS_WAIT,
            [181, 183, 159, 67],
            DonationRules(useful_time=0.0, last_fit=0.01, patience=2),
            id="a held task is started while others wait that do not fit",
        ),
        pytest.param(
            _PLANNED_SOONER_THAN_BEFORE,
            [75, 58, 175],
            DonationRules(useful_time=0.0, last_fit=0.5, patience=1),
            id="a job is planned before the end of the pilot that uses the node",
        ),
    ],
)
def test_rules_that_few_scenes_tell(rows, runtimes, rules):
    run_on(rows, runtimes, rules)


def test_both_release_a_held_task_whose_request_starts_late():
    """505 s where held tasks wait for their requests whenever those start."""
    rows = [
        (226, 3, 143, 92),
        (124, 3, 145, 55),
        (35, 6, 262, 154),
        (297, 3, 162, 76),
        (358, 6, 196, 52),
        (310, 5, 97, 88),
        (81, 6, 181, 3),
        (63, 5, 254, 127),
        (167, 1, 218, 165),
    ]
    result = run_on(rows, [91, 186, 140, 101], DonationRules(useful_time=0.0, fit=0.1, patience=1), "mixed")
    assert (result.turnaround, result.donated.work) == (459, 186)


def test_a_task_cut_though_it_had_all_the_time_there_is_is_given_up_by_both():
    """As in the daemon (`RuntimeLearner.hopeless`): 195 of 200 s were not enough."""
    result = run_on([(0, 8, 5, 5), (200, 8, 10, 10)], [198], DonationRules(useful_time=0.0))
    assert (result.failed, result.turnaround) == (1, 200)


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


@pytest.mark.parametrize("more", [{"max_nodes": 3}, {"reserve_nodes": 1}, {"hours": (Hours(0, 3600),)}])
def test_the_kernel_refuses_rules_that_it_does_not_know(more):
    with pytest.raises(ReplayError, match="the compiled kernel knows"):
        KernelTasks(np.array([1]), terms_of(donation=DonationRules(**more)), empty_cluster())


@pytest.mark.parametrize("more", [{"initial_tr": 10.5}, {"initial_tr": 0.5}, {"heuristic": "completion"}])
def test_the_kernel_refuses_parts_of_seconds_and_even_odds_on_donated_nodes(more):
    with pytest.raises(ReplayError, match="the compiled kernel knows"):
        KernelTasks(np.array([1]), terms_of(donation=DonationRules(), **more), empty_cluster())
