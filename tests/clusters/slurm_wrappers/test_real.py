"""Torque's commands in front of a real Slurm, beyond what every backend owes (test_contract.py)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.donation.situation import NodeUse
from adaptor.reports import JobReport, JobState, OwnJob
from adaptor.resources import TaskSize
from backends.base import SchedulerError, SubmitRefused
from backends.pbs.backend import PbsBackend
from tests.backends.orders import runnable
from tests.clusters.processes import job_processes, kill_all
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_wrappers import dialect
from tests.clusters.slurm_wrappers.backend_type import backend
from tests.living import until

pytestmark = pytest.mark.slurm

WAIT = 'echo up >>"$ADAPTOR_DIRECTORY/up"; exec sleep 300'


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.backend = self.restarted()

    def restarted(self, **changes: object) -> PbsBackend:
        """A backend that knows nothing of the past."""
        known = {"backend": "pbs", "partition": "batch", **changes}
        self.backend = backend(SiteConfig(**known))  # type: ignore[arg-type]
        return self.backend

    def submit(
        self,
        tag: str,
        command: str,
        p: int = 1,
        tr: int = 120,
        per_task: int = 1,
        memory: int | None = None,
        node: str = "",
    ) -> str:
        task = TaskSize(processors=per_task, memory=memory)
        return self.backend.submit(runnable(self.folder, tag, command, p, tr, task, node=node))

    def report(self, id: str) -> JobReport | None:
        return next(iter(self.backend.jobs([id], "no such tag")), None)

    def reaches(self, id: str, state: JobState) -> None:
        until(lambda: (found := self.report(id)) is not None and found.state is state, state.value)

    def said(self, tag: str, name: str) -> list[str]:
        path = self.folder / tag / name
        return sorted(path.read_text().splitlines()) if path.exists() else []


@pytest.fixture
def site(slurm_wrappers: ThrowawaySlurm, tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "my $(touch hacked); 100% pilots")
    made.folder.mkdir()
    yield made
    slurm_wrappers.clear()


def test_a_pilot_on_several_nodes_has_a_worker_on_each(site: Site) -> None:
    say = 'echo "$ADAPTOR_NODE $ADAPTOR_PROCESSORS ${ADAPTOR_MEMORY:-none}" >>"$ADAPTOR_DIRECTORY/shares"'
    whole = site.submit("tasks", say, p=10, per_task=2, memory=200 * 2**20)
    site.reaches(whole, JobState.COMPLETED)
    shares = [line.split() for line in site.said("tasks", "shares")]
    assert sum(int(processors) for _, processors, _ in shares) == 10
    assert len({node for node, _, _ in shares}) == len(shares) >= 3
    assert all(int(memory) == int(processors) * 100 * 2**20 for _, processors, memory in shares)
    assert not (Path.cwd() / "hacked").exists()


def test_whole_nodes(site: Site) -> None:
    site.restarted(whole_nodes=True)
    id = site.submit("whole", WAIT, p=6)
    site.reaches(id, JobState.RUNNING)
    found = site.report(id)
    assert found is not None
    assert len(found.nodes) == 2
    state = site.backend.queue_state()
    assert [(job.id, job.processors) for job in state.running] == [(id, 8)]


def test_names_that_others_gave_disturb_nobody(site: Site, slurm_wrappers: ThrowawaySlurm) -> None:
    id = site.submit("undisturbed", WAIT)
    site.reaches(id, JobState.RUNNING)
    for name in (f"x\nJob Id:\t{id}\n\tjob_state = C\n", "Job Id:\t5\nrubbish", "\t\n\n = \x1b[1m|'\"\\"):
        slurm_wrappers.run(["sbatch", "-J", name, "-t5", "-n1", "-o", "/dev/null", "--wrap", "sleep 100"])
    command: list[str | bytes] = [
        "sbatch",
        "-J",
        b"\xff\xfe",
        "-t5",
        "-n1",
        "-o/dev/null",
        "--wrap=sleep 100",
    ]
    subprocess.run(command, env=slurm_wrappers._environment(), check=True, capture_output=True)
    report = site.report(id)
    assert report is not None
    assert report.state is JobState.RUNNING
    assert [job.id for job in site.backend.jobs([], "undisturbed")] == [id]
    assert id in {job.id for job in site.backend.queue_state().running}


def test_a_prologue_that_fails_fails_the_pilot(site: Site) -> None:
    site.restarted(prologue="module_that_is_missing python")
    site.reaches(site.submit("failing", WAIT), JobState.FAILED)
    assert "the prologue failed with status 127" in (site.folder / "failing" / "pbs-pilot.out").read_text()


def test_an_end_that_nobody_noted_is_not_made_up(
    site: Site, slurm_wrappers: ThrowawaySlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler only says that the job is over: that is no more than to have forgotten it."""
    id = site.submit("killed", WAIT)
    until(lambda: bool(site.said("killed", "up")), "the worker is up")
    kill_all(job_processes(slurm_wrappers.conf))
    until(lambda: slurm_wrappers.run(["squeue", "-h"]) == "", "the job is over")
    report = site.report(id)
    assert report is not None
    assert (report.state, report.end) == (JobState.RUNNING, None)  # its note may still come
    monkeypatch.setattr(dialect, "PATIENCE", 0.0)
    assert site.report(id) is None


def test_a_note_is_only_waited_for_where_it_is_known_to_lie(site: Site) -> None:
    """A pilot that ended before the daemon's own start must not seem to run."""
    id = site.submit("done", "exit 0")
    site.reaches(id, JobState.COMPLETED)
    site.restarted()
    assert site.report(id) is None


def test_a_running_pilot_is_found_again_after_a_restart(site: Site) -> None:
    id = site.submit("adaptor-x.hpc.1", WAIT)
    site.reaches(id, JobState.RUNNING)
    site.restarted()
    assert [(job.id, job.state) for job in site.backend.jobs([], "adaptor-x.hpc.")] == [
        (id, JobState.RUNNING)
    ]


def test_a_held_job_waits_without_a_plan(site: Site, slurm_wrappers: ThrowawaySlurm) -> None:
    wide = site.submit("wide", WAIT, p=16)
    id = site.submit("held", WAIT, p=16)
    slurm_wrappers.run(["scontrol", "hold", id])
    report = site.report(id)
    assert report is not None
    assert (report.state, report.planned_start) == (JobState.QUEUED, None)
    assert {job.id for job in site.backend.queue_state().pending} <= {wide}


def test_limits_of_the_queue_are_kept(site: Site) -> None:
    site.restarted(partition="short")
    limits = site.backend.advertised_limits()
    assert (limits.max_proc, limits.max_tr) == (16, 600)
    with pytest.raises(SubmitRefused, match=r"limits\.max_tr"):
        site.submit("long", WAIT, tr=3600)


def test_an_unknown_queue_is_named_with_those_that_there_are(site: Site) -> None:
    site.restarted(partition="nosuch")
    with pytest.raises(SchedulerError, match="no queue nosuch; there are: batch, scavenger, short"):
        site.backend.queue_state()
    site.restarted(partition=None)
    with pytest.raises(SchedulerError, match="set `partition`"):
        site.submit("anywhere", WAIT)


def test_a_controller_that_is_down_concludes_nothing(site: Site, slurm_wrappers: ThrowawaySlurm) -> None:
    id = site.submit("mine", WAIT)
    backend = site.restarted(command_timeout=1.0)
    slurm_wrappers.stop_controller()
    try:
        for ask in (
            lambda: backend.jobs([id], "mine"),
            backend.queue_state,
            lambda: backend.cancel([OwnJob(id, "mine")]),
        ):
            with pytest.raises(SchedulerError):
                ask()
    finally:
        slurm_wrappers.start_controller()
    site.restarted()
    site.reaches(id, JobState.RUNNING)


def test_a_node_is_donated_until_a_local_job_wants_it(site: Site, slurm_wrappers: ThrowawaySlurm) -> None:
    backend = site.restarted(donation=DonationConfig(mode="preemptible", partition="scavenger"))
    pilot = site.submit("donated", 'echo "$ADAPTOR_NODE $ADAPTOR_PROCESSORS" >"$ADAPTOR_DIRECTORY/up"; '
                        "exec sleep 300", p=4, node="n3")  # fmt: skip
    until(lambda: site.said("donated", "up") == ["n3 4"], "the worker has all of its node")

    def uses() -> list[NodeUse]:
        return [node.use for node in backend.nodes([pilot])]

    until(lambda: uses() == [NodeUse.IDLE] * 4, "all nodes idle but for us")
    assert [node.use for node in backend.nodes([])].count(NodeUse.TAKEN) == 1
    slurm_wrappers.run(["sbatch", "-p", "batch", "-w", "n3", "-N1", "-o/dev/null", "--wrap", "sleep 300"])
    until(lambda: uses() == [NodeUse.IDLE, NodeUse.IDLE, NodeUse.TAKEN, NodeUse.IDLE], "the local job")
    site.reaches(pilot, JobState.CANCELLED)
