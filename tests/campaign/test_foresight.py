"""What is tried beside a decision, and that the best of it by the true future is found."""

from __future__ import annotations

import numpy as np
import pytest

from adaptor.crafting.situation import PlanningView, SiteRules
from adaptor.model import Limits, QueueState
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor.simulation.jobs import Jobs
from tests.campaign.foresight import alternatives, with_foresight

TERMS = GridTerms(
    rules=SiteRules(limits=Limits(max_pending_requests=1, max_proc=8, max_tr=36_000)),
    heuristic="rollout",
    workers=INSTANT_WORKERS,
    initial_tr=60.0,
)


def cluster(*jobs: tuple[int, int, int, int]) -> Simulation:
    """Of 8 processors, with jobs of (submit, run, limit, processors), a second after the first came."""
    submit, run, estimate, processors = np.array(jobs, np.int64).T
    whole = Jobs(
        number=np.arange(1, len(jobs) + 1), submit=submit, run=run, estimate=estimate, processors=processors
    )
    base = Simulation(whole, 8, "conservative")
    base.advance(1)
    return base


def test_who_knows_that_a_job_ends_soon_waits_for_its_processors() -> None:
    """By its limit it runs for ten hours, so that rollout takes the two that are free."""
    base = cluster((0, 100, 36_000, 6))
    plain, foreseen = with_foresight(base, np.full(8, 3000, np.int64), TERMS)
    assert foreseen == pytest.approx(3100, abs=100)
    assert plain > foreseen


def test_on_a_free_machine_there_is_nothing_to_foresee() -> None:
    assert with_foresight(cluster((0, 1, 10, 8)), np.full(8, 3000, np.int64), TERMS) == (3000, 3000)


def test_when_all_is_done_nothing_else_is_tried() -> None:
    queue = QueueState(now=0.0, processors=8, running=(), pending=())
    view = PlanningView(now=0.0, queue=queue, rules=TERMS.rules, heuristic="rollout", pilots=(), demands=())
    assert not list(alternatives(view, []))
