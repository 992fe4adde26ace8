"""A job of the daemon keeps the daemon running, and the next jobs in the queue; on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
import pytest

from adaptor.daemon.jobs.keeper import Keeper, environment_of
from adaptor.daemon.jobs.record import JOB_VARIABLE, DaemonJobs, claim, forget_jobs, read_jobs, write_jobs
from adaptor.reports import JobReport, JobState
from backends.base import SchedulerError

WALLTIME = 3600
JOBS = DaemonJobs(series="ab", site="hpc", walltime=WALLTIME, memory=2**29, submitted=1, next_job="j1")


class FakeQueue:
    """The queue of a scheduler; it starts what may start if it is told to."""

    def __init__(self) -> None:
        self.reports: dict[int, JobReport] = {}
        self.after: dict[int, str] = {}
        self.cancelled: list[int] = []
        self.forecast: float | None = 0.0
        self.problem: Callable[[], None] = lambda: None

    def add(self, jobs: DaemonJobs, number: int, *, start: float | None = None) -> None:
        state = JobState.QUEUED if start is None else JobState.RUNNING
        self.reports[number] = JobReport(id=f"j{number}", tag=jobs.tag(number), state=state, start=start)

    def end(self, number: int) -> None:
        self.reports[number] = msgspec.structs.replace(self.reports[number], state=JobState.FAILED)

    def submit(self, jobs: DaemonJobs, number: int, after: str = "") -> str:
        self.problem()
        assert number not in self.reports, "a number is never used again"
        self.after[number] = after
        self.add(jobs, number)
        return f"j{number}"

    def found(self, _jobs: DaemonJobs, _ids: Collection[str] = ()) -> dict[int, JobReport]:
        self.problem()
        return dict(self.reports)

    def cancel(self, reports: Collection[JobReport]) -> None:
        for number, report in list(self.reports.items()):
            if report in reports and report.state.ended is None:
                self.cancelled.append(number)
                self.end(number)

    def wait(self, _jobs: DaemonJobs) -> float | None:
        return self.forecast

    @property
    def waiting(self) -> list[int]:
        return sorted(n for n, each in self.reports.items() if each.state is JobState.QUEUED)


class FakeDaemon:
    def __init__(self) -> None:
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.code = 0 if self.code is None else self.code

    def kill(self) -> None:
        self.code = -9

    def wait(self, timeout: float | None = None) -> int:
        assert self.code is not None
        return self.code


class Scene:
    """Job 1 from its start; `events` are done at their seconds."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.queue, self.now = directory, FakeQueue(), 0.0
        self.daemons: list[FakeDaemon] = []
        self.started: list[float] = []
        self.events: dict[float, Callable[[], object]] = {}
        write_jobs(directory, JOBS)
        self.queue.add(JOBS, 1, start=0.0)
        self.keeper = Keeper(
            directory, "ab", 1, float(WALLTIME),
            queue=lambda _: self.queue,  # type: ignore[arg-type,return-value]
            start=self._start, clock=lambda: self.now, sleep=self._sleep,
        )  # fmt: skip

    def _start(self, _jobs: DaemonJobs, name: str) -> FakeDaemon:
        assert name == "ab.1"
        self.daemons.append(FakeDaemon())
        self.started.append(self.now)
        return self.daemons[-1]

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in sorted(self.events):
            if at <= self.now:
                self.events.pop(at)()

    def kill_daemon(self) -> None:
        self.daemons[-1].code = -9

    def another_continues(self, number: int) -> None:
        self.queue.reports[number] = msgspec.structs.replace(self.queue.reports[number], start=self.now)
        assert not claim(self.directory, "ab", number, job="", host="n2", until=self.now + WALLTIME)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_from_the_start_a_job_waits_for_the_end_of_this_one(scene: Scene) -> None:
    scene.events[5.0] = lambda: setattr(scene.keeper, "stopping", True)
    assert scene.keeper.run() == 0
    assert scene.queue.after == {2: "j1"}
    assert scene.queue.waiting == [2], "the scheduler has ended this job, so the next one stays"
    assert len(scene.daemons) == 1


def test_before_its_end_a_job_may_start_at_once_and_takes_over(scene: Scene) -> None:
    scene.events[WALLTIME - 60.0] = lambda: scene.another_continues(3)
    scene.keeper.run()
    assert scene.queue.after == {2: "j1", 3: ""}
    assert scene.daemons[-1].code == 0, "its daemon has ended"
    assert 2 in scene.queue.reports


def test_the_longer_the_forecast_the_earlier_it_is_queued(scene: Scene) -> None:
    scene.queue.forecast = 600.0
    seen: list[float] = []
    submit = scene.queue.submit

    def noted(jobs: DaemonJobs, number: int, after: str = "") -> str:
        seen.append(scene.now)
        return submit(jobs, number, after)

    scene.queue.submit = noted  # type: ignore[method-assign]
    scene.keeper.run()
    assert WALLTIME / 2 <= seen[1] <= WALLTIME - 900


def test_where_no_other_one_has_started_it_ends_itself_before_its_walltime(scene: Scene) -> None:
    scene.keeper.run()
    assert WALLTIME - 30 < scene.now < WALLTIME
    assert scene.daemons[-1].code == 0
    assert scene.queue.waiting == [2, 3]


def test_a_daemon_that_was_killed_is_started_again_in_the_same_job(scene: Scene) -> None:
    for at in (100.0, 200.0):
        scene.events[at] = scene.kill_daemon
    scene.keeper.run()
    assert scene.started == pytest.approx([0.0, 100.5, 200.5], abs=1.0)


def test_a_daemon_that_cannot_start_is_tried_ever_less_often(scene: Scene) -> None:
    start = scene._start

    def failing(jobs: DaemonJobs, name: str) -> FakeDaemon:
        daemon = start(jobs, name)
        daemon.code = 2
        return daemon

    scene.keeper._start = failing
    scene.keeper.run()
    assert len(scene.started) < WALLTIME / 25


def test_what_the_scheduler_does_not_answer_is_asked_again(scene: Scene) -> None:
    def away() -> None:
        if scene.now < 120:
            raise SchedulerError("no answer")

    scene.queue.problem = away
    scene.events[200.0] = lambda: setattr(scene.keeper, "stopping", True)
    scene.keeper.run()
    assert len(scene.daemons) == 1, "the daemon runs all the same"
    assert scene.queue.waiting == [2]


def test_a_submission_whose_outcome_is_unknown_is_not_made_twice(scene: Scene) -> None:
    submit = scene.queue.submit

    def uncertain(jobs: DaemonJobs, number: int, after: str = "") -> str:
        submit(jobs, number, after)
        scene.queue.submit = submit  # type: ignore[method-assign]
        raise SchedulerError("the answer was lost")

    scene.queue.submit = uncertain  # type: ignore[method-assign]
    scene.events[200.0] = lambda: setattr(scene.keeper, "stopping", True)
    scene.keeper.run()
    assert scene.queue.waiting == [2]


def test_a_job_that_follows_is_replaced_when_it_is_lost_but_not_without_end(scene: Scene) -> None:
    """A node without the folder ends each job at once."""
    found = scene.queue.found

    def all_end(jobs: DaemonJobs, ids: Collection[str] = ()) -> dict[int, JobReport]:
        for number in scene.queue.waiting:
            scene.queue.end(number)
        return found(jobs, ids)

    scene.queue.found = all_end  # type: ignore[method-assign]
    scene.keeper.run()
    assert 3 <= len(scene.queue.after) <= 12


def test_jobs_that_nobody_needs_any_more_are_cancelled(scene: Scene) -> None:
    scene.queue.add(JOBS, 5)
    scene.events[5.0] = lambda: setattr(scene.keeper, "stopping", True)
    scene.keeper.run()
    assert scene.queue.cancelled == [5]
    assert scene.queue.waiting == [6], "its own one has a number that none had before"


def test_a_job_that_runs_is_never_cancelled_by_the_next_one(scene: Scene) -> None:
    """The one before hands over; it ends by itself."""
    scene.queue.add(JOBS, 4, start=0.0)
    scene.events[5.0] = lambda: setattr(scene.keeper, "stopping", True)
    scene.keeper.run()
    assert not scene.queue.cancelled


def test_after_a_stop_nothing_stays_in_the_queue(scene: Scene) -> None:
    scene.events[5.0] = lambda: forget_jobs(scene.directory)
    scene.keeper.run()
    assert scene.queue.waiting == []
    assert scene.now < 10
    assert read_jobs(scene.directory) is None


def test_a_job_that_comes_too_late_starts_no_daemon(scene: Scene) -> None:
    write_jobs(scene.directory, msgspec.structs.replace(JOBS, current=2, submitted=2))
    assert scene.keeper.run() == 0
    assert not scene.daemons
    assert not scene.queue.after


def test_the_daemon_has_no_variables_of_the_job_that_runs_it(tmp_path: Path) -> None:
    job = {"SLURM_JOB_ID": "7", "PBS_JOBID": "7", "ADAPTOR_MEMORY": "1", "PMIX_RANK": "0", "HOME": "/home/u"}
    jobs = msgspec.structs.replace(
        JOBS, environment={"PATH": "/opt/slurm/bin", "SLURM_CONF": "/etc/slurm.conf"}
    )
    assert environment_of(job, jobs, tmp_path, "ab.1") == {
        "HOME": "/home/u",
        "PATH": "/opt/slurm/bin",
        "SLURM_CONF": "/etc/slurm.conf",
        "ADAPTOR_DIR": str(tmp_path),
        JOB_VARIABLE: "ab.1",
    }
