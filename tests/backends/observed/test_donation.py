"""What others do with machines that may be donated, from rows of any scheduler."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport
from backends.observed.donation import SOON, Donatable, node_reports
from backends.observed.rows import JobRow, ReservationRow
from tests.backends.observed.observed_rows import NOW, job, reservation

IDLE, TAKEN, AWAY = NodeUse.IDLE, NodeUse.TAKEN, NodeUse.AWAY


def machine(name: str, *, held: bool = False, **given: object) -> Donatable:
    row = Donatable(name=name, nodes=(name,), processors=4, memory=None, away=False, held=held)
    return msgspec.structs.replace(row, **given)


def look(
    machines: Sequence[Donatable],
    jobs: Sequence[JobRow] = (),
    donated: Collection[str] = (),
    reservations: Sequence[ReservationRow] = (),
) -> dict[str, NodeReport]:
    return {report.name: report for report in node_reports(NOW, machines, jobs, donated, reservations)}


def test_a_donated_machine_is_idle_until_somebody_wants_it() -> None:
    pilot, there = job("9", 4, "n1"), [machine("n1", held=True)]
    assert look(there, [pilot], {"9"})["n1"].use is IDLE
    assert look(there, [pilot])["n1"].use is TAKEN, "nobody told us that it is a pilot"
    waiting = job("1", 4, plan={"n1": None}, planned_start=NOW + 900)
    found = look(there, [pilot, waiting], {"9"})["n1"]
    assert (found.use, found.planned) == (IDLE, NOW + 900)
    starting = msgspec.structs.replace(waiting, planned_start=NOW - 2)
    assert look(there, [pilot, starting], {"9"})["n1"].use is TAKEN
    elsewhere = msgspec.structs.replace(starting, plan={"n2": None})
    assert look(there, [pilot, elsewhere], {"9"})["n1"].use is IDLE
    leaving = msgspec.structs.replace(pilot, leaving=True)
    assert look(there, [leaving], {"9"})["n1"].use is TAKEN


def test_a_pilot_in_the_queue_holds_nothing_and_plans_nothing() -> None:
    queued = job("9", 4, plan={"n1": None}, planned_start=NOW)
    report = look([machine("n1")], [queued], {"9"})["n1"]
    assert (report.use, report.planned) == (IDLE, math.inf)


@pytest.mark.parametrize("state", ["running", "ending", "suspended", "unknown"])
def test_any_job_that_holds_something_takes_the_machine(state: str) -> None:
    assert look([machine("n1")], [job("1", 1, "n1", state=state)])["n1"].use is TAKEN
    half = machine("n3", nodes=("n3[0]", "n3[1]"))
    assert look([half], [job("1", 1, "n3[1]", state=state)])["n3"].use is TAKEN


def test_jobs_that_are_hidden_from_us_hold_machines_too() -> None:
    assert look([machine("n1", held=True)])["n1"].use is TAKEN
    assert look([machine("n1", taken=True)], [job("9", 4, "n1")], {"9"})["n1"].use is TAKEN
    kept = look([machine("n1", kept=True)])["n1"]
    assert (kept.use, kept.planned) == (IDLE, NOW)


def test_the_earliest_plan_counts() -> None:
    jobs = [job(str(n), 1, plan={"n1": None}, planned_start=NOW + 100 * n) for n in (7, 3, 5)]
    jobs.append(job("1", 1, plan={"n1": None}, planned_start=NOW + 50, considered=False))
    assert look([machine("n1")], jobs)["n1"].planned == NOW + 300
    assert look([machine("n1", kept=True)], jobs)["n1"].planned == NOW + 300
    later = reservation("later", 200, 900, {"n1": None})
    assert look([machine("n1")], jobs, (), [later])["n1"].planned == NOW + 200


def test_a_reservation_that_is_on_closes_its_machines() -> None:
    on = reservation("course", -10, 900, {"n1": None})
    found = look([machine("n1"), machine("n2"), machine("n3", away=True)], (), (), [on])
    assert [report.use for report in found.values()] == [AWAY, IDLE, AWAY]


NAMES = ["n1", "n2", "n3"]
PLACES = st.sets(st.sampled_from(NAMES)).map(lambda names: tuple(sorted(names)))
JOBS = st.builds(
    lambda id, nodes, state, plan, after, leaving: (
        job(str(id), len(nodes), *nodes, state=state, leaving=leaving)
        if nodes
        else job(str(id), 1, plan=dict.fromkeys(plan), planned_start=NOW + after)
    ),
    st.integers(1, 6),
    PLACES,
    st.sampled_from(["running", "ending", "suspended"]),
    PLACES,
    st.floats(-50, 5000),
    st.booleans(),
)
MACHINES = st.tuples(
    *(st.builds(machine, st.just(name), held=st.booleans(), away=st.booleans()) for name in NAMES)
)


@given(MACHINES, st.lists(JOBS, max_size=8), st.sets(st.integers(1, 3).map(str)), PLACES)
def test_a_machine_is_never_called_idle_that_another_may_use(
    machines: tuple[Donatable, ...], jobs: list[JobRow], donated: set[str], closed: tuple[str, ...]
) -> None:
    found = look(machines, jobs, donated, [reservation("on", -1, 1, dict.fromkeys(closed))])
    others = [row for row in jobs if row.id not in donated]
    pilots = [row for row in jobs if row.id in donated]
    for there in machines:
        if found[there.name].use is not IDLE:
            continue
        assert not [row for row in others if there.name in row.nodes]
        assert not [row for row in pilots if there.name in row.nodes and row.leaving]
        plans = [row.planned_start for row in others if row.waits and there.name in row.plan]
        assert all(start is not None and start > NOW + SOON for start in plans)
        assert not there.held or [row for row in pilots if there.name in row.nodes]
        assert not there.away
        assert there.name not in closed
