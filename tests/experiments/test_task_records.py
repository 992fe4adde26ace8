"""Tasks of workflows: what is read, how memory is wasted, and what the first bag says of the second."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from adaptor_experiments.commands.replay import replay
from adaptor_experiments.task_records import TaskRecord, by_read, next_bags, read_records, table, waste_of
from adaptor_simulation.files import TraceError
from tests.simulation.invoking_replay import call

HEAD = "process,status,submit,realtime,time,memory,peak_rss"
GB = 10**9


def task(peak: int, *, ran: float = 3600.0, asked: int = 8 * GB, at: float = 0.0) -> TaskRecord:
    return TaskRecord("align", at, ran, 36_000.0, asked, peak)


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


def test_a_killed_attempt_loses_all_that_it_held() -> None:
    assert waste_of(task(2 * GB), 5 * GB).wasted == 3.0 * GB * 3600
    short = waste_of(task(6 * GB), 2 * GB)
    assert short.killed == 2
    assert short.wasted == (2 + 4 + 2) * GB * 3600


def test_the_first_half_of_a_kind_says_what_the_second_needs() -> None:
    records = [task(GB, at=float(each)) for each in range(10)] + [task(7 * GB, at=99.0)]
    (bag,) = next_bags(records)
    assert len(bag.tasks) == 6
    assert GB < bag.memory < 1.4 * GB
    assert bag.mean == pytest.approx(3600.0)
    assert not next_bags(records[:9]), "too few"
    (line,) = table({"flow": [bag]})
    assert line[:3] == ("flow", "1", "6")
    assert line[3:5] == ("12.0 GB·h", "36.0 GB·h")
    assert line[6] == "3"
    assert line[8] == "1 of 1 kind"
    assert line[-4:-2] == line[5:7], "nothing is known of what they read"
    assert next(table({"none": []}))[:2] == ("none", "0")


def test_what_a_task_reads_says_what_it_needs() -> None:
    """Peaks of the bytes read and 100 more; the tasks that read most come last."""
    records = [
        msgspec.structs.replace(task(1000 * read + 100, ran=10.0 * read, at=float(read)), read=1000.0 * read)
        for read in range(1, 41)
    ]
    (bag,) = next_bags(records)
    last = bag.tasks[-1]
    assert bag.memory_of(last) == pytest.approx(bag.margin * last.peak)
    assert bag.runtime_of(last) == pytest.approx(last.ran)
    (line,) = table({"flow": [bag]})
    assert line[-3:] == ("0", "0%", "100%")
    blind = msgspec.structs.replace(last, read=None)
    assert (bag.memory_of(blind), bag.runtime_of(blind)) == (bag.memory, bag.mean)


def test_reading_that_says_nothing_leaves_all_tasks_alike() -> None:
    same = [msgspec.structs.replace(task(peak * GB), read=5.0) for peak in (1, 2, 3)]
    found = by_read(same)
    assert found is not None
    assert found.memory.most(5.0) == found.memory.most(99.0) == 3 * GB
    falling = [msgspec.structs.replace(task((4 - read) * GB), read=float(read)) for read in (1, 2, 3)]
    less = by_read(falling)
    assert less is not None
    assert less.memory.slope == 0.0
    assert by_read([*same, task(GB)]) is None


def test_bytes_read_are_a_column_that_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [
        "align,COMPLETED,1,60000,3600000,8000000000,5,77",
        "align,COMPLETED,2,60000,3600000,8000000000,5,-",
    ]
    path.write_text("\n".join((f"{HEAD},rchar", *rows)))
    assert [record.read for record in read_records(path)[0]] == [77.0, None]


def test_the_command_prints_the_table(tmp_path: Path) -> None:
    rows = [f"align,COMPLETED,{each},60000,3600000,8000000000,500000000" for each in range(12)]
    path = tmp_path / "trace_x.csv"
    path.write_text("\n".join((HEAD, *rows, "align,FAILED,1,1,1,1,1")))
    result = call(replay, "tasks", path)
    assert result.exit_code == 0
    assert result.output.startswith("trace_x: 1 task left out: not completed")
    assert "trace_x   1      6" in result.output
