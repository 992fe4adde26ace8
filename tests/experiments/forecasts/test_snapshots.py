"""Snapshots of a queue: what is read, what is left out, and forecasts from what had started by then."""

from __future__ import annotations

import tarfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from adaptor_experiments.forecasts.snapshots import cover_table, foretell, near_table, read_snapshots
from adaptor_simulation.files import TraceError

HEAD = (
    "job_unique_id,poll_time,submit_time,start_time,"  # as in the public set
    "req_cpus,time_limit_sec,req_tres,account_id,q_a_jobs_above"
)
NOON = datetime(2021, 5, 1, 12)


def row(
    id: int, day: int = 0, *, wait: float = 1.0, before: float = 1.0, gpus: int = 0, cpus: int = 4
) -> str:
    """Hours."""
    poll = NOON + timedelta(days=day)
    times = (poll, poll - timedelta(hours=before), poll + timedelta(hours=wait))
    tres = f"cpu={cpus}" + (f",gres/gpu:p100={gpus}" if gpus else "")
    return f'{id},{",".join(map(str, times))},{cpus},3600,"{tres}",77,3'


def written(folder: Path, *rows: str, name: str = "day.csv", head: str = HEAD) -> Path:
    (folder / name).write_text("\n".join((head, *rows)) + "\n")
    return folder


def test_a_job_is_what_the_columns_say(tmp_path: Path) -> None:
    found = read_snapshots(written(tmp_path, row(1, wait=2.0, before=3.0, gpus=2)))
    (polled,) = found.polled
    job = polled.seen.job
    assert (job.processors, job.limit, job.gpus, job.owner, job.ahead) == (4, 3600.0, True, "77", 3)
    assert (job.waited, polled.seen.wait) == (3 * 3600.0, 2 * 3600.0)


def test_what_cannot_be_judged_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = row(1), row(1), row(2, wait=-1.0), row(3, before=-1.0), row(4, cpus=0)
    found = read_snapshots(written(tmp_path, *rows))
    assert len(found.polled) == 1
    assert found.notes == [
        "1 job left out: twice in a snapshot",
        "1 job left out: they started before the snapshot",
        "1 job left out: they were submitted after the snapshot",
        "1 job left out: no processors or no time limit known",
    ]


def test_archives_and_answers_of_the_scheduler_are_read_too(tmp_path: Path) -> None:
    written(tmp_path, row(1))
    with tarfile.open(tmp_path / "days.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "day.csv", "day.csv")
    (tmp_path / "day.csv").unlink()
    answers = "2022-12-01 12:00:00,2022-12-01 12:05:00"
    written(tmp_path, answers, name="answers.csv", head="true_start_time,estimate_start_time")
    found = read_snapshots(tmp_path)
    assert (len(found.polled), found.errors) == (1, [300.0])


def test_what_is_no_snapshot_is_an_error_with_the_place(tmp_path: Path) -> None:
    with pytest.raises(
        TraceError, match="no snapshot of a queue there: a CSV file with the columns poll_time"
    ):
        read_snapshots(tmp_path)
    with pytest.raises(TraceError, match="No such file"):
        read_snapshots(tmp_path / "gone")
    written(tmp_path, row(1).replace("2021-05-01", "yesterday"))
    with pytest.raises(TraceError, match=r"day.csv: poll_time: 'yesterday 12:00:00' is no time such as"):
        read_snapshots(tmp_path)
    written(tmp_path, "2021-05-01 12:00:00", head="poll_time")
    with pytest.raises(TraceError, match=r"day.csv: a snapshot needs the column submit_time"):
        read_snapshots(tmp_path)
    (tmp_path / "day.csv").unlink()
    (tmp_path / "cut.tar.xz").write_bytes(b"\xfd7zXZ\x00 cut")
    with pytest.raises(
        TraceError, match=r"cut.tar.xz: file could not be opened successfully: - method gz.*fetch it again"
    ):
        read_snapshots(tmp_path)


def test_forecasts_know_only_what_had_started_by_then(tmp_path: Path) -> None:
    """Wide jobs wait for 20 hours, narrow ones for 2; on the last day all wait for 5."""
    days = [
        row(
            1000 * day + each,
            day,
            wait=5.0 if day == 3 else 20.0 if each % 2 else 2.0,
            cpus=256 if each % 2 else 1,
        )
        for day in range(4)
        for each in range(400)
    ]
    read = read_snapshots(written(tmp_path, *days))
    rows = foretell(read, 300, 1)
    assert {each.polled.at for each in rows} == {job.at for job in read.polled} - {NOON.timestamp()}
    for each in rows:
        hours = 20.0 if each.polled.seen.job.processors == 256 else 2.0
        assert each.past.like.value == each.past.shape.value == each.shape == 3600 * hours
    near = {line[0]: line for line in near_table(rows, [30.0, 3000.0])}
    assert near["like jobs"][5] == "66.7%"
    assert near["--test-only"][2:5] == ("50%", "50%", "100%")
    intervals = [line[0] for line in cover_table(rows)]
    assert intervals[:2] == ["mixed", "mixed, by its past"]
    assert intervals[2].startswith("while ")
    late = foretell(read, 300, 1, (0.9, 1.0))
    assert {each.polled.at for each in late} == {max(job.at for job in read.polled)}
