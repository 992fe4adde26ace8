"""A bag on donated processors of a simulated cluster: what must hold in every run."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.situation import SiteRules
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.snapshot import Snapshot
from adaptor.donation.fitting import closes
from adaptor.donation.situation import DonationRules, Hours, NodeUse
from adaptor.model import Limits
from adaptor_simulation import grid_run
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import INSTANT_WORKERS, DonatedTime, GridResult, GridTerms, WorkerTerms
from adaptor_simulation.grid_run import run_grid_job
from tests.examples import examples
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


def donating(terms: GridTerms, rules: DonationRules, allocation: str) -> GridTerms:
    return msgspec.structs.replace(terms, donation=rules, allocation=allocation)


@given(scenes, bags, instant_terms(), rules)
@examples(200)
def test_every_local_job_starts_as_without_us(scene, runtimes, terms, rules):
    alone = cluster_of(scene)
    alone.finish()
    cluster = cluster_of(scene)
    run_grid_job(cluster, np.array(runtimes), donating(terms, rules, "transparent"))
    cluster.finish()
    assert cluster.starts().tolist() == alone.starts().tolist()


@given(scenes, bags, instant_terms(), rules, st.sampled_from(["transparent", "mixed"]))
@examples(200)
def test_books_add_up(scene, runtimes, terms, rules, allocation):
    result = run_grid_job(cluster_of(scene), np.array(runtimes), donating(terms, rules, allocation))
    donated = result.donated
    assert result.turnaround >= max(runtimes)
    assert donated.work <= sum(runtimes)
    assert donated.used <= PROCESSORS * result.turnaround
    if allocation == "transparent":
        assert not result.requests
        assert donated.work == sum(runtimes) or result.failed
    else:
        assert result.held >= sum(runtimes) - donated.work or result.failed


LIMITS = Limits(max_pending_requests=2, max_proc=PROCESSORS, max_tr=200)


def terms_of(**more) -> GridTerms:
    plain = {"rules": SiteRules(limits=LIMITS), "workers": INSTANT_WORKERS, "initial_tr": 10.0}
    return GridTerms(**{**plain, "heuristic": "adaptive", **more})


def cluster_with(rows) -> Cluster:
    cluster = cluster_of_processors(jobs_from(list(rows)), PROCESSORS, "conservative")
    cluster.advance(0)
    return cluster


def one(runtimes, rows=(), allocation="transparent", **more) -> GridResult:
    terms = donating(terms_of(), DonationRules(**more), allocation)
    return run_grid_job(cluster_with(rows), np.array(runtimes, np.int64), terms)


def test_idle_processors_work_at_once_and_yield_when_a_job_starts():
    result = one([10] * 16, [(0, 4, 100, 100), (5, 4, 50, 50)])
    # Four begin at 0, and are lost at 5; when the second job ends four are free again, later eight.
    assert result.donated == DonatedTime(work=160, lost=20, reclaims=4)
    assert result.turnaround == 55 + 10 * 4


def test_a_job_that_takes_some_leaves_the_others_alone():
    result = one([10] * 4, [(5, 6, 50, 50)])
    assert (result.donated.reclaims, result.donated.lost, result.turnaround) == (2, 10, 20)


def test_what_is_planned_soon_is_not_used():
    rows = [(0, 4, 30, 30), (0, 8, 20, 20)]  # the second waits for all, from 30 on
    assert one([5] * 4, rows, useful_time=60.0).turnaround == 55
    assert one([5] * 4, rows, useful_time=10.0).turnaround == 5


def test_a_task_without_patience_waits_for_a_request_or_for_the_end():
    rows = [(2, 8, 3, 3), (7, 8, 3, 3), (12, 8, 3, 3)]
    for allocation in ("mixed", "transparent"):
        result = one([20] * 8, rows, allocation, patience=1, useful_time=0.0)
        assert bool(result.requests) == (allocation == "mixed")
    few = one([1, 20], rows, patience=1, useful_time=0.0)
    assert few.donated.work == 21


def test_a_held_task_stays_held_when_its_request_was_too_short():
    result = one([30] + [5] * 7, [(25, 8, 3, 3)], "mixed", patience=1, useful_time=0.0)
    # It ran in vain for 25 s, so the request is for that; the next one is for twice as long.
    assert result.donated == DonatedTime(work=35, lost=25, reclaims=1)
    assert [request.tr for request in result.requests] == [25, 50]
    assert result.held == 25 + 30


@pytest.mark.parametrize(
    ("runtimes", "says"), [([], "needs a task"), ([0], "at least a second"), ([999], "fits")]
)
def test_what_could_never_end_is_refused_at_once(runtimes, says):
    with pytest.raises(ReplayError, match=says):
        one(runtimes)


def test_workers_that_are_not_instant_are_refused():
    workers = WorkerTerms(last=5, idle_timeout=0, latency=0.0, reserve=0.0)
    terms = donating(
        terms_of(workers=workers, rules=SiteRules(limits=LIMITS, pad=5.0)), DonationRules(), "mixed"
    )
    with pytest.raises(ReplayError, match="instant"):
        run_grid_job(cluster_with([]), np.array([1]), donating(terms, DonationRules(), "mixed"))


def test_a_held_task_is_released_whose_request_starts_late():
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
    result = one([91, 186, 140, 101], rows, "mixed", useful_time=0.0, fit=0.1, patience=1)
    assert (result.turnaround, result.donated.work) == (459, 186)


def test_a_task_cut_though_it_had_all_the_time_there_is_is_given_up():
    """As in the daemon (`RuntimeLearner.hopeless`): 195 of 200 s were not enough."""
    result = one([198], [(0, 8, 5, 5), (200, 8, 10, 10)], useful_time=0.0)
    assert (result.failed, result.turnaround) == (1, 200)


# --- rules that say which nodes may be used ----------------------------------------------------------

HOURS = (Hours(600.0, 1200.0),)


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
@examples(100)
def test_max_nodes_reserve_and_hours_hold_at_every_instant(rows, runtimes, rules, allocation):
    def watching(snapshot: Snapshot) -> Decision:
        """What was decided before has been done by now."""
        donation = snapshot.here.donation
        assert donation is not None
        used = sum(not pilot.leaving for pilot in snapshot.here.donated)
        idle = sum(node.use is NodeUse.IDLE and node.donated is None for node in donation.nodes or ())
        decision = decide(snapshot)
        uses = sum(bool(submit.node) for submit in decision.submits)
        assert rules.max_nodes is None or used <= rules.max_nodes
        assert not uses or idle - uses >= rules.reserve_nodes
        assert not uses or closes(rules.hours, snapshot.now, 0.0) > snapshot.now
        return decision

    terms = donating(terms_of(), rules, allocation)
    result = run_grid_job(cluster_with(rows), np.array(runtimes), terms, decider=watching)
    assert result.donated.work <= sum(runtimes)


def test_nodes_beyond_the_rules_are_not_used():
    assert one([10] * 6, max_nodes=2).turnaround == 30
    assert one([10] * 6, reserve_nodes=6).turnaround == 30
    assert one([10] * 8, hours=HOURS, useful_time=0.0).turnaround == 610


def test_the_reserve_is_given_back_when_a_job_takes_other_nodes():
    result = one([10] * 4, [(5, 4, 30, 30)], reserve_nodes=4)
    assert result.donated.lost == 20, (
        "four processors are idle after the job has started, and all are in reserve"
    )


def test_rules_that_leave_no_node_are_refused_at_last(monkeypatch):
    monkeypatch.setattr(grid_run, "_NO_HOPE", 86400)
    with pytest.raises(ReplayError, match="leave no node"):
        one([5], reserve_nodes=PROCESSORS)
