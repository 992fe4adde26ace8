"""Jobs on a local site from their submission to their end, with real processes."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobState
from backends.base import SchedulerError, SubmitRefused
from backends.local.backend import LocalBackend
from tests.backends.local.local_site import LocalSite, wait_until
from tests.living import is_gone


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
    site.backend.cancel([blocker])
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
    site.backend.cancel([first, small])
    site.reaches(wide, JobState.RUNNING)
    assert site.report(long).state is JobState.QUEUED


def test_jobs_are_found_by_id_and_by_the_start_of_their_tag(site: LocalSite) -> None:
    a = site.submit("true", tag="mine-1")
    b = site.submit("true", tag="mine-2")
    c = site.submit("true", tag="theirs-1")
    assert {job.id for job in site.backend.jobs([], "mine-")} == {a, b}
    assert {job.id for job in site.backend.jobs([c], "mine-2")} == {b, c}
    assert site.backend.jobs(["77", "nonsense"], "nobody") == []


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
    smaller.cancel([blocker])


def test_limits_of_a_site_without_configuration(tmp_path: Path) -> None:
    limits = LocalBackend(SiteConfig(backend="local"), tmp_path / "site").advertised_limits()
    assert limits.max_proc == len(os.sched_getaffinity(0))
    assert limits.max_pending_requests >= 1
    assert limits.max_tr == 86400


def test_it_has_no_nodes_to_give_back(site: LocalSite) -> None:
    with pytest.raises(SchedulerError, match="can give back none of"):
        site.backend.release("1", ["n1"])


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
    wait_until(lambda: all(job.end for job in site.backend.jobs(ids, "-")))
    running = site.submit("sleep 60", p=4)
    assert [job.id for job in site.backend.jobs([], "")] == ["3", "4", running]
    assert site.reopened().submit(site.order("true")) == "6"
