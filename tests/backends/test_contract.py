"""What every backend owes the daemon: the same tests on every batch scheduler that is here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from adaptor.config.schema import SiteConfig, SshConfig
from adaptor.donation.situation import NodeUse
from adaptor.model import Request
from adaptor.reports import JobReport, JobState, OwnJob
from adaptor_gridengine.backend import GridEngineBackend
from backends.base import Backend, ChangeRefused, PilotOrder, SchedulerError, SubmitRefused
from backends.local.backend import LocalBackend
from backends.machines.distant import Distant
from backends.pbs.backend import PbsBackend
from backends.slurm.backend import SlurmBackend
from tests.backends.expiring import expired
from tests.backends.orders import runnable
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.sshd import ThrowawaySshd
from tests.living import until

PATIENT = 'trap \'echo told > "$ADAPTOR_DIRECTORY/told"; exit 0\' TERM; echo up > "$ADAPTOR_DIRECTORY/up"; '
WAIT = PATIENT + "sleep 300 & wait $!; sleep 1"
"""A worker that waits until it is told to leave; its first `sleep` may be told before it is itself."""


class Site:
    """A backend with so many processors, and orders for it."""

    def __init__(self, backend: Backend, processors: int, folder: Path) -> None:
        self.backend = backend
        self.processors = processors
        self._folder = folder
        self._submitted: list[OwnJob] = []

    def order(self, tag: str, command: str, p: int = 1, tr: int = 120) -> PilotOrder:
        return runnable(self._folder, tag, command, p, tr)

    def submit(self, tag: str, command: str, p: int = 1, tr: int = 120) -> str:
        id = self.backend.submit(self.order(tag, command, p, tr))
        self.note(id, tag)
        return id

    def note(self, id: str, tag: str) -> None:
        """A job that is to be ended after the test."""
        self._submitted.append(OwnJob(id, tag))

    def cancel(self, *ids: str) -> None:
        self.backend.cancel([job for job in self._submitted if job.id in ids])

    def path(self, tag: str, name: str) -> Path:
        return self._folder / tag / name

    def report(self, id: str) -> JobReport:
        """Asked of all together, as the daemon asks."""
        reports = self.backend.jobs({id, *(job.id for job in self._submitted)}, "no such tag")
        (found,) = (report for report in reports if report.id == id)
        return found

    def reaches(self, id: str, state: JobState) -> JobReport:
        until(
            lambda: self.report(id).state is state,
            lambda: f"job {id} being {state.value}: {self.report(id)}",
        )
        return self.report(id)

    def is_up(self, tag: str) -> None:
        until(self.path(tag, "up").exists, f"the worker of {tag}")

    def close(self) -> None:
        self.backend.cancel(self._submitted)
        until(lambda: all(self._has_ended(job.id) for job in self._submitted), "the end of all jobs")

    def _has_ended(self, id: str) -> bool:
        found = self.backend.jobs([id], "no such tag")
        return all(job.state.ended or job.state is JobState.GONE for job in found)


def local_site(folder: Path) -> Site:
    config = SiteConfig(backend="local", processors=4)
    return Site(LocalBackend(config, folder / "site", kill_wait=60.0), 4, folder)


def slurm_site(folder: Path) -> Site:
    return Site(SlurmBackend(SiteConfig(backend="slurm")), 16, folder)


def openpbs_site(folder: Path) -> Site:
    backend = PbsBackend(SiteConfig(backend="pbs"))
    return Site(backend, backend.queue_state().processors, folder)


@contextmanager
def slurm_site_over_ssh(folder: Path, slurm: ThrowawaySlurm, sshd: ThrowawaySshd) -> Iterator[Site]:
    machine = Distant(msgspec.convert(sshd.site(), SshConfig), slurm.env, 20, sys.executable)
    yield Site(SlurmBackend(SiteConfig(backend="slurm"), machine), 16, folder)
    machine.close()


def gridengine_site(folder: Path) -> Site:
    backend = GridEngineBackend(SiteConfig(backend="gridengine"))
    return Site(backend, backend.queue_state().processors, folder)


MAKERS = {
    "local": local_site,
    "slurm": slurm_site,
    "openpbs": openpbs_site,
    "gridengine": gridengine_site,
}


@pytest.fixture(
    params=[
        "local",
        pytest.param("slurm", marks=pytest.mark.slurm),
        pytest.param("openpbs", marks=pytest.mark.pbs),
        pytest.param("gridengine", marks=pytest.mark.gridengine),
        pytest.param("slurm over ssh", marks=[pytest.mark.slurm, pytest.mark.ssh]),
    ]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """The site of one backend; nothing of its jobs is left after the test."""
    if request.param == "slurm over ssh":
        slurm, sshd = request.getfixturevalue("slurm"), request.getfixturevalue("sshd")
        with slurm_site_over_ssh(tmp_path, slurm, sshd) as made:
            yield made
            made.close()
        return
    if request.param != "local":
        request.getfixturevalue(request.param)
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()


def test_a_job_is_found_by_its_tag_and_runs(site: Site) -> None:
    prefix = f"mine-{uuid4().hex[:8]}."  # a scheduler remembers the jobs of other tests for a while
    id = site.submit(f"{prefix}1", WAIT)
    (found,) = site.backend.jobs([], prefix)
    assert (found.id, found.tag) == (id, f"{prefix}1")
    running = site.reaches(id, JobState.RUNNING)
    assert running.start is not None
    assert running.end is None
    assert running.nodes


def test_a_worker_that_leaves_by_itself_completes_its_job(site: Site) -> None:
    report = site.reaches(site.submit("mine-1", "exit 0"), JobState.COMPLETED)
    assert report.start is not None
    assert report.end is not None
    assert report.start <= report.end


def test_a_worker_that_fails_fails_its_job(site: Site) -> None:
    site.reaches(site.submit("mine-1", "exit 3"), JobState.FAILED)


def test_the_worker_is_told_its_share_and_its_end(site: Site) -> None:
    id = site.submit("mine-1", 'env > "$ADAPTOR_DIRECTORY/env"', p=3)
    report = site.reaches(id, JobState.COMPLETED)
    lines = site.path("mine-1", "env").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines if line.startswith("ADAPTOR_"))
    assert seen["ADAPTOR_PROCESSORS"] == "3"
    assert seen["ADAPTOR_NODE"]
    assert report.start is not None
    assert report.end is not None
    # Counted from the start of the job, or of its script where the scheduler does not tell.
    assert report.start - 2 <= float(seen["ADAPTOR_PILOT_END"]) - 120 <= report.end + 2


def test_a_queued_job_that_is_cancelled_never_runs(site: Site) -> None:
    blocker = site.submit("first", WAIT, p=site.processors)
    queued = site.submit("second", WAIT, p=site.processors)
    site.reaches(blocker, JobState.RUNNING)
    site.is_up("first")
    assert site.report(queued).state is JobState.QUEUED
    site.cancel(queued)
    report = site.reaches(queued, JobState.CANCELLED)
    assert report.start is None
    site.cancel(blocker)
    site.reaches(blocker, JobState.CANCELLED)
    assert not site.path("second", "up").exists()


def test_a_running_job_that_is_cancelled_is_told_first(site: Site) -> None:
    id = site.submit("mine-1", WAIT)
    site.is_up("mine-1")
    site.cancel(id)
    report = site.reaches(id, JobState.CANCELLED)
    assert report.start is not None
    assert site.path("mine-1", "told").exists()


def test_the_pilots_of_an_array_are_jobs_of_their_own(site: Site, tmp_path: Path) -> None:
    site.backend.queue_state()  # some schedulers say then how large an array may be
    if site.backend.most_in_array == 1:
        pytest.skip("it has no arrays")
    prefix = f"mine-{uuid4().hex[:8]}."
    wide = site.processors // 2
    order = runnable(tmp_path, "pilots", WAIT, wide, 120, environment={"ADAPTOR_PILOT": "7"})
    order = msgspec.structs.replace(order, tag=f"{prefix}7", pilots=4)
    ids = site.backend.submit_array(order)
    tags = [f"{prefix}{number}" for number in range(7, 11)]
    for id, tag in zip(ids, tags, strict=True):
        site.note(id, tag)
    assert {report.tag: report.id for report in site.backend.jobs([], prefix)} == dict(
        zip(tags, ids, strict=True)
    )
    up = [tmp_path / "pilots" / tag.removeprefix(prefix) / "up" for tag in tags]
    until(lambda: sum(path.exists() for path in up) == 2, "two of them fit and run, in folders of their own")
    runs = [id for id, path in zip(ids, up, strict=True) if path.exists()]
    waits = [id for id in ids if id not in runs]
    for id in runs:
        site.reaches(id, JobState.RUNNING)
    site.cancel(waits[0])
    assert site.reaches(waits[0], JobState.CANCELLED).start is None
    site.cancel(runs[0])
    site.reaches(runs[0], JobState.CANCELLED)
    site.reaches(waits[1], JobState.RUNNING)
    assert site.report(runs[1]).state is JobState.RUNNING


def test_a_job_with_another_tag_is_not_touched(site: Site) -> None:
    """A number that was given to a job of the user's own while a pilot was thought to have it."""
    running = site.submit("mine-1", WAIT, p=site.processors)
    queued = site.submit("mine-2", WAIT)
    site.is_up("mine-1")
    site.reaches(running, JobState.RUNNING)
    pilots = [OwnJob(running, "adaptor-x.1"), OwnJob(queued, "adaptor-x.2"), OwnJob("999999", "mine-2")]
    site.backend.cancel(pilots)
    with pytest.raises(ChangeRefused):
        site.backend.reshape(queued, site.order("adaptor-x.2", WAIT, tr=60))
    with pytest.raises(SchedulerError):
        site.backend.release(pilots[0], ["n1", "n2", "n3", "n4"])
    assert site.report(running).state is JobState.RUNNING
    report = site.report(queued)
    assert (report.state, report.limit or 120) == (JobState.QUEUED, 120)
    assert not site.path("mine-1", "told").exists()
    site.backend.cancel([OwnJob(queued, "mine-2"), *pilots])
    site.reaches(queued, JobState.CANCELLED)
    assert site.report(running).state is JobState.RUNNING


def test_a_job_ends_at_its_time_limit(site: Site) -> None:
    if site.backend.time_resolution > 1:
        pytest.skip("its time limits are whole minutes: too long for a test")

    def run(limit: int) -> str:
        tag = f"mine-{limit}"
        site.reaches(site.submit(tag, WAIT, tr=limit), JobState.WALLTIME)
        return tag

    # Time enough to be up when it is told: a pilot of OpenPBS asks for its walltime first.
    first = 1 if isinstance(site.backend, LocalBackend) else 30
    tag = expired(run, lambda tag: site.path(tag, "up").exists(), first)
    assert site.path(tag, "told").exists()


def test_unknown_ids_are_missing_or_gone(site: Site) -> None:
    id = site.submit("mine-1", WAIT)
    found = site.backend.jobs(["999999", id], "no such tag")
    assert [job.id for job in found if job.state is not JobState.GONE] == [id]
    assert {job.state for job in site.backend.jobs(["999999"], "no such tag")} <= {JobState.GONE}


def test_cancelling_unknown_and_ended_jobs_is_no_error(site: Site) -> None:
    id = site.submit("mine-1", "exit 0")
    site.reaches(id, JobState.COMPLETED)
    site.backend.cancel([OwnJob(id, "mine-1"), OwnJob("999999", "mine-2")])
    assert site.report(id).state is JobState.COMPLETED


def test_a_request_beyond_the_site_is_refused_and_leaves_nothing(site: Site) -> None:
    with pytest.raises(SubmitRefused):
        site.backend.submit(site.order("too-large", WAIT, p=site.processors + 1))
    assert site.backend.jobs([], "too-large") == []


def test_the_queue_counts_running_and_waiting_jobs(site: Site) -> None:
    empty = site.backend.queue_state()
    assert (empty.processors, empty.running, empty.pending) == (site.processors, (), ())
    wide = site.submit("first", WAIT, p=site.processors - 1)
    started = site.reaches(wide, JobState.RUNNING).start
    next = site.submit("second", WAIT, p=2)
    state = site.backend.queue_state()
    (running,) = state.running
    (pending,) = state.pending
    assert started is not None
    assert (running.id, running.processors) == (wide, site.processors - 1)
    assert running.end == pytest.approx(started + 120, abs=2)
    assert (pending.id, pending.processors, pending.tr) == (next, 2, 120)


def test_a_queued_request_is_changed_in_its_place(site: Site) -> None:
    wide = site.submit("first", WAIT, p=site.processors - 1, tr=600)
    site.reaches(wide, JobState.RUNNING)
    order = site.order("second", f'env > "$ADAPTOR_DIRECTORY/env"; {WAIT}', p=2, tr=600)
    queued = site.backend.submit(order)
    site.note(queued, order.tag)
    if not site.backend.can_reshape:
        with pytest.raises(ChangeRefused):
            site.backend.reshape(queued, asking(order, 1, 120))
        return
    behind = site.submit("third", WAIT, p=2, tr=600)
    site.backend.reshape(queued, asking(order, 3, 780))
    report = site.report(queued)
    assert (report.state, report.processors, report.limit) == (JobState.QUEUED, 3, 780)
    pending = [(job.id, job.processors, job.tr) for job in site.backend.queue_state().pending]
    assert pending == [(queued, 3, 780), (behind, 2, 600)], "it is still the first"
    site.backend.reshape(queued, asking(order, 1, 120))
    report = site.reaches(queued, JobState.RUNNING)
    assert (report.processors, report.granted) == (1, 120)
    site.is_up("second")
    lines = site.path("second", "env").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines if line.startswith("ADAPTOR_"))
    assert report.start is not None
    assert seen["ADAPTOR_PROCESSORS"] == "1"
    assert float(seen["ADAPTOR_PILOT_END"]) == pytest.approx(report.start + 120, abs=3)


def test_a_job_waits_for_the_end_of_another_however_that_ends(site: Site) -> None:
    if not site.backend.can_follow:
        pytest.skip("this scheduler has no such jobs, and the daemon runs as none of its jobs")
    first = site.submit("first", WAIT)
    site.reaches(first, JobState.RUNNING)
    order = msgspec.structs.replace(site.order("second", WAIT), after=first)
    second = site.backend.submit(order)
    site.note(second, order.tag)
    site.is_up("first")
    assert site.report(second).state is JobState.QUEUED, "though processors are free"
    site.cancel(first)
    site.reaches(second, JobState.RUNNING)


def test_a_job_that_has_started_is_not_changed(site: Site) -> None:
    order = site.order("mine-1", WAIT, p=2, tr=600)
    id = site.backend.submit(order)
    site.note(id, order.tag)
    site.reaches(id, JobState.RUNNING)
    site.is_up("mine-1")
    for p, tr in ((2, 120), (1, 120), (3, 1200)):
        with pytest.raises(ChangeRefused):
            site.backend.reshape(id, asking(order, p, tr))
    report = site.report(id)
    assert (report.state, report.processors or 2, report.granted or 600) == (JobState.RUNNING, 2, 600)


def asking(order: PilotOrder, p: int, tr: int) -> PilotOrder:
    """The order with another request."""
    return msgspec.structs.replace(order, request=Request(p, tr))


def test_nodes_are_idle_unless_somebody_else_has_them(site: Site) -> None:
    if isinstance(site.backend, (LocalBackend, GridEngineBackend)):
        with pytest.raises(SchedulerError, match="has no nodes to donate"):
            site.backend.nodes([])
        return

    def uses(*donated: str) -> set[NodeUse]:
        return {node.use for node in site.backend.nodes(donated)} - {NodeUse.AWAY}

    until(lambda: uses() == {NodeUse.IDLE}, "all nodes idle")
    pilot = site.submit("donated", WAIT, p=site.processors)
    site.reaches(pilot, JobState.RUNNING)
    until(lambda: uses() == {NodeUse.TAKEN}, "all nodes taken")
    assert uses(pilot) == {NodeUse.IDLE}
    used = [node for node in site.backend.nodes([]) if node.use is NodeUse.TAKEN]
    assert sum(node.processors for node in used) == site.processors


def test_limits_are_known(site: Site) -> None:
    limits = site.backend.advertised_limits()
    assert limits.max_pending_requests >= 1
    assert 1 <= limits.max_proc <= site.processors
    assert limits.max_tr >= 60
    most = site.backend.ceilings()
    if most is not None:
        assert limits.max_proc <= most.processors.value
        assert limits.max_tr <= most.seconds.value
