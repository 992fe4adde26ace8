"""Bags of real workflows on a queue: arrays, and heuristics that know the earlier bag or nothing."""

from __future__ import annotations

from pathlib import Path

from adaptor_experiments.commands.replay import replay
from adaptor_experiments.next_bags import next_bags
from adaptor_experiments.task_bags import ASKED, Bag, Played, table
from adaptor_experiments.task_records import TaskRecord
from tests.simulation.invoking_replay import call

HEAD = "process,status,submit,realtime,time,memory,peak_rss"


def bag(limit: float | None) -> Bag:
    records = [TaskRecord("align", float(each), 59.5 + each, limit, 10**9, 10**8) for each in range(10)]
    (found,) = next_bags(records)
    return Bag("flow", found)


def test_a_job_of_the_array_has_what_its_user_asked() -> None:
    asked = bag(600.0)
    assert asked.runtimes.tolist() == [65, 66, 67, 68, 69]
    jobs = asked.as_asked(68_000)
    assert jobs is not None
    assert [(job.limit, job.tasks) for job in jobs] == [(600, (each,)) for each in asked.runtimes.tolist()]
    longest = asked.as_asked(300)
    assert longest is not None
    assert {job.limit for job in longest} == {300}
    assert bag(None).as_asked(68_000) is None


def test_the_table_has_each_workflow_and_all_of_them() -> None:
    rows = [
        Played(workflow=name, way="elastic-100", relative=relative, unused=0.5, jobs=2)
        for name, relative in (("a", 1.0), ("b", 4.0))
    ]
    assert list(table(rows)) == [
        ("a", "elastic-100", "1", "1.00", "1.00", "50%", "2"),
        ("b", "elastic-100", "1", "4.00", "4.00", "50%", "2"),
        ("all", "elastic-100", "2", "2.00", "4.00", "50%", "2"),
    ]


def test_the_command_plays_bags_on_a_queue(tmp_path: Path) -> None:
    rows = [f"align,COMPLETED,{each},60000,3600000,8000000000,500000000" for each in range(12)]
    path = tmp_path / "trace_x.csv"
    path.write_text("\n".join((HEAD, *rows)))
    result = call(replay, "tasks", path, "--trace", "fixtures/traces/small.swf", "--processes", 1)
    assert result.exit_code == 0
    for way in (ASKED, "array-1.5", "elastic-100, knows nothing", "completion-6, knows the earlier bag"):
        assert f"trace_x   {way} " in result.output
