"""Records of tasks of workflows: what is read of a trace of Nextflow."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from adaptor_experiments.task_records import TaskRecord, read_records
from adaptor_simulation.files import TraceError

HEAD = "process,status,submit,realtime,time,memory,peak_rss"
GB = 10**9


def test_a_trace_of_nextflow_is_read_in_the_order_of_submission(tmp_path: Path) -> None:
    rows = [
        "align,COMPLETED,9000,60000,3600000,8000000000,500000000",
        "align,FAILED,1,1,1,1,1",
        "align,COMPLETED,1000,-,3600000,8000000000,500000000",
        "align,COMPLETED,1000,60000,3600000,8000000000,0",
        "index,COMPLETED,2000,30000,3600000,8000000000,500000000",
    ]
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress("\n".join((HEAD, *rows)).encode()))
    records, left_out = read_records(path)
    assert records == [
        TaskRecord("index", 2.0, 30.0, 3600.0, 8 * GB, GB // 2),
        TaskRecord("align", 9.0, 60.0, 3600.0, 8 * GB, GB // 2),
    ]
    assert left_out == [
        "1 task left out: not completed",
        "1 task left out: what they asked for or used is not known",
        "1 task left out: what they asked for or used is zero",
    ]


def test_what_is_no_trace_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    with pytest.raises(TraceError, match="No such file"):
        read_records(path)
    path.write_text("a,b\n")
    with pytest.raises(TraceError, match="a trace of Nextflow has the column process"):
        read_records(path)
    path.write_bytes(b"\xfd7zXZ\x00 cut")
    with pytest.raises(TraceError, match=r"trace\.csv: "):
        read_records(path)


def test_bytes_read_are_a_column_that_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [
        "align,COMPLETED,1,60000,3600000,8000000000,5,77",
        "align,COMPLETED,2,60000,3600000,8000000000,5,-",
    ]
    path.write_text("\n".join((f"{HEAD},rchar", *rows)))
    assert [record.input for record in read_records(path)[0]] == [77.0, None]
