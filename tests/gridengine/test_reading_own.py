"""Our own jobs, in the system and ended, as the recorded cell tells of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from adaptor.reports import JobState, OwnJob
from adaptor_gridengine import reading
from adaptor_gridengine.parse import EndedRecord, GridJob
from adaptor_gridengine.reading import ended_report, report_of
from tests.backends.answering import answer_of
from tests.gridengine.recorded_cell import RecordedCell, backend, recorded


def record(**changes: Any) -> EndedRecord:
    """Of a job of 100 s that ended by itself after 50."""
    usual = {"number": "1", "name": "adaptor-1.1", "owner": "bob", "host": "n1", "start": 10.0, "end": 60.0}
    return EndedRecord(**{**usual, "failed": 0, "exit_status": 0, "slots": 1, "limit": 100.0, **changes})


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, JobState.COMPLETED),
        ({"exit_status": 3}, JobState.FAILED),
        ({"failed": 1, "start": 0.0, "end": 0.0}, JobState.FAILED),
        ({"failed": 100, "exit_status": 137}, JobState.CANCELLED),
        ({"exit_status": 140}, JobState.CANCELLED),
        ({"exit_status": 140, "end": 110.0}, JobState.WALLTIME),
        ({"failed": 100, "exit_status": 137, "end": 115.0}, JobState.WALLTIME),
        ({"failed": 37, "exit_status": 137, "end": 111.0}, JobState.WALLTIME),
        ({"failed": 37, "exit_status": 137}, JobState.FAILED),
        ({"failed": 100, "exit_status": 137, "limit": math.inf}, JobState.CANCELLED),
        ({"failed": 25}, JobState.NODE_FAILED),
    ],
)
def test_how_a_job_ended(changes: dict[str, Any], state: JobState) -> None:
    report = ended_report(record(**changes))
    assert report.state is state
    assert (report.start, report.end) == (changes.get("start", 10) or None, changes.get("end", 60) or None)


def test_a_job_in_error_never_starts() -> None:
    job = GridJob(number="1", name="adaptor-1.1", owner="bob", state="Eqw", limit=60)
    report = report_of(OwnJob("1", "adaptor-1.1"), job)
    assert (report.state, report.start, report.limit) == (JobState.QUEUED, None, 60)
    assert "could not start it" in report.never


def test_running_and_waiting_jobs_are_found_by_id_and_tag() -> None:
    cell = RecordedCell(qstat=recorded("2-busy-qstat.xml"))
    found = {report.id: report for report in backend(cell).jobs(["14", "999"], "adaptor-1.")}
    assert {id: report.state for id, report in found.items()} == {
        "11": JobState.RUNNING,
        "14": JobState.QUEUED,
    }
    assert (found["11"].nodes, found["11"].processors, found["11"].granted) == (("n2", "n4"), 6, 600)
    assert "qacct" in [words[0] for words in cell.asked], "999 may have ended"


def test_ended_jobs_are_told_from_their_records() -> None:
    cell = RecordedCell()
    site = backend(cell)
    (found,) = site.jobs(["11"], "no such tag")
    assert (found.state, found.tag, found.end) == (JobState.CANCELLED, "adaptor-1.7", 1795643489.0)
    cell.asked.clear()
    site.jobs(["11"], "no such tag")
    assert [words[0] for words in cell.asked] == ["qstat"], "how it ended is known"


def test_a_job_without_a_record_is_unknown_until_it_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    site = backend(RecordedCell())
    (found,) = site.jobs(["22"], "no such tag")
    assert (found.state, found.tag) == (JobState.UNKNOWN, "adaptor-1.8")
    monkeypatch.setattr(reading, "_LAG", -1.0)
    (found,) = site.jobs(["22"], "no such tag")
    assert (found.state, found.start) == (JobState.CANCELLED, None)


def test_a_job_that_was_deleted_while_it_waited_is_cancelled_at_once() -> None:
    cell = RecordedCell(qdel="root has deleted job 22\nroot has registered the job 11 for deletion\n")
    cell.answers["qstat"] = recorded("3-own-qstat.xml").replace("<state>z</state>", "<state>qw</state>")
    site = backend(cell)
    site.cancel([OwnJob("22", "adaptor-1.8"), OwnJob("11", "adaptor-1.7")])
    assert sorted(cell.command("qdel")) == ["11", "22"]
    del cell.answers["qstat"]
    found = {report.id: report.state for report in site.jobs(["22", "11"], "no such tag")}
    assert found == {"22": JobState.CANCELLED, "11": JobState.CANCELLED}


def test_where_records_cannot_be_read_an_end_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    site = backend(RecordedCell(qacct=answer_of(1, "", "accounting: Permission denied")))
    monkeypatch.setattr(reading, "_LAG", -1.0)
    (found,) = site.jobs(["11"], "no such tag")
    assert found.state is JobState.UNKNOWN


def test_local_jobs_are_learned_from() -> None:
    ended = backend(RecordedCell()).ended_jobs()
    assert all(job.owner == "root" for job in ended)
    assert (15.0, 16.0) in [(job.limit, job.ran) for job in ended]
    assert len(ended) == 9, "all but the pilot"


def test_a_number_that_was_given_out_again_is_not_deleted_and_has_the_ends_of_both() -> None:
    cell = RecordedCell(qstat=recorded("2-busy-qstat.xml").replace("adaptor-1.7", "mine"))
    site = backend(cell)
    site.cancel([OwnJob("11", "adaptor-1.7")])
    assert "qdel" not in [words[0] for words in cell.asked]
    found = {report.tag: report.state for report in site.jobs(["11"], "adaptor-1.")}
    assert found == {"mine": JobState.RUNNING, "adaptor-1.7": JobState.CANCELLED}


def test_what_a_site_prints_before_an_answer_is_left_out() -> None:
    said = "Your password expires in 33 days\n\n33\n"
    site = backend(RecordedCell(qstat=said + recorded("2-busy-qstat.xml")))
    assert "11" in [report.id for report in site.jobs([], "adaptor-1.")]


ARRAY = "adaptor-1.hpc.12-15"


def qstat_of_array(*rows: tuple[str, str]) -> str:
    """Of an array with the number 42: state and tasks of each row."""
    lists = "".join(
        f"<job_list><JB_job_number>42</JB_job_number><JB_name>{ARRAY}</JB_name><JB_owner>root</JB_owner>"
        f"<state>{state}</state><slots>1</slots><tasks>{tasks}</tasks></job_list>"
        for state, tasks in rows
        if state != "r"
    )
    running = "".join(
        f"<Queue-List><name>all.q@n{tasks}</name><job_list><JB_job_number>42</JB_job_number>"
        f"<JB_name>{ARRAY}</JB_name><JB_owner>root</JB_owner><state>r</state><slots>1</slots>"
        f"<JAT_start_time>2026-11-25T21:45:38</JAT_start_time><tasks>{tasks}</tasks></job_list></Queue-List>"
        for state, tasks in rows
        if state == "r"
    )
    return f"<job_info><queue_info>{running}</queue_info><job_info>{lists}</job_info></job_info>"


def test_each_task_of_an_array_is_reported_with_the_tag_of_its_pilot() -> None:
    cell = RecordedCell(qstat=qstat_of_array(("r", "1"), ("qw", "2-3:1"), ("z", "4")))
    found = {report.id: (report.tag, report.state) for report in backend(cell).jobs([], "adaptor-1.hpc.")}
    assert found == {
        "42.1": ("adaptor-1.hpc.12", JobState.RUNNING),
        "42.2": ("adaptor-1.hpc.13", JobState.QUEUED),
        "42.3": ("adaptor-1.hpc.14", JobState.QUEUED),
        "42.4": ("adaptor-1.hpc.15", JobState.UNKNOWN),
    }


def test_a_task_of_an_array_ends_by_the_record_of_its_own() -> None:
    cell = RecordedCell(
        qstat=qstat_of_array(("r", "1")),
        qacct=recorded("qacct.txt").replace("jobnumber    11 ", "jobnumber    42 ").replace("undefined", "2"),
    )
    found = {report.id: report.state for report in backend(cell).jobs(["42.1", "42.2"], "adaptor-1.hpc.")}
    assert found == {"42.1": JobState.RUNNING, "42.2": JobState.CANCELLED}


def test_tasks_of_an_array_are_cancelled_one_by_one() -> None:
    cell = RecordedCell(
        qstat=qstat_of_array(("r", "1"), ("qw", "2-4:1")), qdel="root has deleted job-array task 42.3\n"
    )
    site = backend(cell)
    site.cancel(
        [OwnJob("42.3", "adaptor-1.hpc.14"), OwnJob("42.1", "another"), OwnJob("42.9", "adaptor-1.hpc.20")]
    )
    assert cell.command("qdel") == ["42.3"]
    cell.answers["qstat"] = qstat_of_array(("r", "1"), ("qw", "2,4"), ("z", "3"))
    (found,) = site.jobs(["42.3"], "no such tag")
    assert (found.tag, found.state) == ("adaptor-1.hpc.14", JobState.CANCELLED)
