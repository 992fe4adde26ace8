"""What jobs hold of machines, from recorded and made-up rows."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.model import QueueState
from adaptor.resources import Part
from backends.observed.rows import Amounts, ReservationRow
from backends.observed.state import HIDDEN
from backends.pbs.fields import amounts_of, parse_vnodes
from backends.pbs.rows import PbsJob, PbsNode
from tests.backends.pbs.pbs_rows import NOW, job, node, reservation
from tests.backends.pbs.state.test_queue import BUSY, look, recorded_state

GB = 2**30


def parts(state: QueueState) -> dict[str, tuple[Part, ...]]:
    return {each.id: each.parts for each in state.running}


def test_the_recorded_busy_cluster() -> None:
    found = parts(recorded_state("02-busy", BUSY, "02-job-array-subjobs"))
    gpus = (("", 2),)
    assert found["0.pbshead"] == (
        Part(node="node01", processors=2, memory=GB),
        Part(node="node02", processors=2, memory=GB),
    )
    assert found["1.pbshead"] == (Part(node="node04", processors=4, memory=4 * GB, gpus=gpus),)  # exclusive
    assert found["2.pbshead"] == (Part(node="node03", processors=2, gpus=gpus),)  # on two vnodes
    assert found[HIDDEN] == (Part(node="node03", processors=2),)


def test_vnodes_that_are_only_kept_from_others_are_held_whole() -> None:
    """As an OpenPBS prints a job with `place=exclhost` on a machine of three vnodes."""
    held = parse_vnodes("(n1[0]:ncpus=1:mem=1048576kb)+(n1)+(n1[1])")
    assert held == {"n1[0]": Amounts(1, GB), "n1": Amounts(), "n1[1]": Amounts()}
    nodes = [
        node("n1", processors=0, state="job-exclusive", jobs=("1",), gpus=2, gpu_type="a100"),
        node("n1[0]", 1, "job-exclusive", processors=2, memory=2 * GB, jobs=("1",)),
        node("n1[1]", 0, "job-exclusive", processors=2, memory=2 * GB, jobs=("1",)),
    ]
    state = look(nodes, [job("1", 1, "n1", nodes=held, exclusive=True, machines=True)])
    assert parts(state) == {"1": (Part(node="n1", processors=4, memory=4 * GB, gpus=(("a100", 2),)),)}
    assert state.running[0].processors == 4


def test_a_job_holds_memory_and_gpus_of_the_type_of_the_vnode() -> None:
    nodes = [node("n1[0]", gpus=2, gpu_type="a100"), node("n1[1]", gpus=2, gpu_type="v100")]
    held = {"n1[0]": amounts_of(1, GB, 1), "n1[1]": amounts_of(2, 0, 2)}
    (part,) = parts(look(nodes, [job("1", 3, "n1[0]", nodes=held)]))["1"]
    assert part == Part(node="n1", processors=3, memory=GB, gpus=(("a100", 1), ("v100", 2)))


def test_memory_and_gpus_that_no_visible_job_explains_are_held_where_they_are() -> None:
    nodes = [
        node("n1", assigned=amounts_of(1, 3 * GB, 1), memory=4 * GB, gpus=2),
        node("n2", assigned=Amounts(2)),
    ]
    found = look(nodes, [job("1", 1, "n1", nodes={"n1": Amounts(1, GB)})]).running
    assert found[-1].id == HIDDEN
    assert found[-1].parts == (
        Part(node="n1", processors=0, memory=2 * GB, gpus=(("", 1),)),
        Part(node="n2", processors=2),
    )
    assert (found[-1].processors, found[-1].end) == (2, math.inf)


@pytest.mark.parametrize(
    ("state", "part"),
    [
        ("job-exclusive", Part(node="n1", processors=4, memory=4 * GB)),
        ("job-busy", Part(node="n1", processors=4)),
    ],
)
def test_a_node_that_takes_no_other_job_is_held_wholly(state: str, part: Part) -> None:
    found = look([node("n1", 1, state, memory=4 * GB)], [])
    assert parts(found) == {HIDDEN: (part,)}


def test_a_planned_job_keeps_what_pbs_says_and_whole_nodes_if_it_is_exclusive() -> None:
    nodes = [node("n1", memory=4 * GB, gpus=1), node("n2", memory=4 * GB, exclusive=True), node("n3")]
    plan = {"n1": amounts_of(1, GB, 1), "n2": Amounts(1)}
    shared = job("1", 2, planned_start=NOW + 60, planned_nodes=plan)
    alone = job("2", 2, planned_start=NOW + 60, planned_nodes=plan, exclusive=True)
    first, second = look(nodes, [shared, alone]).pending
    whole = Part(node="n2", processors=4, memory=4 * GB)
    assert first.parts == (Part(node="n1", processors=1, memory=GB, gpus=(("", 1),)), whole)
    assert second.parts == (Part(node="n1", processors=4, memory=4 * GB, gpus=(("", 1),)), whole)
    assert (first.processors, second.processors) == (5, 8)


def test_a_reservation_holds_memory_and_gpus_beside_its_jobs() -> None:
    """PBS counts what a reservation has as assigned, too."""
    nodes = [node("n1", assigned=amounts_of(2, 2 * GB, 1), memory=4 * GB, gpus=1)]
    on = ReservationRow(
        reported=True,
        name="R",
        queue="R",
        start=NOW - 1,
        end=NOW + 60,
        nodes={"n1": amounts_of(2, 2 * GB, 1)},
    )
    inside = job("1", 1, "n1", queue="R", nodes={"n1": Amounts(1, GB)})
    assert parts(look(nodes, [inside], reservations=[on])) == {
        "1": (Part(node="n1", processors=1, memory=GB),),
        "reservation R": (Part(node="n1", processors=1, memory=GB, gpus=(("", 1),)),),
    }


def test_jobs_beside_a_reservation_free_what_they_have_unless_it_waits_for_it() -> None:
    on = reservation("R", "R", NOW - 1, NOW + 900, {"n1": Amounts(2)})
    inside = job("1", 1, "n1", queue="R")

    def ends(beside: int) -> dict[str, float]:
        state = look([node("n1", 4)], [inside, job("2", beside, "n1")], reservations=[on])
        return {each.id: each.end - NOW for each in state.running}

    assert ends(beside=2) == {"1": 900, "2": 500, "reservation R": 900}
    assert ends(beside=3) == {"1": 900, "2": 900}  # one of the three is the reservation's


AMOUNTS = st.builds(amounts_of, st.integers(0, 4), st.integers(0, 8), st.integers(0, 2))
NAMES = ["a[0]", "a[1]", "b", "c"]


@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES), AMOUNTS, min_size=1), max_size=5),
    st.dictionaries(st.sampled_from(NAMES), AMOUNTS),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_parts_are_what_the_nodes_say_is_held(
    held: list[dict[str, Amounts]], unseen: dict[str, Amounts], shown: list[bool]
) -> None:
    """Whichever jobs are shown: all that is assigned is held by someone, by machine and resource."""
    assigned = Counter[tuple[str, str]]()
    by_vnode = {name: unseen.get(name, Amounts()) for name in NAMES}
    for each in held:
        for name, amounts in each.items():
            by_vnode[name] += amounts
    nodes: list[PbsNode] = [
        node(name, processors=99, memory=99, gpus=99, assigned=amounts) for name, amounts in by_vnode.items()
    ]
    jobs: list[PbsJob] = [
        job(str(n), 1, *each, nodes=each) for n, each in enumerate(held) if shown[n] or n % 2
    ]
    state = look(nodes, jobs)
    for name, amounts in by_vnode.items():
        host = name.partition("[")[0]
        assigned.update(
            {
                (host, "processors"): amounts.processors,
                (host, "gpus"): sum(count for _, count in amounts.gpus),
            }
        )
        assigned.update({(host, "memory"): amounts.memory})
    told = Counter[tuple[str, str]]()
    for running in state.running:
        for part in running.parts:
            told.update({(part.node, "processors"): part.processors, (part.node, "memory"): part.memory})
            told.update({(part.node, "gpus"): sum(count for _, count in part.gpus)})
        assert running.processors == sum(part.processors for part in running.parts)
    assert +told == +assigned
