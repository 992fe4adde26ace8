"""The text of Torque itself to rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_torque.parse import (
    parse_exec_host,
    parse_holders,
    parse_indices,
    parse_jobs,
    parse_nodes,
    parse_queues,
    parse_server,
    parse_wanted,
)
from backends.base import SchedulerError
from backends.observed.rows import Amounts
from backends.pbs.fields import amounts_of, parse_time
from backends.pbs.rows import PbsChunk, PbsJob
from tests.backends.pbs.pbs_rows import held

FIXTURES = Path(__file__).parents[2] / "fixtures" / "torque" / "torque-6"


def text(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


def jobs() -> dict[str, PbsJob]:
    return {job.id.partition(".")[0]: job for job in parse_jobs(text("jobs.txt"))}


def test_a_running_job_of_ours() -> None:
    job = jobs()["101"]
    assert (job.id, job.tag, job.owner) == ("101.head.example.org", "adaptor-ab12.hpc.7", "ada")
    assert (job.state, job.queue, job.processors, job.limit) == ("R", "batch", 5, 1800)
    assert job.nodes == held({"node01": 4, "node02": 1})
    assert job.hosts == ("node01", "node02")
    assert job.start == parse_time("Mon Nov  2 08:00:12 2026") == 1793606412
    assert (job.end, job.used) == (None, 605)


def test_a_waiting_job_is_as_large_as_it_wishes() -> None:
    job = jobs()["102"]
    assert (job.owner, job.state, job.processors, job.node_count) == ("bob", "Q", 16, 5)
    assert (job.limit, job.priority, job.start, job.nodes) == (48 * 3600, 20, None, {})
    assert job.tag == ""


def test_a_running_element_of_an_array_without_a_limit() -> None:
    job = jobs()["103[2]"]
    assert (job.processors, job.limit, job.exclusive) == (2, math.inf, True)
    assert job.nodes == held({"node03": 2})


def test_a_held_job_and_an_ended_one() -> None:
    waiting, ended = jobs()["104"], jobs()["105"]
    assert (waiting.state, waiting.processors, waiting.limit) == ("H", 6, 3600)
    assert (ended.state, ended.exit_status, ended.comment) == ("C", 0, "Job started on Mon Nov 02 at 07:50")
    assert ended.start is not None
    assert ended.end == ended.start + 301


def test_a_job_that_is_forged_in_a_variable_is_left_out() -> None:
    assert list(jobs()) == ["101", "102", "103[2]", "104", "105"]


def test_folded_lines_are_put_together() -> None:
    (job,) = parse_jobs(text("jobs-folded.txt"))
    assert job.nodes == held({"node001.cluster.example.org": 2, "node002.cluster.example.org": 1})
    assert job.limit == 720 * 3600


@given(st.text())
def test_whatever_a_user_writes_the_next_job_is_read(written: str) -> None:
    whole = text("jobs.txt")
    expected = jobs()["104"]
    read = parse_jobs(whole.replace("BASH_FUNC_module%%", f"X={written}"))
    assert expected in read


def test_nodes() -> None:
    nodes = {node.name: node for node in parse_nodes(text("nodes.txt"))}
    assert {name: (node.processors, node.assigned.processors) for name, node in nodes.items()} == {
        "node01": (4, 4),
        "node02": (4, 3),
        "node03": (4, 2),
        "node04": (4, 0),
    }
    assert nodes["node02"].jobs == ("101.head.example.org", "99.head.example.org")
    assert nodes["node04"].states == {"down", "offline"}
    assert nodes["node01"].memory == 3961760 * 1024
    assert nodes["node01"].traits == {"neednodes": {"batch", "fast"}, "host": {"node01"}}


def test_queues() -> None:
    batch, long, entry = parse_queues(text("queues.txt"))
    assert (batch.max_nodes, batch.max_processors, batch.max_seconds) == (3, 10, 86400)
    assert (batch.max_queued, batch.max_run, batch.priority) == (20, 5, 10)
    assert batch.wants == {"neednodes": "batch"}
    assert (long.enabled, long.started, long.max_nodes, long.max_seconds) == (False, True, 2, math.inf)
    assert entry.routes_to == ("batch", "long")


def test_the_server() -> None:
    server = parse_server(text("server.txt"))
    assert (server.name, server.version, server.default_queue) == ("head.example.org", "6.1.2", "entry")
    assert (server.history, server.max_seconds, server.scheduling) == (300, 48 * 3600, True)


@pytest.mark.parametrize("parse", [parse_jobs, parse_nodes, parse_queues])
def test_text_of_which_nothing_is_understood_is_an_error(parse: Callable[[str], object]) -> None:
    with pytest.raises(SchedulerError, match="the adaptor cannot read"):
        parse("Job Id: 1.s\n    what = ever\n")


def test_no_text_is_no_jobs_and_no_server() -> None:
    assert parse_jobs("") == []
    with pytest.raises(SchedulerError, match="nothing of a server"):
        parse_server("")


@pytest.mark.parametrize(
    ("printed", "held"),
    [
        ("n1/0", {"n1": 1}),
        ("n1/1+n1/0+n2/0", {"n1": 2, "n2": 1}),
        ("n1/0-3,5+n2/7", {"n1": 5, "n2": 1}),
        ("a.b.org/0-1", {"a.b.org": 2}),
    ],
)
def test_exec_host_names_processors(printed: str, held: dict[str, int]) -> None:
    assert parse_exec_host(printed) == held


@pytest.mark.parametrize(
    ("printed", "held"),
    [
        ("0/12.s, 1/12.s", {"12.s": 2}),
        ("0-3,5/12.s,4/13.s", {"12.s": 5, "13.s": 1}),
        ("10-19/123.m,0-9/456.m", {"123.m": 10, "456.m": 10}),
    ],
)
def test_the_holders_of_a_node(printed: str, held: dict[str, int]) -> None:
    assert parse_holders(printed) == held


@pytest.mark.parametrize(
    ("wanted", "nodes", "processors"),
    [
        ("1", 1, 1),
        ("3:ppn=4", 3, 12),
        ("2:ppn=4+1:ppn=3:fast", 3, 11),
        ("n7+n8:ppn=2", 2, 3),
        ("2:fast:ppn=8:gpus=1", 2, 16),
    ],
)
def test_node_specifications(wanted: str, nodes: int, processors: int) -> None:
    chunks = parse_wanted(wanted)
    assert sum(chunk.count for chunk in chunks) == nodes
    assert sum(chunk.count * chunk.each.processors for chunk in chunks) == processors


def test_gpus_properties_and_names_in_a_node_specification() -> None:
    assert parse_wanted("2:fast:ppn=8:gpus=1:shared+n7") == (
        PbsChunk(count=2, each=amounts_of(8, 0, 1), traits=(("neednodes", "fast"),)),
        PbsChunk(each=Amounts(1), traits=(("host", "n7"),)),
    )


GPUS = """\
Job Id: 7.s
    Job_Owner = ada@head
    job_state = R
    queue = batch
    Resource_List.nodes = 2:ppn=2:gpus=1
    Resource_List.mem = 8gb
    exec_host = n1/0-1+n2.cluster/0-1
    exec_gpus = n1-gpu/1+n2.cluster-gpu/0-1
"""


def test_memory_lies_as_the_processors_do_and_gpus_where_torque_says() -> None:
    (job,) = parse_jobs(GPUS)
    gb = 2**30
    assert job.nodes == {"n1": amounts_of(2, 4 * gb, 1), "n2.cluster": amounts_of(2, 4 * gb, 2)}
    assert job.chunks == (PbsChunk(count=2, each=amounts_of(2, 4 * gb, 1)),)
    (each,) = parse_jobs(GPUS.replace("Resource_List.mem = 8gb", "Resource_List.pmem = 1gb"))
    assert each.nodes["n1"] == amounts_of(2, 2 * gb, 1)


def test_jobs_that_want_processors_anywhere() -> None:
    text = GPUS.replace("Resource_List.nodes = 2:ppn=2:gpus=1", "Resource_List.procs = 6")
    (job,) = parse_jobs(text.replace("    exec_host = n1/0-1+n2.cluster/0-1\n", ""))
    assert job.chunks == (PbsChunk(count=6, each=Amounts(1, 8 * 2**30 // 6)),)


def test_the_gpus_of_a_node() -> None:
    (node,) = parse_nodes("n1\n     state = free\n     np = 8\n     gpus = 4\n")
    assert (node.gpus, node.gpu_type, node.memory) == (4, "", None)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_indices_are_counted(numbers: set[int]) -> None:
    assert parse_indices(",".join(map(str, sorted(numbers)))) == len(numbers)
