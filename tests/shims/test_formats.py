from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.shims import formats
from adaptor.shims.fields import duration, fields_of, record
from adaptor.shims.jobs import Job, job_of
from tests.shims.test_jobs import view

FIELDS = fields_of("ada", 1000)


def a_job() -> Job:
    job = job_of(view(), 30.0)
    assert job is not None
    return job


def squeue(text: str, *, header: bool = False) -> list[str]:
    return [*formats.squeue_rows(formats.of_letters(text, FIELDS), [a_job()], header=header)]


def sacct(text: str, between: str = "", *, header: bool = False, ends: bool = False) -> list[str]:
    columns = formats.of_sacct(text, FIELDS)
    return [*formats.sacct_rows(columns, [a_job()], header=header, between=between, ends=ends)]


def test_the_usual_format_of_squeue() -> None:
    assert squeue(formats.SQUEUE, header=True) == [
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)",
        "         469762049   adaptor      sim      ada CD       0:05      1 n1",
    ]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("%i|%T|%M", "469762049|COMPLETED|0:05"),
        ("%.5j|%-5j|%5j|", "  sim|%-5j|sim  |"),
        ("%2i|%k|%%", "46||%"),
        ("%A %F %K %C %l %L %u %U", "469762049 469762049 N/A 2 1:00 0:55 ada 1000"),
    ],
)
def test_letters(text: str, row: str) -> None:
    assert squeue(text) == [row]


def test_names_of_squeue() -> None:
    columns = formats.of_names("JobID:12,State:.10,Name:5|,nothing:3,UserName", FIELDS)
    header, row = formats.squeue_rows(columns, [a_job()], header=True)
    assert header.startswith("JOBID            STATENAME |NOTUSER")
    assert row == "469762049    COMPLETEDsim  |" + "".ljust(3) + "ada".ljust(20)


def test_sacct_for_programs() -> None:
    assert sacct("JobID,State%3,exitcode", "|", header=True) == [
        "JobID|State|ExitCode",
        "469762049|COMPLETED|0:0",
    ]
    assert sacct("jobid,nonsense,maxrss", ";", ends=True) == ["469762049;;1024K;"]


def test_sacct_for_people() -> None:
    assert sacct("JobID,JobName%-4,State%5", header=True) == [
        "JobID        JobN State ",
        "------------ ---- ----- ",
        "469762049    sim  COMP+ ",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "00:00:05"), (3600, "01:00:00"), (90061, "1-01:01:01"), (None, "UNLIMITED")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@given(st.text(max_size=40))
def test_any_format_is_answered(text: str) -> None:
    squeue(text, header=True)
    sacct(text, "|", header=True)
    [*formats.squeue_rows(formats.of_names(text, FIELDS), [a_job()], header=True)]


def test_records() -> None:
    text = record(a_job(), user="ada(1000)")
    assert text.startswith("JobId=469762049 JobName=sim\n   UserId=ada(1000) JobState=COMPLETED Reason=None")
