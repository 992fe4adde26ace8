"""A bag on donated processors of a simulated cluster: what must hold in every run."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptor.crafting.situation import SiteRules
from adaptor.donation.hours import closes
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import DonationRules, Hours
from adaptor.model import Limits
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation import driver
from adaptor.simulation.donation.driver import run_donation
from adaptor.simulation.donation.processors import OWNER, USED, Processors
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.grid_job import INSTANT_WORKERS, GridTerms, WorkerTerms
from adaptor.simulation.tasks.broker_tasks import BrokerTasks
from tests.simulation.grid_strategies import bags, cluster_of, scenes, terms
from tests.simulation.trace_strategies import PROCESSORS, jobs_from

rules = st.builds(
    DonationRules,
    useful_time=st.sampled_from([0.0, 5.0, 600.0]),
    fit=st.sampled_from([0.1, 0.5, 0.9]),
    last_fit=st.sampled_from([0.01, 0.1]),
    patience=st.integers(1, 3),
)


def instant_terms() -> st.SearchStrategy[GridTerms]:
    return terms().map(lambda terms: msgspec.structs.replace(terms, workers=INSTANT_WORKERS))


def jobs(longest: int) -> st.SearchStrategy[tuple[int, int, int, int]]:
    """Local jobs: submit, processors, estimate, run."""
    times = st.tuples(st.integers(1, longest), st.integers(1, longest)).map(sorted)
    return st.tuples(st.integers(0, 3000), st.integers(1, PROCESSORS), times).map(
        lambda job: (job[0], job[1], job[2][1], job[2][0])
    )


def place_of(scene) -> Processors[Simulation]:
    return Processors(cluster_of(scene), IdleLearner())


@given(scenes, bags, instant_terms(), rules)
@settings(max_examples=200)
def test_every_local_job_starts_as_without_us(scene, runtimes, terms, rules):
    alone = cluster_of(scene)
    alone.finish()
    place = place_of(scene)
    run_donation(place, np.array(runtimes), terms, rules, "transparent")
    place.cluster.finish()
    assert place.cluster.starts().tolist() == alone.starts().tolist()


@given(scenes, bags, instant_terms(), rules, st.sampled_from(["transparent", "mixed"]))
@settings(max_examples=200)
def test_books_add_up(scene, runtimes, terms, rules, allocation):
    place = place_of(scene)
    result = run_donation(place, np.array(runtimes), terms, rules, allocation)
    assert result.turnaround >= max(runtimes)
    assert result.donated + result.lost <= result.used
    assert result.donated <= sum(runtimes)
    assert result.used <= PROCESSORS * result.turnaround
    if allocation == "transparent":
        assert (result.held, result.requests) == (0, 0)
        assert result.donated == sum(runtimes) or result.failed
    else:
        assert result.held >= sum(runtimes) - result.donated or result.failed


@given(scenes)
@settings(max_examples=200)
def test_processors_are_those_that_the_cluster_counts(scene):
    jobs, policy, _ = scene
    cluster = Simulation(jobs, PROCESSORS, policy)
    place = Processors(cluster, IdleLearner())
    while (coming := cluster.next_event()) is not None:
        cluster.advance(coming)
        place.watch()
        owners = place.lot[OWNER]
        running = {job: cluster.started_job(job)[2] for job in cluster.running_rows()[:, 1].tolist()}
        assert {job: int((owners == job).sum()) for job in {*owners[owners >= 0].tolist()}} == running
    place.tell()
    seen = sum(place.learner.idleness.seconds)
    assert seen == pytest.approx(PROCESSORS * cluster.now - int((jobs.run * jobs.processors).sum()), abs=1e-3)


def terms_of(**more) -> GridTerms:
    limits = Limits(max_pending_requests=2, max_proc=PROCESSORS, max_tr=200)
    plain = {"rules": SiteRules(limits=limits), "workers": INSTANT_WORKERS, "initial_tr": 10.0}
    return GridTerms(**{**plain, "heuristic": "adaptive", **more})


def one(runtimes, rows=(), allocation="transparent", **more):
    place = Processors(Simulation(jobs_from(list(rows)), PROCESSORS, "conservative"), IdleLearner())
    place.cluster.advance(0)
    place.watch()
    runtimes = np.array(runtimes, np.int64)
    return run_donation(place, runtimes, terms_of(), DonationRules(**more), allocation)


def test_idle_processors_work_at_once_and_yield_when_a_job_starts():
    result = one([10] * 16, [(0, 4, 100, 100), (5, 4, 50, 50)])
    # Four begin at 0, and are lost at 5; when the second job ends four are free again, later eight.
    assert (result.reclaims, result.lost, result.donated) == (4, 20, 160)
    assert result.turnaround == 55 + 10 * 4


def test_a_job_that_takes_some_leaves_the_others_alone():
    result = one([10] * 4, [(5, 6, 50, 50)])
    assert (result.reclaims, result.lost, result.turnaround) == (2, 10, 20)


def test_what_is_planned_soon_is_not_used():
    rows = [(0, 4, 30, 30), (0, 8, 20, 20)]  # the second waits for all, from 30 on
    assert one([5] * 4, rows, useful_time=60.0).turnaround == 55
    assert one([5] * 4, rows, useful_time=10.0).turnaround == 5


def test_a_task_without_patience_waits_for_a_request_or_for_the_end():
    rows = [(2, 8, 3, 3), (7, 8, 3, 3), (12, 8, 3, 3)]
    for allocation in ("mixed", "transparent"):
        result = one([20] * 8, rows, allocation, patience=1, useful_time=0.0)
        assert (result.requests > 0) == (allocation == "mixed")
    few = one([1, 20], rows, patience=1, useful_time=0.0)
    assert few.donated == 21


def test_a_held_task_stays_held_when_its_request_was_too_short():
    result = one([30] + [5] * 7, [(25, 8, 3, 3)], "mixed", patience=1, useful_time=0.0)
    # It ran in vain for 25 s, so the request is for that; the next one is for twice as long.
    assert (result.reclaims, result.lost, result.requests) == (1, 25, 2)
    assert (result.donated, result.held) == (35, 25 + 30)


@pytest.mark.parametrize(
    ("runtimes", "says"), [([], "needs a task"), ([0], "at least a second"), ([999], "fits")]
)
def test_what_could_never_end_is_refused_at_once(runtimes, says):
    with pytest.raises(ReplayError, match=says):
        one(runtimes)


def test_workers_that_are_not_instant_are_refused():
    terms = terms_of(workers=WorkerTerms(last=5, idle_timeout=0, latency=0.0, reserve=0.0))
    place = Processors(Simulation(jobs_from([]), PROCESSORS, "conservative"), IdleLearner())
    with pytest.raises(ReplayError, match="instant"):
        run_donation(place, np.array([1]), terms, DonationRules(), "mixed")


# --- rules that the kernel does not know -------------------------------------------------------------

HOURS = (Hours(600.0, 1200.0),)


def watched(place: Processors[Simulation], rules: DonationRules):
    """The tasks of the broker; after each step of the donation, its rules hold."""

    class Watched(BrokerTasks):
        def ahead(self, until: int) -> int:
            lot, now = place.lot, float(place.cluster.now)
            idle = int(((lot[OWNER] < 0) & (lot[USED] < 0)).sum())
            assert rules.max_nodes is None or len(place.used) <= rules.max_nodes
            assert not len(place.used) or idle >= rules.reserve_nodes
            assert not len(place.used) or closes(rules.hours, now, 0.0) > now
            return super().ahead(until)

    return Watched


any_rules = st.builds(
    DonationRules,
    choose=st.sampled_from(["likely", "all"]),
    max_nodes=st.none() | st.integers(1, 8),
    reserve_nodes=st.integers(0, 7),
    hours=st.sampled_from([(), HOURS]),
    useful_time=st.sampled_from([0.0, 60.0]),
)


@given(
    st.lists(jobs(200), max_size=20),
    st.lists(st.integers(1, 199), min_size=1, max_size=20),
    any_rules,
    st.sampled_from(["transparent", "mixed"]),
)
@settings(max_examples=100)
def test_max_nodes_reserve_and_hours_hold_at_every_instant(rows, runtimes, rules, allocation):
    place = Processors(Simulation(jobs_from(rows), PROCESSORS, "conservative"), IdleLearner())
    place.cluster.advance(0)
    place.watch()
    tasks = watched(place, rules)
    result = run_donation(place, np.array(runtimes), terms_of(), rules, allocation, tasks)
    assert result.donated <= sum(runtimes)
    assert result.donated + result.lost <= result.used


def test_rules_that_the_kernels_do_not_know_are_the_cores():
    assert one([10] * 6, max_nodes=2).turnaround == 30
    assert one([10] * 6, reserve_nodes=6).turnaround == 30
    assert one([10] * 8, hours=HOURS, useful_time=0.0).turnaround == 610


def test_the_reserve_is_given_back_when_a_job_takes_other_nodes():
    result = one([10] * 4, [(5, 4, 30, 30)], reserve_nodes=4)
    assert result.lost == 20, "four processors are idle after the job has started, and all are in reserve"


def test_rules_that_leave_no_node_are_refused_at_last(monkeypatch):
    monkeypatch.setattr(driver, "_NO_HOPE", 86400)
    with pytest.raises(ReplayError, match="leave no node"):
        one([5], reserve_nodes=PROCESSORS)
