"""Recorded answers to rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import SchedulerError
from backends.slurm import fields, parse
from backends.slurm.parse import parse_associations, parse_qos
from backends.slurm.placing.gres import License, gres_counts, parse_license_rows, parse_node_details
from backends.slurm.placing.job_records import JobRecords
from backends.slurm.placing.restriction import parse_licenses
from backends.slurm.questions import Questions
from tests.backends.slurm.answers import MARK, RELEASES, squeue_line
from tests.backends.slurm.answers import recorded as answered
from tests.fuzzing import damaged, fuzz, survives
from tests.fuzzing import recorded as texts_of

Recorded = Callable[[str], str]


def test_a_running_job_that_has_its_nodes_alone(recorded: Recorded) -> None:
    row = {row.id: row for row in parse.parse_queue(recorded("plain/queue.txt").encode(), MARK)}["1"]
    assert (row.state, row.processors, row.node_count, row.limit) == ("RUNNING", 8, 2, 3600)
    assert (row.start, row.end) == (1795250485, 1795254085)
    assert row.nodes == ("n1", "n2")


def test_a_waiting_array_in_two_partitions(recorded: Recorded) -> None:
    row = {row.id: row for row in parse.parse_queue(recorded("plain/queue.txt").encode(), MARK)}["6_[1-4%2]"]
    assert row.partitions == ("batch", "scavenger")
    assert (row.start, row.end, row.nodes) == (None, None, ())
    assert row.reason == "PartitionTimeLimit"


def test_a_planned_job_tells_where(recorded: Recorded) -> None:
    row = {row.id: row for row in parse.parse_queue(recorded("plain/queue.txt").encode(), MARK)}["4"]
    assert row.planned_nodes == ("n1", "n2", "n3", "n4")
    assert row.nodes == ()


def test_records_of_ended_jobs_whatever_their_names_hold() -> None:
    text = "ann@60@90@plain\nbob@UNLIMITED@5@x\nann@10@0@never ran\nline two@3\n@7@70@adaptor-1.hpc.4\n"
    found = parse.parse_records(text, "@", 10)
    assert [(job.owner, job.limit, job.ran, name) for job, name in found] == [
        ("ann", 3600.0, 90.0, "plain"),
        ("", 420.0, 70.0, "adaptor-1.hpc.4"),
    ]
    assert len(parse.parse_records(text, "@", 1)) == 1
    assert parse.parse_records("", "@", 1) == []


def test_names_of_jobs_may_hold_line_breaks_and_all_else(recorded: Recorded) -> None:
    text = recorded("plain/own_jobs.txt")
    rows = parse.parse_queue(text.encode(), MARK)
    assert len(rows) == 15
    assert {row.id: row.name for row in rows}["12"] == "line\nbreak"
    (row,) = parse.parse_queue(f"{text.splitlines()[0].replace('gone', 'a|b|c')}\n".encode(), MARK)
    assert (row.reason, row.name) == ("Resources", "a|b|c")


def test_every_release_shows_the_same_queue(asked: Questions) -> None:
    """What `tests.backends.slurm.record` submitted."""
    rows = {row.name: row for row in asked.queue()}
    assert {row.name for row in asked.own_jobs()} == {*rows, "gone"}
    assert len(asked.queue()) == 28 - ("by-segment" not in rows)
    uneven, tasks, later, fast = (rows[name] for name in ("uneven", "tasks", "later", "fast"))
    assert (uneven.state, uneven.processors, uneven.nodes) == ("RUNNING", 8, ("n3", "n4"))
    assert (uneven.limit, tasks.processors) == (1800, 9)
    assert (tasks.node_count, tasks.planned_nodes, tasks.nodes) in (
        (2, ("n2", "n3"), ()),
        (1, ("n2", "n3"), ()),
    )
    assert (later.reason, rows["held"].reason, rows["held"].priority) == ("BeginTime", "JobHeldUser", 0)
    assert fast.partitions == ("short", "batch")
    assert rows["too-long"].reason == "PartitionTimeLimit"
    assert {row.id for row in asked.queue()} >= {"4_1", "4_[2-3%1]", f"{rows['two-parts'].id[:2]}+0"}
    assert rows["liar"].account.startswith("x userid=root(0) ")
    assert gres_counts(rows["typed"].gpus_per_node) == {("gpu", "a100"): 1}
    assert gres_counts(rows["gpus"].gpus_per_task) == {("gpu", ""): 1}
    assert gres_counts(rows["gpus"].memory_per_gpu) == {("gpu", ""): 300}
    assert gres_counts(rows["all"].gpus_per_job) == {("gpu", "a100"): 2}


def test_every_release_tells_what_partitions_share(asked: Questions) -> None:
    found = {row.name: (row.exclusive, row.shared_by) for row in asked.partitions()}
    assert found == {
        **dict.fromkeys(("batch", "short", "scavenger", "asked"), ("", 1)),
        "whole": ("NODE", 1),
        "user": ("USER", 1),
        "forced": ("", 2),
    }


def test_every_release_tells_of_reservations_licences_and_settings(asked: Questions) -> None:
    (held,) = asked.reservations()
    assert (held.name, tuple(held.nodes), held.end - held.start) == ("service", ("n1", "n2"), 3600)
    assert asked.licenses() == {"matlab": License(total=2, free=1)}
    assert asked.settings()["SelectTypeParameters"].startswith("CR_CPU_MEMORY")
    assert asked.preempted() == frozenset()


def test_nodes(recorded: Recorded) -> None:
    rows = parse.parse_nodes(recorded("plain/nodes.txt").encode())
    assert len(rows) == 18
    first = rows[0]
    assert (first.partition, first.default, first.node, first.state) == ("batch", True, "n1", "allocated")
    assert (first.allocated, first.idle, first.other, first.memory) == (4, 0, 0, 4000)


@pytest.mark.parametrize(("text", "state", "flags"), [("idle~", "idle", "~"), ("mixed*", "mixed", "*")])
def test_flags_of_nodes(text: str, state: str, flags: str) -> None:
    (row,) = parse.parse_nodes(f"batch|up|n1|{text}|0/4/0/4|1".encode())
    assert (row.state, row.flags, row.default) == (state, flags, False)


def test_reservations(recorded: Recorded) -> None:
    (row,) = parse.parse_reservations(recorded("plain/reservations.txt"))
    assert (row.name, tuple(row.nodes), row.end - row.start) == ("service", ("n1", "n2"), 3600)


def test_reservations_without_nodes_are_left_out(recorded: Recorded) -> None:
    text = recorded("plain/reservations.txt").replace("n[1-2]", "(null)")
    assert parse.parse_reservations(text) == []


def test_partitions(recorded: Recorded) -> None:
    rows = {row.name: row for row in parse.parse_partitions(recorded("plain/partitions.txt"))}
    assert rows["batch"].default
    assert (rows["batch"].max_time, rows["batch"].processors, rows["batch"].tier) == (14400, 24, 10)
    assert (rows["short"].max_time, rows["short"].max_nodes, rows["short"].qos) == (600, None, "")


def test_settings(recorded: Recorded) -> None:
    settings = parse.parse_settings(recorded("plain/settings.txt"))
    assert settings["SLURM_VERSION"] == "22.05.8"
    assert settings["SchedulerParameters"].startswith("bf_interval=2,")


def test_accounting(recorded: Recorded) -> None:
    rows = parse.parse_accounting(recorded("22.05/accounting.txt"))
    assert (rows[0].state, rows[0].start, rows[0].nodes) == ("CANCELLED by 1", 1795250071, ("n1",))
    assert (rows[1].start, rows[1].nodes) == (None, ())


def test_unlimited_jobs() -> None:
    values = {"JobArrayID": "7", "State": "RUNNING", "StartTime": "1795250485", "EndTime": "NONE"}
    values |= {"Partition": "batch", "NumCPUs": "2", "NumNodes": "1", "TimeLimit": "UNLIMITED"}
    values |= {"NodeList": "n1", "SchedNodes": "(null)", "PriorityLong": "1", "Reason": "None"}
    (row,) = parse.parse_queue(squeue_line(values).encode(), MARK)
    assert (row.end, row.limit) == (None, math.inf)


@pytest.mark.parametrize(
    "text", ["12\n", "12;cluster\n", "Welcome!\n12\n", "Submitted batch job 12\n", "Submitted batch job 12"]
)
def test_job_ids(text: str) -> None:
    assert parse.job_id_of(text) == "12"


@pytest.mark.parametrize("text", ["", "Welcome!", "job 12 perhaps"])
def test_no_job_id(text: str) -> None:
    assert parse.job_id_of(text) is None


PARSERS: list[Callable[[str], Sequence[object]]] = [
    lambda text: parse.parse_queue(text.encode(), MARK),
    lambda text: parse.parse_nodes(text.encode()),
    parse.parse_accounting,
    parse.parse_partitions,
]


@pytest.mark.parametrize("parser", PARSERS)
def test_nonsense_is_an_error_and_nothing_is_nothing(parser: Callable[[str], Sequence[object]]) -> None:
    assert parser("") == []
    with pytest.raises(SchedulerError, match="the adaptor cannot read"):
        parser("slurm_load_jobs error: Segmentation fault")


@given(st.text(max_size=200))
def test_any_text_gives_rows_or_a_scheduler_error(text: str) -> None:
    for parser in PARSERS:
        try:
            parser(text)
        except SchedulerError:
            continue


TEXTS = texts_of("slurm/*/*.txt")
ROWS = {row.id: row for row in parse.parse_queue(answered(RELEASES[0])("queue").encode(), MARK)}
ALL_PARSERS: list[Callable[[str], Any]] = [
    PARSERS[0],
    parse.parse_preempted,
    PARSERS[1],
    parse.parse_accounting,
    parse.parse_reservations,
    parse.parse_partitions,
    parse.parse_settings,
    parse.job_id_of,
    parse_associations,
    parse_qos,
    lambda text: parse_node_details(text.encode()),
    lambda text: JobRecords().read(text.encode(), ROWS),
    parse_license_rows,
]


@fuzz
@given(damaged(TEXTS))
def test_any_answer_is_rows_or_a_clear_error(text: str) -> None:
    for parser in ALL_PARSERS:
        survives(parser, text.encode(errors="surrogatepass").decode(errors="replace"))


VALUES = [
    *("1795250485", "2026-11-21T08:00:00", "1-02:03:04", "30:00", "UNLIMITED", "4K", "1-4", "0.5G"),
    *("gpu:a100:4(S:0-1)", "gpu:2,gpu:t4:1(IDX:0,2-3)", "bandwidth:lustre:no_consume:4G", "matlab:2,fluent"),
    *("n[1-2]", "n[001-010,12]x", "a,b[1-3]", "r[1-2]c[0-3]", "(null)"),
]


@fuzz
@pytest.mark.parametrize(
    "parse_value",
    [fields.parse_time, fields.parse_limit, fields.parse_count, fields.expand, gres_counts, parse_licenses],
)
@given(damaged(VALUES))
def test_any_value_is_a_number_or_a_value_error(parse_value: Callable[[str], Any], text: str) -> None:
    survives(parse_value, text, errors=(ValueError, OverflowError))
