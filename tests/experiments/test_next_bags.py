"""What the first bag of a kind says of the second: memory wasted, runtimes, and what inputs say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor_experiments.commands.replay import replay
from adaptor_experiments.next_bags import Line, line_by_input, next_bags, table, waste_of
from adaptor_experiments.task_records import TaskRecord
from tests.simulation.invoking_replay import call

GB = 10**9


def task(peak: int, *, ran: float = 3600.0, asked: int = 8 * GB, at: float = 0.0) -> TaskRecord:
    return TaskRecord("align", at, ran, 36_000.0, asked, peak)


def test_a_killed_attempt_loses_all_that_it_held() -> None:
    assert waste_of(2 * GB, 3600.0, 5 * GB).wasted == 3.0 * GB * 3600
    short = waste_of(6 * GB, 3600.0, 2 * GB)
    assert short.killed == 2
    assert short.wasted == (2 + 4 + 2) * GB * 3600


def test_the_first_half_of_a_kind_says_what_the_second_needs() -> None:
    records = [task(GB, at=float(each)) for each in range(10)] + [task(7 * GB, at=99.0)]
    (bag,) = next_bags(records)
    assert len(bag.tasks) == 6
    assert bag.memory is not None
    assert GB < bag.memory < 1.4 * GB
    assert bag.earlier.mean == pytest.approx(3600.0)
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
        msgspec.structs.replace(task(1000 * read + 100, ran=10.0 * read, at=float(read)), input=1000.0 * read)
        for read in range(1, 41)
    ]
    (bag,) = next_bags(records)
    last = bag.tasks[-1]
    assert last.peak is not None
    assert bag.memory_of(last) == pytest.approx(bag.margin * last.peak)
    assert bag.runtime_of(last) == pytest.approx(last.ran)
    (line,) = table({"flow": [bag]})
    assert line[-3:] == ("0", "0%", "100%")
    blind = msgspec.structs.replace(last, input=None)
    assert (bag.memory_of(blind), bag.runtime_of(blind)) == (bag.memory, bag.earlier.mean)


def test_records_without_memory_and_limits_say_what_they_can() -> None:
    bare = [TaskRecord("align", float(each), 60.0, None, None, None, 5.0) for each in range(10)]
    (bag,) = next_bags(bare)
    assert bag.memory is None
    assert not bag.measured
    (line,) = table({"flow": [bag]})
    assert line == ("flow", "1", "5", "", "", "", "", "", "1 of 1 kind", "", "", "100%", "100%")


def test_input_that_says_nothing_leaves_all_tasks_alike() -> None:
    def line(*pairs: tuple[float, float]) -> Line | None:
        tasks = [msgspec.structs.replace(task(GB), input=size) for size, _ in pairs]
        return line_by_input(tasks, [figure for _, figure in pairs])

    same = line((5.0, 1.0), (5.0, 2.0), (5.0, 3.0))
    assert same is not None
    assert same.most(5.0) == same.most(99.0) == 3.0
    falling = line((1.0, 3.0), (2.0, 2.0), (3.0, 1.0))
    assert falling is not None
    assert falling.slope == 0.0
    assert line_by_input([task(GB)], [1.0]) is None
    assert line_by_input([msgspec.structs.replace(task(GB), input=1.0)], [None]) is None


def test_the_command_prints_the_table(tmp_path: Path) -> None:
    rows = [f"align,COMPLETED,{each},60000,3600000,8000000000,500000000" for each in range(12)]
    path = tmp_path / "trace_x.csv"
    path.write_text(
        "\n".join(("process,status,submit,realtime,time,memory,peak_rss", *rows, "align,FAILED,1,1,1,1,1"))
    )
    result = call(replay, "tasks", path)
    assert result.exit_code == 0
    assert result.output.startswith("trace_x: 1 task left out: not completed")
    assert "trace_x   1      6" in result.output
