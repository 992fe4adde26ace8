"""What is tried beside a decision, and that the best of it by the true future is found."""

from __future__ import annotations

import numpy as np
import pytest

from adaptor.crafting.situation import Demand, SiteRules, SiteState
from adaptor.model import Limits, QueueState
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from lab.campaign.foresight import alternatives, with_foresight
from tests.simulation.trace_strategies import jobs_from

TERMS = GridTerms(
    rules=SiteRules(limits=Limits(max_pending_requests=1, max_proc=8, max_tr=36_000)),
    heuristic="completion",
    workers=INSTANT_WORKERS,
    initial_tr=60.0,
)


def with_job(processors: int, limit: int, run: int) -> Cluster:
    """Of 8 processors, a second after this job has started."""
    base = cluster_of_processors(jobs_from([(0, processors, limit, run)]), 8, "conservative")
    base.advance(1)
    return base


def test_who_knows_that_a_job_ends_soon_waits_for_its_processors() -> None:
    """By its limit it runs for ten hours, so that completion takes the two that are free."""
    base = with_job(processors=6, limit=36_000, run=100)
    plain, foreseen = with_foresight(base, np.full(8, 3000, np.int64), TERMS)
    assert foreseen == pytest.approx(3100, abs=100)
    assert plain > foreseen


def test_on_a_free_machine_there_is_nothing_to_foresee() -> None:
    assert with_foresight(with_job(processors=8, limit=10, run=1), np.full(8, 3000, np.int64), TERMS) == (
        3000,
        3000,
    )


@pytest.mark.parametrize(
    ("seen", "demands"),
    [(True, ()), (False, (Demand(runtime=60.0, running=1),))],
    ids=["all is done", "no task waits, so that the queue is not read"],
)
def test_where_no_request_can_be_of_use_nothing_else_is_tried(
    seen: bool, demands: tuple[Demand, ...]
) -> None:
    queue = QueueState(now=0.0, processors=8, running=(), pending=()) if seen else None
    view = SiteState(
        now=0.0, queue=queue, rules=TERMS.rules, heuristic="completion", requests=(), demands=demands
    )
    assert not list(alternatives(view, []))
