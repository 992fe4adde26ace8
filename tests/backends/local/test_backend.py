"""Jobs on a local site from their submission to their end, with real processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import LimitsConfig, SiteConfig
from adaptor.reports import JobReport, JobState, OwnJob
from backends.base import SchedulerError, SubmitRefused
from backends.local.backend import LocalBackend
from tests.backends.local.local_site import KILL_WAIT, PATIENT, LocalSite, written_pid
from tests.backends.orders import own
from tests.living import is_alive, is_gone, until


def test_a_job_runs_to_its_end(site: LocalSite) -> None:
    before = time.time()
    id = site.submit("echo out; echo err >&2", p=2)
    report = site.reaches(id, JobState.COMPLETED)
    assert report.start is not None
    assert report.end is not None
    assert before <= report.start <= report.end <= time.time()
    assert (site.directory() / f"local-{id}.out").read_text() == "out\nerr\n"


def test_a_worker_that_fails_is_told_with_its_exit_code(site: LocalSite) -> None:
    report = site.reaches(site.submit("exit 3"), JobState.FAILED)
    assert "exit code 3" in report.reason


def test_a_worker_that_is_killed_is_told_with_the_signal(site: LocalSite) -> None:
    report = site.reaches(site.submit("kill -9 $$"), JobState.FAILED)
    assert "signal 9" in report.reason


def test_a_worker_that_does_not_exist_fails_and_says_so(site: LocalSite) -> None:
    order = msgspec.structs.replace(site.order(""), worker=("/no/such/worker",))
    id = site.backend.submit(order)
    site.reaches(id, JobState.FAILED)
    assert "/no/such/worker: cannot be started" in (site.directory() / f"local-{id}.out").read_text()


def test_a_pilot_whose_folder_is_gone_fails_and_holds_up_nobody(site: LocalSite) -> None:
    blocker = site.submit("sleep 60", p=4)
    lost = site.submit("true", p=4)
    site.directory(2).rmdir()
    site.backend.cancel(own(site.backend, blocker))
    assert "folder" in site.reaches(lost, JobState.FAILED).reason


def test_the_worker_is_told_what_it_has(site: LocalSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADAPTOR_DIR", "/somewhere")
    monkeypatch.setenv("OF_THE_DAEMON", "yes")
    id = site.submit('env -0 > "$ADAPTOR_DIRECTORY/seen"', p=3, tr=77)
    report = site.reaches(id, JobState.COMPLETED)
    text = (site.directory() / "seen").read_bytes().decode()
    seen = dict(line.split("=", 1) for line in text.rstrip("\0").split("\0"))
    assert report.start is not None
    assert float(seen["ADAPTOR_PILOT_END"]) == pytest.approx(report.start + 77)
    assert seen["ADAPTOR_PROCESSORS"] == "3"
    assert seen["ADAPTOR_NODE"] == os.uname().nodename == report.nodes[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert int(seen["ADAPTOR_MEMORY"]) == memory * 3 // 4
    assert seen["ADAPTOR_PILOT"] == "1"
    assert seen["OF_THE_DAEMON"] == "yes"
    assert "ADAPTOR_DIR" not in seen
    assert "ADAPTOR_ENV_BEFORE" not in seen


def test_a_prologue_runs_before_the_worker(make_site: Callable[..., LocalSite]) -> None:
    site = make_site(2, prologue="export LOADED='a b'\nunset OLD\n")
    loaded = 'printf %s "$LOADED" > "$ADAPTOR_DIRECTORY/loaded"'
    id = site.submit(f'{loaded}; cp "$ADAPTOR_ENV_BEFORE" "$ADAPTOR_DIRECTORY/b"')
    site.reaches(id, JobState.COMPLETED)
    assert (site.directory() / "loaded").read_text() == "a b"
    before = (site.directory() / "b").read_bytes().split(b"\0")
    assert any(entry.startswith(b"PATH=") for entry in before)
    assert not any(entry.startswith(b"LOADED=") for entry in before)
    assert stat.S_IMODE((site.directory() / "env.before").stat().st_mode) == 0o600


def test_a_prologue_that_gives_up_fails_the_job(make_site: Callable[..., LocalSite]) -> None:
    site = make_site(2, prologue="exit 9")
    id = site.submit('touch "$ADAPTOR_DIRECTORY/ran"')
    assert "exit code 9" in site.reaches(id, JobState.FAILED).reason
    assert not (site.directory() / "ran").exists()


def test_the_queue_is_served_in_order_with_backfilling(site: LocalSite) -> None:
    first = site.submit("sleep 60", p=3, tr=100)
    wide = site.submit("sleep 60", p=4, tr=100)
    small = site.submit("sleep 60", p=1, tr=50)
    long = site.submit("sleep 60", p=1, tr=1000)
    state = site.backend.queue_state()
    assert [job.id for job in state.running] == [first, small]
    assert [job.id for job in state.pending] == [wide, long]
    assert state.processors == 4
    assert site.report(wide).planned_start == pytest.approx(state.running[0].end, abs=1)
    assert site.report(first).planned_start is None
    site.backend.cancel(own(site.backend, first, small))
    site.reaches(wide, JobState.RUNNING)
    assert site.report(long).state is JobState.QUEUED


def test_jobs_are_found_by_id_and_by_the_start_of_their_tag(site: LocalSite) -> None:
    a = site.submit("true", tag="mine-1")
    b = site.submit("true", tag="mine-2")
    c = site.submit("true", tag="theirs-1")
    assert {job.id for job in site.backend.jobs([], "mine-")} == {a, b}
    assert {job.id for job in site.backend.jobs([c], "mine-2")} == {b, c}
    gone = site.backend.jobs(["77", "nonsense"], "nobody")
    assert [(job.id, job.tag, job.state) for job in gone] == [
        ("77", "", JobState.GONE),
        ("nonsense", "", JobState.GONE),
    ]


def test_ids_rise(site: LocalSite) -> None:
    assert [site.submit("true") for _ in range(3)] == ["1", "2", "3"]


def test_a_request_larger_than_the_site_is_refused_with_the_numbers(site: LocalSite) -> None:
    with pytest.raises(SubmitRefused, match=r"5 processors .* has 4"):
        site.submit("true", p=5)
    assert site.backend.jobs([], "") == []


def test_a_waiting_job_that_no_longer_fits_is_told(site: LocalSite) -> None:
    blocker = site.submit("sleep 60", p=4)
    wide = site.submit("true", p=4)
    smaller = LocalBackend(SiteConfig(backend="local", processors=2), site.state)
    (report,) = smaller.jobs([wide], "-")
    assert "needs 4 processors" in report.never
    smaller.cancel(own(smaller, blocker))


def test_limits_of_a_site_without_configuration(tmp_path: Path) -> None:
    limits = LocalBackend(SiteConfig(backend="local"), tmp_path / "site").advertised_limits()
    assert limits.max_proc == len(os.sched_getaffinity(0))
    assert limits.max_pending_requests >= 1
    assert limits.max_tr == 86400


def test_it_has_no_nodes_to_give_back(site: LocalSite) -> None:
    with pytest.raises(SchedulerError, match="can give back none of"):
        site.backend.release(OwnJob("1", "adaptor-x.1"), ["n1"])


def test_nothing_is_open_to_others(site: LocalSite) -> None:
    id = site.submit("true")
    site.reaches(id, JobState.COMPLETED)
    assert is_gone(site.supervisor(id)), "and with it what it has under a temporary name"
    assert stat.S_IMODE(site.state.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(note.stat().st_mode) == 0o600 for note in site.state.iterdir())


def test_an_end_is_told_after_the_time_of_day_was_set_far_ahead(
    site: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = site.submit("true")
    end = site.reaches(id, JobState.COMPLETED).end
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 400 * 86_400)
    site.submit("true")
    (report,) = site.backend.jobs([id], "-")
    assert report.end == end


def test_old_jobs_are_forgotten_and_their_ids_are_not_used_again(
    site: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backends.local.backend._KEPT_JOBS", 2)
    ids = [site.submit("true") for _ in range(4)]
    over = (JobState.COMPLETED, JobState.GONE)  # the oldest may be forgotten already
    until(lambda: all(job.state in over for job in site.backend.jobs(ids, "-")), "the end of all")
    running = site.submit("sleep 60", p=4)
    assert [job.id for job in site.backend.jobs([], "")] == ["3", "4", running]
    assert site.reopened().submit(site.order("true")) == "6"


@pytest.mark.parametrize(("pilots", "kept"), [(None, 200), (500, 1000)])
def test_more_ended_jobs_are_remembered_than_may_be_in_the_system(
    tmp_path: Path, pilots: int | None, kept: int
) -> None:
    """Which may all end between two looks."""
    site = SiteConfig(backend="local", limits=LimitsConfig(max_pilots=pilots))
    assert LocalBackend(site, tmp_path)._kept() == kept


STUBBORN = """
trap '' TERM
setsid sh -c 'setsid sh -c "trap : TERM; echo \\$\\$ > $ADAPTOR_DIRECTORY/fled; sleep 100; sleep 100" &' &
echo $$ > "$ADAPTOR_DIRECTORY/worker"
sleep 100; sleep 100; sleep 100
"""
"""Ignores SIGTERM, and has a grandchild in a session of its own that does so too."""


def test_a_worker_may_use_its_grace(site: LocalSite) -> None:
    site.backend = site.reopened(PATIENT)
    script = "trap 'echo handed back; exit 0' TERM; echo >\"$ADAPTOR_DIRECTORY/up\"; sleep 100 & wait"
    _, report = site.ended_at_its_limit(script, "up")
    assert (site.latest / f"local-{report.id}.out").read_text() == "handed back\n"


def test_a_stubborn_worker_is_killed_with_all_that_it_started(site: LocalSite) -> None:
    limit, report = site.ended_at_its_limit(STUBBORN, "worker", "fled")
    assert f"{limit} s" in report.reason
    worker, fled = (written_pid(site.latest / name) for name in ("worker", "fled"))
    assert report.start is not None
    assert report.end is not None
    assert report.end - report.start >= limit + KILL_WAIT
    assert not is_alive(worker)
    assert not is_alive(fled)


def test_what_a_worker_leaves_behind_is_ended_with_the_job(site: LocalSite) -> None:
    script = 'setsid sh -c "echo \\$\\$ > $ADAPTOR_DIRECTORY/fled; exec sleep 100" & '
    id = site.submit(script + 'until [ -s "$ADAPTOR_DIRECTORY/fled" ]; do sleep 0.01; done')
    site.reaches(id, JobState.COMPLETED)
    assert not is_alive(written_pid(site.directory() / "fled"))


@pytest.mark.parametrize("command", ["exec sleep 100", STUBBORN], ids=["willing", "stubborn"])
def test_a_running_job_is_cancelled(site: LocalSite, command: str) -> None:
    id = site.submit(f'echo $$ > "$ADAPTOR_DIRECTORY/worker"; {command}')
    worker = written_pid(site.directory() / "worker")
    site.backend.cancel(own(site.backend, id))
    report = site.reaches(id, JobState.CANCELLED)
    assert report.start is not None
    assert not is_alive(worker)


def test_a_cancel_during_the_prologue_ends_it(make_site: Callable[..., LocalSite]) -> None:
    site = make_site(2, prologue='echo $$ > "$ADAPTOR_DIRECTORY/prologue"; sleep 100')
    id = site.submit("true")
    prologue = written_pid(site.directory() / "prologue")
    site.backend.cancel(own(site.backend, id))
    site.reaches(id, JobState.CANCELLED)
    until(lambda: not is_alive(prologue), "the end of the prologue")


def test_a_job_that_is_being_ended_holds_its_processors(site: LocalSite) -> None:
    site.backend = site.reopened(PATIENT)
    until_told = 'until [ -e "$ADAPTOR_DIRECTORY/leave" ]; do sleep 0.05; done'
    id = site.submit(f"trap '' TERM; echo >\"$ADAPTOR_DIRECTORY/up\"; {until_told}", p=4)
    site.wrote("up", 1)
    next = site.submit("true", p=4)
    site.backend.cancel(own(site.backend, id))
    assert site.report(next).state is JobState.QUEUED
    (site.directory() / "leave").touch()
    ended = site.reaches(id, JobState.CANCELLED).end
    started = site.reaches(next, JobState.COMPLETED).start
    assert ended is not None
    assert started is not None
    assert started >= ended


SUBMITTER = """
import sys
from pathlib import Path
from adaptor.config.schema import LimitsConfig, SiteConfig
from adaptor.model import Request
from adaptor.resources import TaskSize
from adaptor.units import Duration
from backends.base import PilotOrder
from backends.local.backend import LocalBackend
from tests.living import until

name, folder = sys.argv[1], Path(sys.argv[2])
patient = SiteConfig(backend="local", processors=4, command_timeout=Duration(600))
backend = LocalBackend(patient, folder / "site")
for number in range(6):
    directory = folder / f"{name}-{number}"
    directory.mkdir(mode=0o700)
    backend.submit(PilotOrder(
        tag=directory.name, request=Request(1 + number % 3, 600), task=TaskSize(),
        directory=directory, worker=("/bin/sh", "-c", 'echo ran >> "$ADAPTOR_DIRECTORY/ran"; sleep 0.1'),
        environment={"ADAPTOR_DIRECTORY": str(directory)},
    ))
    backend.queue_state()
"""


def most_in_use(reports: list[JobReport], held: dict[str, int]) -> int:
    """The most processors that were ever in use at once."""
    changes = sorted(
        change
        for report in reports
        for change in ((report.end or 0.0, -held[report.tag]), (report.start or 0.0, held[report.tag]))
    )
    in_use = most = 0
    for _, change in changes:
        in_use += change
        most = max(most, in_use)
    return most


def test_two_processes_share_a_site(site: LocalSite) -> None:
    names = ("one", "two")
    commands = [[sys.executable, "-c", SUBMITTER, name, str(site.folder)] for name in names]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(120) for process in processes] == [0, 0]
    until(lambda: all(report.end for report in site.backend.jobs([], "")), "the end of all jobs")
    reports = site.backend.jobs([], "")
    tags = {f"{name}-{number}": 1 + number % 3 for name in names for number in range(6)}
    assert sorted(report.tag for report in reports) == sorted(tags)
    assert {report.state for report in reports} == {JobState.COMPLETED}
    assert all((site.folder / tag / "ran").read_text() == "ran\n" for tag in tags)
    assert most_in_use(reports, tags) <= 4
