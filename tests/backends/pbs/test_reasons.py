"""What PBS's comments say of jobs that wait, and what would help them."""

from __future__ import annotations

import pytest

from adaptor.reports import TURN, Hold, Remedy
from backends.pbs.reasons import is_considered, never, refused_remedy, wait_of
from backends.pbs.rows import PbsJob


def job(comment: str, state: str = "Q") -> PbsJob:
    return PbsJob(id="1.pbs", tag="adaptor-1", owner="joe", state=state, comment=comment)


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "Not Running: Insufficient amount of resource: ncpus (R: 2 A: 0 T: 16)",
        "Not Running: Not enough free nodes available",
        "Not Running: Job would conflict with reservation or top job",
    ],
)
def test_a_turn_in_the_queue_needs_no_words(comment: str) -> None:
    assert wait_of(job(comment)) == TURN
    assert is_considered(job(comment))


@pytest.mark.parametrize(
    ("comment", "remedy"),
    [
        ("Not Running: User has reached server running job limit.", Remedy.OTHER),
        ("Not Running: Queue short job limit has been reached.", Remedy.OTHER),
        ("Not Running: User would exceed queue's per-user limit on resource ncpus", Remedy.NARROWER),
        ("Not Running: Group has reached server limit on resource ncpus", Remedy.NARROWER),
    ],
)
def test_limits_are_waited_for_and_said(comment: str, remedy: Remedy) -> None:
    found = wait_of(job(comment))
    assert comment in found.said
    assert (found.hold, found.remedy) == (Hold.LIMIT, remedy)
    assert not is_considered(job(comment))


def test_a_held_job_names_the_command_that_releases_it() -> None:
    found = wait_of(job("Job held by joe on Sat Nov 28", "H"))
    assert found.hold is Hold.ITS_OWN
    assert "qrls" in found.said


def test_words_that_are_not_known_are_shown_as_they_stand() -> None:
    found = wait_of(job("The site's own scheduler: come back on Monday"))
    assert "come back on Monday" in found.said
    assert found.hold is Hold.NONE


@pytest.mark.parametrize(
    ("comment", "remedy"),
    [
        ("Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 16 T: 16)", Remedy.NARROWER),
        ("Can Never Run: Job's walltime is longer than the dedicated time", Remedy.SHORTER),
        ("Can Never Run: it is as it is", Remedy.SMALLER),
    ],
)
def test_what_would_help_a_request_that_never_starts(comment: str, remedy: Remedy) -> None:
    assert never(job(comment))
    assert wait_of(job(comment)).remedy is remedy


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("qsub: would exceed complex's per-user limit", Remedy.OTHER),
        ("qsub: would exceed user's limit on resource ncpus in queue workq", Remedy.NARROWER),
        ("qsub: Job violates queue and/or server resource limits", Remedy.SMALLER),
        ("qsub: Unknown queue", Remedy.OTHER),
        ("qsub: jobs of this lab last ten minutes", Remedy.SMALLER),
        ("qsub: please name a project with -P", Remedy.OTHER),
        ("qsub: project chem may have 8 cores", Remedy.SMALLER),
    ],
)
def test_what_would_help_a_request_that_is_refused(said: str, remedy: Remedy) -> None:
    assert refused_remedy(said) is remedy
