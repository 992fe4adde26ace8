"""A cluster's own history to a trace."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.normalise import normalise
from adaptor_simulation.traces.sacct import from_sacct
from adaptor_simulation.traces.swf import Field, Status, format_trace
from adaptor_simulation.traces.swf_read import parse_trace

BERLIN = ZoneInfo("Europe/Berlin")
HEADER = (
    "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|ReqCPUS|State|User|Group|Partition|QOS\n"
)
DONE = "12|2026-01-01T00:00:10|2026-01-01T00:00:20|2026-01-01T00:01:20|60|2|4|4|COMPLETED|ann|g|batch|day\n"
STEP = "12.batch|2026-01-01T00:00:10|2026-01-01T00:00:20|2026-01-01T00:01:20|60||4|4|COMPLETED||||\n"
LATE = "11|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:02:03|123|2|8|8|TIMEOUT|bob|g|long|day\n"
GONE = "13|2026-01-01T00:00:30|None|2026-01-01T00:00:40|0|2|0|8|CANCELLED by 1000|bob|g|batch|day\n"
WAITS = "14|2026-01-01T00:00:30|Unknown|Unknown|0|2|0|8|PENDING|bob|g|batch|day\n"
ENDLESS = (
    "15|2026-01-01T00:01:00|2026-01-01T00:01:00|2026-01-01T00:01:03|3|UNLIMITED|8|8|FAILED|bob|g|batch|\n"
)


def test_jobs_in_the_order_of_submission():
    trace = from_sacct(HEADER + DONE + STEP + LATE + GONE + WAITS + ENDLESS, zone=BERLIN, processors=16)
    assert trace.column(Field.NUMBER).tolist() == [11, 12, 13, 15]
    assert trace.column(Field.SUBMIT).tolist() == [0, 10, 30, 60]
    assert trace.column(Field.WAIT).tolist() == [0, 10, -1, 0]
    assert trace.column(Field.RUN).tolist() == [123, 60, -1, 3]
    assert trace.column(Field.REQUESTED_TIME).tolist() == [120, 120, 120, -1]
    assert trace.column(Field.ALLOCATED).tolist() == [8, 4, -1, 8]
    assert trace.column(Field.REQUESTED).tolist() == [8, 4, 8, 8]
    assert trace.column(Field.STATUS).tolist() == [
        Status.FAILED,
        Status.COMPLETED,
        Status.CANCELLED,
        Status.FAILED,
    ]
    assert trace.column(Field.USER).tolist() == [1, 2, 1, 1]
    assert trace.column(Field.PARTITION).tolist() == [1, 2, 2, 2]
    assert trace.column(Field.QUEUE).tolist() == [1, 1, 1, -1]
    header = trace.header
    assert header.number("UnixStartTime") == 1767222000  # midnight in Berlin
    assert (header.text("TimeZoneString"), header.number("MaxProcs")) == ("Europe/Berlin", 16)
    assert header.all("Partition") == ["1 long", "2 batch"]
    assert header.notes == ["1 jobs that had not ended and 1 lines of steps were left out"]


def test_it_can_be_written_read_and_replayed():
    trace = from_sacct(HEADER + DONE + LATE, zone=BERLIN, processors=16)
    written = format_trace(trace)
    assert "ann" not in written
    jobs, _ = normalise(parse_trace(written.encode(), "x"), 16)
    assert jobs.table().tolist() == [[0, 120, 120, 8], [10, 60, 120, 4]]


def test_other_columns_and_forms_do_as_well():
    text = (
        "State|JobID|NCPUS|Timelimit|Elapsed|Start|Submit\n"
        "COMPLETED|7_1|2|1-00:00:00|00:01:40|1767222005|1767222000\n"
        "COMPLETED|7_2|2|Partition_Limit|01:00|2026-01-01T00:00:05+01:00|2026-01-01T00:00:00+01:00\n"
    )
    trace = from_sacct(text)
    assert trace.column(Field.NUMBER).tolist() == [1, 2]  # 7_1 is no number
    assert trace.column(Field.RUN).tolist() == [100, 60]
    assert trace.column(Field.REQUESTED_TIME).tolist() == [86400, -1]
    assert trace.column(Field.WAIT).tolist() == [5, 5]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "x: empty; make it with: sacct"),
        ("JobID|State\n1|COMPLETED\n", "x:2: no column Submit; make it with: sacct"),
        ("Submit\n1\n", "x:2: no column State"),
        (HEADER + "1|2\n", "x:2: 13 columns expected, 2 found"),
        (
            HEADER + "\n" + DONE.replace("2026-01-01T00:00:10", "yesterday"),
            "x:3: Submit: 'yesterday' is no time",
        ),
        (HEADER + DONE.replace("2026-01-01T00:00:10", "Unknown"), "x:2: Submit: a job without"),
        (HEADER + DONE.replace("|60|", "|sixty|"), "x:2: ElapsedRaw: 'sixty' is no number"),
        (HEADER + DONE.replace("|60|", f"|{10**20}|"), f"x:2: ElapsedRaw: '{10**20}' is too large"),
        (HEADER + DONE.replace("2026-01-01T00:00:10", str(10**20)), f"x:2: Submit: '{10**20}' is no time"),
    ],
)
def test_damaged_output_is_told_with_its_line(text, says):
    with pytest.raises(TraceError) as error:
        from_sacct(text, zone=BERLIN, name="x")
    assert str(error.value).startswith(says)


def test_a_history_of_nothing():
    assert len(from_sacct(HEADER)) == 0
