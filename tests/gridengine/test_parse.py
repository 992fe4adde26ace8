"""What Grid Engine's commands printed, as rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from adaptor_gridengine import parse
from backends.base import SchedulerError
from tests.fuzzing import damaged, fuzz, survives
from tests.fuzzing import recorded as texts
from tests.gridengine.recorded_cell import GIB, cell, recorded


def test_the_parts_of_a_job_on_several_hosts_are_one_job() -> None:
    jobs = {job.id: job for job in parse.jobs(recorded("2-busy-qstat.xml"))}
    wide = jobs["11"]
    assert (wide.name, wide.owner, wide.state, wide.pe, wide.slots) == ("adaptor-1.7", "root", "r", "mpi", 6)
    assert wide.parts == {("all.q", "n2"): 2, ("all.q", "n4"): 4}
    assert (wide.limit, wide.memory) == (600, GIB / 2)
    assert jobs["17"].slots == 6, "of 4 to 8, it has got 6"
    assert jobs["13.3"].parts == {("all.q", "n3"): 1}, "a running task of an array is a job of its own"


def test_waiting_jobs_with_what_they_ask_for() -> None:
    jobs = {job.name: job for job in parse.jobs(recorded("2-busy-qstat.xml")) if not job.parts}
    assert {name: job.state for name, job in jobs.items()} == {
        **dict.fromkeys(("wide", "never", "dep", "more"), "qw"),
        "other": "Eqw",
        "held": "hqw",
        "later": "hqw",
    }
    assert jobs["later"].task == "1-9:2"
    assert jobs["dep"].wants == ("short.q", "all.q@n1")
    assert jobs["dep"].limit == math.inf
    assert (jobs["wide"].slots, jobs["wide"].limit, jobs["wide"].priority) == (14, 7200, 0.75)


def test_queues_on_hosts_with_what_is_free() -> None:
    found = {(each.queue, each.host): each for each in parse.instances(recorded("2-busy-qstat.xml"))}
    assert len(found) == 8
    disabled = found["all.q", "n2"]
    assert (disabled.slots, disabled.used, disabled.host_free, disabled.in_service) == (4, 3, 0, False)
    assert found["short.q", "n2"].in_service
    assert found["all.q", "n4"].memory_free == 2 * GIB


def test_what_is_configured() -> None:
    known = cell()
    assert {name: queue.seconds for name, queue in known.queues.items()} == {
        "all.q": math.inf,
        "short.q": 1800,
    }
    assert known.queues["all.q"].pes == ("smp", "mpi")
    assert [(pe.rule, pe.controls, pe.slots) for pe in known.pes.values()] == [
        ("$fill_up", True, 999),
        ("$pe_slots", True, 999),
    ]
    assert (known.max_jobs, known.default_memory) == (math.inf, GIB)


def test_how_jobs_ended() -> None:
    found = {job.name: job for job in parse.ended(recorded("qacct.txt"))}
    plain = found["plain"]
    assert (plain.failed, plain.exit_status, plain.limit, plain.end - plain.start) == (37, 137, 15, 16)
    assert (found["adaptor-1.7"].failed, found["adaptor-1.7"].exit_status) == (100, 140)
    assert found["multi"].slots == 10
    assert parse.ended("Total System Usage\n    WALLCLOCK\n====\n") == []


def test_reservations_by_host() -> None:
    (held,) = parse.reservations(recorded("qrstat-ar.xml"))
    assert {name: amounts.processors for name, amounts in held.nodes.items() if amounts} == {"n1": 4, "n2": 2}
    assert held.end - held.start == 600


@pytest.mark.parametrize(
    ("text", "seconds"), [("600", 600), ("0:10:0", 600), ("INFINITY", math.inf), ("1:0:0,[n1=0:5:0]", 3600)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse.seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("512M", GIB // 2), ("1.500G", 3 * GIB // 2), ("2k", 2000), ("0.000", 0), ("7", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse.bytes_of(text) == size


def test_a_name_with_control_characters_hides_no_other_job() -> None:
    text = recorded("2-busy-qstat.xml").replace("<JB_name>held<", "<JB_name>he\x01ld<")
    assert len(parse.jobs(text)) == 13


@pytest.mark.parametrize(
    "text", ["", "error: commlib error", "<a>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>']
)
def test_an_answer_that_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(SchedulerError, match="cannot read an answer of Grid Engine"):
        parse.jobs(text)


_PARSERS: tuple[Callable[[str], Any], ...] = (
    parse.jobs,
    parse.instances,
    parse.reservations,
    parse.queues,
    parse.pe,
    parse.max_jobs,
    parse.default_memory,
    parse.ended,
)


@fuzz
@given(damaged(texts("gridengine/*.xml", "gridengine/*.txt")))
def test_any_answer_is_rows_or_a_clear_error(text: str) -> None:
    for parser in _PARSERS:
        survives(parser, text)
