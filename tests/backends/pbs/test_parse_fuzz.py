"""Whatever the commands of OpenPBS and Torque print: rows, or an error that says what was not understood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from adaptor_torque import parse as torque
from adaptor_torque import parse as torque_fields
from backends.numbers import clock_seconds
from backends.pbs import fields
from backends.pbs.fields import parse_dsv, parse_long, variables
from backends.pbs.openpbs import hardware, jobs
from backends.pbs.openpbs.jobs import parse_select, placing
from tests.fuzzing import damaged, fuzz, recorded, survives

DSV = recorded("openpbs/*dsv.txt")
LONG = recorded(
    "openpbs/*pbsnodes*.txt", "openpbs/*qstat-Bf.txt", "openpbs/*qstat-Qf.txt", "openpbs/*rstat*.txt"
)
TORQUE = recorded("torque/*/*.txt")


def openpbs_own(text: str) -> list[Any]:
    return [jobs.own_job(record) for record in parse_dsv(text, "Job Id: ")]


def openpbs_queue(text: str) -> list[Any]:
    return jobs.everyones_jobs(parse_dsv(text, "Job Id: "))


def openpbs_nodes(text: str) -> list[Any]:
    return hardware.nodes_of(parse_long(text, ""))


def openpbs_queues(text: str) -> list[Any]:
    return hardware.queues_of(parse_long(text, "Queue: "), "bob")


def openpbs_servers(text: str) -> list[Any]:
    return [hardware.server_of(record, "bob") for record in parse_long(text, "Server: ")]


def openpbs_reservations(text: str) -> list[Any]:
    return hardware.reservations_of(parse_long(text, "Resv ID: ", ""))


@fuzz
@given(damaged(DSV))
def test_any_jobs_of_openpbs_are_rows_or_a_clear_error(text: str) -> None:
    survives(openpbs_own, text)
    survives(openpbs_queue, text)


@fuzz
@given(damaged(LONG))
def test_any_hardware_of_openpbs_is_rows_or_a_clear_error(text: str) -> None:
    for parser in (openpbs_nodes, openpbs_queues, openpbs_servers, openpbs_reservations):
        survives(parser, text)


@fuzz
@given(damaged(TORQUE))
def test_any_answer_of_torque_is_rows_or_a_clear_error(text: str) -> None:
    for parser in (torque.parse_jobs, torque.parse_nodes, torque.parse_queues, torque.parse_server):
        survives(parser, text)


VALUES = [
    *("1795250485", "Sat Nov 21 08:00:00 2026", "01:02:03", "4gb", "1048576kb", "2mw", "n1/0*2+n2/0*2"),
    *("(n1:ncpus=2:mem=1gb)+(n3[0]:ncpus=2+n3[1]:ncpus=2)", "[u:PBS_GENERIC=3],[o:PBS_ALL=100]"),
    "2:ncpus=3:mem=1gb:ngpus=1:gpu_type=a100+1:host=n1",
    *(
        "n1/0-1,3+n2/0",
        "0-3,5/12.srv,4/13.srv",
        "2:ppn=4+1:ppn=3:fast:gpus=1+n7",
        "n1-gpu/0+n2-gpu/0-1",
        "A=1,B=a\\,b",
    ),
]
PARSE_VALUE: list[Callable[[str], Any]] = [
    fields.parse_time,
    clock_seconds,
    fields.parse_size,
    fields.parse_vnodes,
    fields.parse_hosts,
    lambda text: fields.parse_user_limit(text, "bob"),
    torque_fields.parse_indices,
    torque_fields.parse_exec_host,
    torque_fields.parse_holders,
    torque_fields.parse_exec_gpus,
    torque_fields.parse_wanted,
    parse_select,
    placing,
    variables,
]


@fuzz
@pytest.mark.parametrize("parse_value", PARSE_VALUE)
@given(damaged(VALUES))
def test_any_value_is_understood_or_a_value_error(parse_value: Callable[[str], Any], text: str) -> None:
    survives(parse_value, text, errors=(ValueError, OverflowError))
