"""The two forms of PBS's answers, recorded and made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import SchedulerError
from backends.numbers import clock_seconds
from backends.pbs import fields
from backends.pbs.fields import parse_dsv, parse_long, variables
from backends.pbs.openpbs import hardware, jobs
from backends.pbs.openpbs.jobs import everyones_jobs, parse_select, placing
from backends.pbs.openpbs.server import JOB
from tests.backends.pbs.openpbs_recordings import SITUATIONS, dsv_line, flat, printed, recorded, recorded_jobs
from tests.fuzzing import damaged, fuzz, survives
from tests.fuzzing import recorded as texts_of


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_was_recorded_is_understood(situation: str) -> None:
    jobs = parse_dsv(recorded(f"{situation}-qstat-f-dsv"), JOB)
    assert all(record.values["job_state"] in "QRHWB" for record in jobs)
    assert len(parse_long(recorded(f"{situation}-pbsnodes-av"), "")) == 7
    assert [each.id for each in parse_long(recorded(f"{situation}-qstat-Bf"), "Server: ")] == ["pbshead"]
    queues = {each.id: each.values for each in parse_long(recorded(f"{situation}-qstat-Qf"), "Queue: ")}
    assert queues["route"]["route_destinations"] == "express,workq"
    assert queues["limited"]["max_queued"] == "[u:PBS_GENERIC=3]"


def test_the_number_of_recorded_jobs() -> None:
    counts = [len(parse_dsv(recorded(f"{situation}-qstat-f-dsv"), JOB)) for situation in SITUATIONS]
    assert counts == [0, 18, 5]


def test_several_jobs_asked_for_by_id_are_all_answered() -> None:
    assert [each.id for each in parse_dsv(recorded("02-job-several-dsv"), JOB)] == ["0.pbshead", "10.pbshead"]


def test_odd_values_are_read_as_they_were_given() -> None:
    found = {each.values["Job_Name"]: each for each in parse_dsv(recorded("08-qstat-f-dsv"), JOB)}
    assert found["vars"].values["comment"] == 'he said "no" \\ and tab\tend'
    assert dict(variables(found["newline"].values["Variable_List"]))["X"] == "two\nlines"
    assert dict(variables(found["allenv"].values["Variable_List"]))["A1"] == "x,y"
    assert found["args"].values["Submit_arguments"].endswith('a "b" <c> & d new\nline é')
    numbers = dict(variables(found["numbers"].values["Variable_List"]))
    assert (numbers["V1"], numbers["V4"], numbers["V10"], numbers["V12"]) == ("nan", ".5", "", "00")
    assert {"12345", "1e5", "latin1", "control"} <= found.keys()


def test_every_other_recorded_job_survives_being_printed_and_read() -> None:
    for found in recorded_jobs().values():
        for id, attributes in found.items():
            (record,) = parse_dsv(dsv_line(id, flat(attributes)), JOB)
            assert (record.id, record.values) == (id, flat(attributes))


anything = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
nasty = st.sampled_from(
    [
        "\nJob Id: 1.pbshead|job_state=F",
        "|job_state=F|",
        "\\",
        "\\|",
        "\\\\|x=y",
        "\\,|",
        "\u2028",
        "\x85",
        "\r\n",
    ]
)
written = st.lists(anything | nasty, max_size=4).map("".join)
"""What a user may write into a name, a variable, an account or a comment."""


@given(value=written.map(lambda text: text.replace("\x1c", "")))
def test_a_value_comes_back(value: str) -> None:
    (record,) = parse_dsv(dsv_line("7.s", {"comment": value, "after": "this"}), JOB)
    assert record.values["after"] == "this"
    if not any(ord(c) < 32 and c not in "\n\f\t" for c in value):  # PBS prints those as ^A for good
        assert record.values["comment"] == value


@given(others=st.lists(st.tuples(written, written, written), max_size=5), place=st.integers(0, 5))
def test_nothing_in_the_jobs_of_others_changes_ours(others: list[tuple[str, ...]], place: int) -> None:
    ours = flat(recorded_jobs()["02-job-running-scatter"]["0.pbshead"])
    lines = [
        dsv_line(
            f"{n + 100}.pbshead", {**ours, "Job_Name": name, "Variable_List": listed, "comment": comment}
        )
        for n, (name, listed, comment) in enumerate(others)
    ]
    lines.insert(place, dsv_line("0.pbshead", ours))
    (alone,) = everyones_jobs(parse_dsv(dsv_line("0.pbshead", ours), JOB))
    found = {job.id: job for job in everyones_jobs(parse_dsv("\n".join(lines), JOB))}
    assert found.keys() <= {"0.pbshead", *(f"{n + 100}.pbshead" for n in range(len(others)))}
    assert found["0.pbshead"] == alone


def test_the_one_character_that_pbs_does_not_escape_spoils_only_its_own_job() -> None:
    """It is printed as `^\\`, and that backslash is not doubled."""
    spoilt = dsv_line("1.s", {"job_state": "R", "Job_Name": "\x1c", "queue": "workq", "substate": "42"})
    first, second = parse_dsv(f"{spoilt}\n{dsv_line('2.s', {'job_state': 'Q'})}\n", JOB)
    assert first.values == {"job_state": "R", "Job_Name": "^|queue=workq", "substate": "42"}
    assert (second.id, second.values) == ("2.s", {"job_state": "Q"})


def test_jobs_with_values_that_are_no_numbers_are_left_out_and_not_the_others() -> None:
    ours = flat(recorded_jobs()["02-job-running-scatter"]["0.pbshead"])
    odd = [{**ours, key: "1e999"} for key in ("Resource_List.ncpus", "stime", "substate")]
    lines = [dsv_line(f"{n}.s", values) for n, values in enumerate([*odd, ours, {"comment": "no state"}])]
    assert [job.id for job in everyones_jobs(parse_dsv("\n".join(lines), JOB))] == ["3.s"]


@pytest.mark.parametrize("text", ["welcome to the cluster", "<html>", "Job 7"])
def test_what_is_no_record_is_not_taken_for_an_empty_queue(text: str) -> None:
    with pytest.raises(SchedulerError):
        parse_dsv(text, JOB)
    with pytest.raises(SchedulerError):
        parse_long(text, "Queue: ")


def test_long_values_are_put_together_and_line_breaks_kept() -> None:
    text = "Queue: a\n    acl_users = x,\n\ty,z\n    comment = one\ntwo\n    enabled = True\n\nQueue: b\n"
    first, second = parse_long(text, "Queue: ")
    assert first.values == {"acl_users": "x,y,z", "comment": "one\ntwo", "enabled": "True"}
    assert (second.id, second.values) == ("b", {})


def test_printing_is_as_recorded() -> None:
    assert printed('he said "no" \\ and') == 'he said "no" \\\\ and'
    assert printed("two\nlines") == "two\\nlines"
    assert printed("x\\,y") == "x\\,y"
    assert printed("a\x01b\x1bc") == "a^Ab^[c"


DSV = texts_of("openpbs/*dsv.txt")
LONG = texts_of(
    "openpbs/*pbsnodes*.txt", "openpbs/*qstat-Bf.txt", "openpbs/*qstat-Qf.txt", "openpbs/*rstat*.txt"
)


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
    parse_select,
    placing,
    variables,
]


@fuzz
@pytest.mark.parametrize("parse_value", PARSE_VALUE)
@given(damaged(VALUES))
def test_any_value_is_understood_or_a_value_error(parse_value: Callable[[str], Any], text: str) -> None:
    survives(parse_value, text, errors=(ValueError, OverflowError))
