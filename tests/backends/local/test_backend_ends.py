"""How the local site ends jobs: at their time limit, when they are cancelled, and whatever they started."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adaptor.reports import JobState
from tests.backends.local.local_site import KILL_WAIT, PATIENT, LocalSite, wait_until, written_pid
from tests.living import is_alive

STUBBORN = """
trap '' TERM
setsid sh -c 'setsid sh -c "trap : TERM; echo \\$\\$ > $ADAPTOR_DIRECTORY/fled; sleep 100; sleep 100" &' &
echo $$ > "$ADAPTOR_DIRECTORY/worker"
sleep 100; sleep 100; sleep 100
"""
"""Ignores SIGTERM, and has a grandchild in a session of its own that does so too."""


def test_a_job_is_ended_at_its_time_limit(site: LocalSite) -> None:
    command = 'echo $$ > "$ADAPTOR_DIRECTORY/worker"; exec sleep 100'
    limit, report = site.ended_at_its_limit(command, "worker")
    assert f"{limit} s" in report.reason
    assert not is_alive(written_pid(site.latest / "worker"))
    assert report.start is not None
    assert report.end is not None
    assert report.end - report.start >= limit


def test_a_worker_may_use_its_grace(site: LocalSite) -> None:
    site.backend = site.reopened(PATIENT)
    script = "trap 'echo handed back; exit 0' TERM; echo >\"$ADAPTOR_DIRECTORY/up\"; sleep 100 & wait"
    _, report = site.ended_at_its_limit(script, "up")
    assert (site.latest / f"local-{report.id}.out").read_text() == "handed back\n"


def test_a_stubborn_worker_is_killed_with_all_that_it_started(site: LocalSite) -> None:
    limit, report = site.ended_at_its_limit(STUBBORN, "worker", "fled")
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


def test_a_queued_job_is_cancelled_before_it_starts(site: LocalSite) -> None:
    blocker = site.submit("sleep 100", p=4)
    queued = site.submit('touch "$ADAPTOR_DIRECTORY/ran"', p=4)
    site.backend.cancel([queued])
    report = site.report(queued)
    assert report.state is JobState.CANCELLED
    assert report.start is None
    assert report.end is not None
    site.backend.cancel([blocker])
    site.reaches(blocker, JobState.CANCELLED)
    assert not (site.directory(2) / "ran").exists()


@pytest.mark.parametrize("command", ["exec sleep 100", STUBBORN], ids=["willing", "stubborn"])
def test_a_running_job_is_cancelled(site: LocalSite, command: str) -> None:
    id = site.submit(f'echo $$ > "$ADAPTOR_DIRECTORY/worker"; {command}')
    worker = written_pid(site.directory() / "worker")
    site.backend.cancel([id])
    report = site.reaches(id, JobState.CANCELLED)
    assert report.start is not None
    assert not is_alive(worker)


def test_a_cancel_during_the_prologue_ends_it(make_site: Callable[..., LocalSite]) -> None:
    site = make_site(2, prologue='echo $$ > "$ADAPTOR_DIRECTORY/prologue"; sleep 100')
    id = site.submit("true")
    prologue = written_pid(site.directory() / "prologue")
    site.backend.cancel([id])
    site.reaches(id, JobState.CANCELLED)
    wait_until(lambda: not is_alive(prologue))


def test_cancelling_again_or_nothing_is_no_error(site: LocalSite) -> None:
    id = site.submit("true")
    site.reaches(id, JobState.COMPLETED)
    site.backend.cancel([id, "99", "nonsense"])
    site.backend.cancel([])
    assert site.report(id).state is JobState.COMPLETED


def test_a_job_that_is_being_ended_holds_its_processors(site: LocalSite) -> None:
    site.backend = site.reopened(PATIENT)
    until_told = 'until [ -e "$ADAPTOR_DIRECTORY/leave" ]; do sleep 0.05; done'
    id = site.submit(f"trap '' TERM; echo >\"$ADAPTOR_DIRECTORY/up\"; {until_told}", p=4)
    site.wrote("up", 1)
    next = site.submit("true", p=4)
    site.backend.cancel([id])
    assert site.report(next).state is JobState.QUEUED
    (site.directory() / "leave").touch()
    ended = site.reaches(id, JobState.CANCELLED).end
    started = site.reaches(next, JobState.COMPLETED).start
    assert ended is not None
    assert started is not None
    assert started >= ended
