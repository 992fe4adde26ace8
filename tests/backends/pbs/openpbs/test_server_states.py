"""How jobs end on a real OpenPBS, and what the daemon is told of it."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.model import Request
from adaptor.reports import JobReport, JobState
from backends.pbs.fields import parse_time
from backends.pbs.openpbs.jobs import own_job
from backends.pbs.openpbs.server import job_state
from backends.pbs.rows import PbsJob
from backends.pbs.state.queue import report_of, sentence
from tests.backends.pbs.openpbs_recordings import job_record, recorded_jobs

Q, R, DONE, FAILED = JobState.QUEUED, JobState.RUNNING, JobState.COMPLETED, JobState.FAILED
RECORDED = {
    "02-job-array": R,
    "02-job-dependent": Q,
    "02-job-held": Q,
    "02-job-never-fits": Q,
    "02-job-queued-second": Q,
    "02-job-queued-top": Q,
    "02-job-running-excl": R,
    "02-job-running-scatter": R,
    "02-job-running-vnodes": R,
    "02-job-stf": Q,
    "02-job-stf-min-only": Q,
    "02-job-subjob": R,
    "02-job-waiting": Q,
    "02b-job-qheld": Q,
    "02b-job-suspended": R,
    "03-job-dependent-after-qdel": JobState.CANCELLED,
    "03-job-qdel-queued": JobState.CANCELLED,
    "03-job-qdel-running": JobState.CANCELLED,
    "03b-job-stf-running": R,
    "03b-job-top": Q,
    "04-job-after-qrerun": R,
    "04-job-badshell": FAILED,
    "04-job-badworkdir": DONE,
    "04-job-depend-fail": JobState.CANCELLED,
    "04-job-exit0": DONE,
    "04-job-exit137": FAILED,
    "04-job-exit255": FAILED,
    "04-job-exit3": FAILED,
    "04-job-killed15": FAILED,
    "04-job-killed9": FAILED,
    "04-job-memexceed": DONE,
    "04-job-notfound": FAILED,
    "04-job-qdel-run": JobState.CANCELLED,
    "04-job-qdel-trap0": JobState.CANCELLED,
    "04-job-qrerun": DONE,
    "04-job-qsig-usr1": FAILED,
    "04-job-segv": FAILED,
    "04-job-walltime": JobState.WALLTIME,
    "04-job-walltime-ignore": JobState.WALLTIME,
    "04-job-walltime-script": JobState.WALLTIME,
    "04-job-walltime-trap0": JobState.WALLTIME,
    "04b-job-exiting": R,
    "05-D-preempted": JobState.PREEMPTED,
    "05-D-preempted-later": JobState.PREEMPTED,
    "05-D-preemptor": R,
    "05-R-preempted": JobState.PREEMPTED,
    "05-R-preempted-later": R,
    "05-R-preemptor": R,
    "05-S-preempted": R,
    "05-S-preempted-later": R,
    "05-S-preemptor": R,
    "06-job-norerun-on-dead-node": JobState.NODE_FAILED,
    "06-job-on-dead-node": R,
    "06-job-on-dead-node-after-qdel": R,
    "06-job-on-dead-node-requeued": JobState.NODE_FAILED,
    "06b-after-40s-job": R,
    "06b-after-5s-job": R,
    "06b-after-80s-job": JobState.NODE_FAILED,
    "06b-back-job": R,
    "12b-qstat-f": R,
    "13-up-again-long": R,
    "13-up-again-short": DONE,
}


PUT_BACK = frozenset({"05-R-preempted", "06-job-on-dead-node-requeued", "06b-after-80s-job"})
"""They wait in their queue to run again."""


def report(recording: str) -> JobReport:
    job = own_job(job_record(recording))
    return report_of(job, job_state(job))


@pytest.mark.parametrize(("recording", "state"), RECORDED.items())
def test_a_recorded_job_is_what_it_was(recording: str, state: JobState) -> None:
    found = report(recording)
    assert found.state is state
    assert (found.end is not None) == (bool(state.ended) and recording not in PUT_BACK)


def test_no_recording_is_forgotten() -> None:
    single = {name for name, jobs in recorded_jobs().items() if len(jobs) == 1}
    assert single == RECORDED.keys()


@pytest.mark.parametrize(
    ("recording", "states"),
    [
        ("02-job-array-subjobs", {"3[].pbshead": R, "3[0].pbshead": R, "3[3].pbshead": R}),
        ("02b-array-after-subjob-qdel", {"3[].pbshead": R, "3[1].pbshead": JobState.CANCELLED}),
        ("03-job-qdel-array", {"3[].pbshead": JobState.CANCELLED, "3[2].pbshead": JobState.CANCELLED}),
        ("04-job-array-mixed", {"40[].pbshead": FAILED, "40[0].pbshead": DONE, "40[2].pbshead": FAILED}),
        ("04-job-array-ok", {"41[].pbshead": DONE, "41[5].pbshead": DONE}),
    ],
)
def test_the_jobs_of_an_array(recording: str, states: dict[str, JobState]) -> None:
    for id, state in states.items():
        assert job_state(own_job(job_record(recording, id))) is state


def test_times_and_nodes_of_a_job_that_ended() -> None:
    found = report("03-job-qdel-running")
    assert found.start == parse_time("Sat Nov 21 06:07:45 2026")
    assert found.end == parse_time("Sat Nov 21 06:08:17 2026")
    assert found.nodes == ("node01", "node02")
    assert found.reason.endswith("and terminated by alice@pbshead")


def test_a_job_that_never_started_has_no_start() -> None:
    for recording in ("03-job-qdel-queued", "04-job-depend-fail", "02-job-queued-top", "05-R-preempted"):
        assert report(recording).start is None
    assert report("13-up-again-long").start is None  # runs on, but the server has forgotten since when


def test_a_waiting_job_has_its_plan_and_a_running_one_none_that_is_stale() -> None:
    assert report("02-job-queued-top").planned_start == parse_time("Sat Nov 21 06:37:46 2026")
    assert report("03b-job-stf-running").planned_start is None


def test_a_job_that_can_never_run_says_why() -> None:
    assert report("02-job-never-fits").never == (
        "PBS says that it can never run: Insufficient amount of resource: ncpus (R: 64 A: 16 T: 16)"
    )
    assert report("02-job-queued-top").never == ""
    held = msgspec.structs.replace(
        own_job(job_record("02-job-held")), comment="job held, too many failed attempts to run"
    )
    assert "until a person releases it" in report_of(held, job_state(held)).never


def test_the_walltime_of_a_shrink_to_fit_job_is_the_most_before_its_start_and_the_cut_one_after() -> None:
    assert own_job(job_record("02-job-stf")).limit == 36_000
    assert own_job(job_record("03b-job-stf-running")).limit < 240
    assert report("02-job-stf").granted is None
    assert report("03b-job-stf-running").granted == own_job(job_record("03b-job-stf-running")).limit


def test_a_suspended_job_holds_nothing_that_others_see() -> None:
    job = own_job(job_record("05-S-preempted"))
    assert (job.state, job_state(job)) == ("S", R)


@pytest.mark.parametrize("letter", ["M", "?", "", "RUNNING"])
def test_an_unknown_letter_never_means_an_end(letter: str) -> None:
    assert job_state(PbsJob(id="1.s", tag="", owner="", state=letter)) is JobState.UNKNOWN


@pytest.mark.parametrize(
    ("status", "state"),
    [(-1, FAILED), (-3, FAILED), (-11, JobState.PREEMPTED), (-14, JobState.NODE_FAILED), (-27, FAILED)],
)
def test_statuses_of_pbs_itself(status: int, state: JobState) -> None:
    job = PbsJob(id="1.s", tag="", owner="", state="F", substate=93, exit_status=status)
    assert job_state(job) is state


@pytest.mark.parametrize(
    ("recording", "request_"),
    [
        ("02-job-queued-top", Request(16, 3600)),
        ("02-job-stf", Request(2, 36_000)),
        ("03b-job-stf-running", Request(1, 36_000)),
    ],
)
def test_a_job_is_reported_with_what_it_asks_for(recording: str, request_: Request) -> None:
    found = report(recording)
    assert (found.processors, found.limit) == (request_.p, request_.tr)


LONG = "+".join(["(node01:ncpus=1:mem=1048576kb)"] * 9)


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        (
            f"Job run at Sat Nov 21 at 06:10 on {LONG} and finished",
            "Job run at Sat Nov 21 at 06:10 and finished",
        ),
        (
            "Job run at Sat Nov 21 at 06:10 on (n3[0]:ncpus=2+n3[1]:ncpus=2) and exceeded resource walltime",
            "Job run at Sat Nov 21 at 06:10 and exceeded resource walltime",
        ),
        (f"Job run at Sat Nov 21 at 06:10 on {LONG[:-9]}", "Job run at Sat Nov 21 at 06:10"),
        ("Can Never Run: ncpus on (R: 64 A: 16 T: 16)", "Can Never Run: ncpus on (R: 64 A: 16 T: 16)"),
    ],
)
def test_the_reason_is_the_comment_without_the_chunks(comment: str, reason: str) -> None:
    assert sentence(comment) == reason
