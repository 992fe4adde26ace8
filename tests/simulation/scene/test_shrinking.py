"""Requests that a simulated scheduler starts with what the slot holds: the site, both drivers, replay."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.schema import Duration, SiteConfig
from adaptor.crafting.situation import SiteRules, SubmitRequest
from adaptor.decisions.site_settings import SiteSettings
from adaptor.model import Limits, Request
from adaptor.reports import JobReport, JobState
from adaptor.resources import TaskSize
from adaptor_simulation.cluster import cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.machine import Machine, parse_machine
from adaptor_simulation.pilot_requests import queue_state
from adaptor_simulation.scene.site import ScenePlace, SimulatedSite
from tests.examples import examples
from tests.simulation.grid_strategies import bags, cluster_of, scenes
from tests.simulation.grid_strategies import terms as grid_terms
from tests.simulation.scene.scenes import Scene, SceneBag, spec
from tests.simulation.scene.test_same_scene import assert_same
from tests.simulation.trace_strategies import jobs_from

RULES = SiteRules(
    limits=Limits(max_pending_requests=3, max_proc=8, max_tr=3600), slot_margin=100, shrink_margin=0
)


def site_with_a_hole(
    rules: SiteRules = RULES, machine: Machine | None = None, ran: int = 600
) -> SimulatedSite:
    """At 100 s half of 8 processors is free until 600 s, when a job on all of them is planned."""
    jobs = jobs_from([(0, 4, 600, ran), (1, 8, 900, 900)])
    place = ScenePlace(
        settings=SiteSettings(name="here", rules=rules, heuristic="completion"),
        jobs=jobs,
        processors=8,
        machine=machine,
        chunk=4,
    )
    site = SimulatedSite(place)
    site.advance(100)
    return site


def submit(site: SimulatedSite, pilot: int, request: Request) -> str:
    """The job's id, after the scheduler has looked at it."""
    id = site.submit(pilot, f"tag{pilot}", request, "", TaskSize())
    site.advance(site.now)
    return id


def report(site: SimulatedSite, id: str) -> JobReport:
    return next(each for each in site.jobs() if each.id == id)


@pytest.mark.parametrize("machine", [None, parse_machine("2x4")])
def test_a_request_gets_the_hole_and_delays_nobody(machine: Machine | None) -> None:
    site = site_with_a_hole(machine=machine)
    id = site.submit(1, "tag1", Request(4, 3600, 120), "", TaskSize())
    (change,) = site.changes()
    assert (change.at, change.request) == (100, Request(4, 500, 120))
    assert (report(site, id).state, report(site, id).granted) == (JobState.RUNNING, 500.0)
    (planned,) = site.queue_state().pending
    assert planned.planned_start == 600
    site.advance(600)
    assert report(site, id).state is JobState.WALLTIME


def test_a_least_time_beyond_the_hole_waits_and_a_job_that_ends_early_starts_it() -> None:
    site = site_with_a_hole(ran=300)
    long, wide = submit(site, 1, Request(4, 3600, 501)), submit(site, 2, Request(5, 3600, 60))
    assert {report(site, id).state for id in (long, wide)} == {JobState.QUEUED}
    site.advance(299)
    assert {report(site, id).state for id in (long, wide)} == {JobState.QUEUED}
    # At 300 s the job on all processors starts, and what is planned behind it does not end.
    site.advance(1300)
    assert report(site, long).start == 1200
    assert report(site, long).granted == 3600


def test_a_start_in_between_leaves_less() -> None:
    site = site_with_a_hole()
    first = submit(site, 1, Request(3, 400, 60))
    assert report(site, first).granted == 400
    second, third = submit(site, 2, Request(4, 3600, 60)), submit(site, 3, Request(1, 3600, 60))
    assert report(site, second).state is JobState.QUEUED
    assert report(site, third).granted == 500
    site.advance(500)
    assert report(site, first).state is JobState.WALLTIME
    assert report(site, second).state is JobState.QUEUED, "3 of its 4 processors are free"
    fourth = submit(site, 4, Request(3, 3600, 60))
    assert report(site, fourth).granted == 100, "what is left until 600 s"


def test_a_queued_request_that_is_changed_into_one_that_may_shrink_starts() -> None:
    site = site_with_a_hole()
    id = submit(site, 1, Request(4, 3600))
    assert report(site, id).state is JobState.QUEUED
    assert site.reshape(id, Request(4, 3600, 60), TaskSize())
    (change,) = site.changes()
    assert change.request.tr == report(site, id).granted == 500
    assert not site.reshape(id, Request(4, 3600, 100), TaskSize()), "it has started"


def test_where_the_scheduler_does_not_do_that_the_request_waits() -> None:
    site = site_with_a_hole(msgspec.structs.replace(RULES, shrink_margin=None))
    assert report(site, submit(site, 1, Request(4, 3600, 60))).state is JobState.QUEUED


def test_the_simulation_and_the_daemon_take_in_the_same_times(tmp_path: Path) -> None:
    """Half of the site is free until a job on all of it starts; the job beside it ends early."""
    here = SiteConfig(backend="local", initial_tr=Duration(60), pad=Duration(10))
    scene = Scene(
        sites={"here": (here, 8, [(0, 4, 900, 700), (0, 8, 600, 600), (5, 2, 300, 300)])},
        bags=(SceneBag(spec=spec(), tasks=120, seconds=40),),
        slot_margin=30,
        shrink_margin=0,
    )
    played = assert_same(scene, tmp_path / "state")
    asked = [each.action for each in played.decided if isinstance(each.action, SubmitRequest)]
    assert any(action.crafted.request.least is not None for action in asked)


@pytest.mark.parametrize(("shrink_margin", "tr"), [(None, 400), (0, 500)])
def test_replay_tells_what_the_margin_costs(shrink_margin: int | None, tr: int) -> None:
    """Tasks of 50 s in the hole of 500 s."""
    jobs = jobs_from([(0, 4, 600, 600), (1, 8, 900, 900)])
    cluster = cluster_of_processors(jobs, 8, "conservative")
    cluster.advance(100)
    rules = msgspec.structs.replace(RULES, shrink_margin=shrink_margin)
    terms = GridTerms(rules=rules, heuristic="adaptive", workers=INSTANT_WORKERS, initial_tr=50.0)
    result = run_grid_job(cluster, np.full(400, 50), terms)
    assert (result.requests[0].started, result.requests[0].tr) == (100, tr)
    assert result.requests[0].tasks == 4 * (tr // 50)


@given(scenes, bags, grid_terms(), st.integers(0, 4), st.integers(0, 4))
@examples(20)
def test_with_requests_that_may_shrink_all_tasks_end_and_no_local_job_is_delayed(
    scene, runtimes, terms, margin, least
):
    scene = (scene[0], "conservative", scene[2])
    cluster = cluster_of(scene)
    promised = {int(job.id): job.planned_start for job in queue_state(cluster).pending}
    rules = msgspec.structs.replace(terms.rules, slot_margin=margin, shrink_margin=min(margin, least))
    result = run_grid_job(cluster, np.array(runtimes), msgspec.structs.replace(terms, rules=rules))
    assert sum(request.tasks for request in result.requests) == len(runtimes) - result.failed
    for request in result.requests:
        if request.started is not None:
            assert request.ended <= request.started + request.tr
    cluster.finish()
    starts = cluster.starts()
    for job, start in promised.items():
        assert starts[job] <= start
