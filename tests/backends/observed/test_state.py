"""The state of a queue from rows of any scheduler."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Part
from backends.observed.rows import Amounts
from backends.observed.state import HIDDEN, LINGER, SecondLook, hidden_processors, kept
from tests.backends.observed.observed_rows import NOW, job, look, node, reservation, site

GB = 2**30

Job = TypeVar("Job", RunningJob, PendingJob)


def bare(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Without their parts."""
    return tuple(msgspec.structs.replace(job, parts=()) for job in jobs)


def test_a_job_past_its_limit_ends_soon_and_one_without_never() -> None:
    jobs = [job("1", 1, "n1", end=NOW - 5), job("2", 1, "n1", end=math.inf, limit=math.inf)]
    state = look([node("n1", 2)], jobs)
    assert {running.id: running.end for running in state.running} == {"1": NOW + LINGER, "2": math.inf}
    assert state.limits == {}, "neither end follows from a limit"


def test_a_job_that_is_about_to_end_holds_its_nodes_and_a_suspended_one_what_it_tells() -> None:
    jobs = [
        job("1", 4, "n1", state="ending", end=NOW - 100),
        job("2", 4, "n2", state="suspended", end=math.inf, holds={"n2": Amounts(0, GB)}),
        job("3", 4, "n3", state="suspended", end=math.inf, holds={}),
    ]
    running = look([node("n1", 4), node("n2"), node("n3")], jobs).running
    assert bare(running) == (RunningJob("1", 4, NOW + LINGER), RunningJob("2", 0, math.inf))
    assert running[1].parts == (Part(node="n2", processors=0, memory=GB),)


def test_what_no_visible_job_explains_is_held_for_ever_where_it_is() -> None:
    nodes = [
        node("n1", Amounts(1, 3 * GB, (("a100", 1),)), has=Amounts(4, 4 * GB, (("a100", 2),))),
        node("n2", 2),
    ]
    state = look(nodes, [job("1", 1, "n1", holds={"n1": Amounts(1, GB)})])
    parts = (Part(node="n1", processors=0, memory=2 * GB, gpus=(("a100", 1),)), Part(node="n2", processors=2))
    assert state.running[-1] == RunningJob(HIDDEN, 2, math.inf, parts)
    assert hidden_processors(state) == 2


def test_a_node_that_seems_to_hold_too_much_explains_another_only_where_parts_are_guessed() -> None:
    nodes = [node("n1", 1), node("n2", 3)]
    assert bare(look(nodes, [job("1", 4, "n1", "n2")]).running) == (RunningJob("1", 4, NOW + 500),)
    told = job("1", 4, "n1", "n2", holds={"n1": Amounts(2), "n2": Amounts(2)})
    assert bare(look(nodes, [told]).running)[1:] == (RunningJob(HIDDEN, 1, math.inf),)


def test_a_job_that_is_alone_on_its_nodes_holds_all_of_them() -> None:
    nodes = [node("n1", 1, sole=True), node("n2", 1), node("n3", 2)]
    jobs = [
        job("1", 1, "n1", holds={"n1": Amounts(1)}),
        job("2", 1, "n2", exclusive=True),
        job("3", 2, "n3", holds={"n3": Amounts(2)}),
    ]
    assert [running.processors for running in look(nodes, jobs).running] == [4, 4, 2]


def test_gpus_without_a_type_are_of_the_type_of_their_node_and_memory_counts_where_it_is_counted() -> None:
    nodes = [node("n1", has=Amounts(4, GB, (("a100", 2),)))]
    held = job("1", 1, "n1", holds={"n1": Amounts(1, GB, (("", 1),))})
    counted = look(nodes, [held]).running[0].parts
    assert counted == (Part(node="n1", processors=1, memory=GB, gpus=(("a100", 1),)),)
    free = look(nodes, [held], site=site(nodes, memory_counted=False)).running[0].parts
    assert free == (Part(node="n1", processors=1, gpus=(("a100", 1),)),)


def test_where_only_whole_nodes_are_given_a_used_machine_is_not_free() -> None:
    nodes = [node("n1[0]", 1), node("n1[1]"), node("n2", 3), node("n3", 2), node("n4")]
    jobs = [
        job("1", 2, "n1[0]", "n2"),
        job("2", 2, "n2", end=NOW + 900),
        job("3", 3),
        job("4", 2, node_count=2),
    ]
    state = look(nodes, jobs, whole_nodes=True)
    assert state.running == (
        RunningJob("1", 8, NOW + 500, (Part(node="n1", processors=8),)),  # both halves
        RunningJob("2", 4, NOW + 900, (Part(node="n2", processors=4),)),
        RunningJob(HIDDEN, 4, math.inf, (Part(node="n3", processors=4),)),
    )
    assert [pending.processors for pending in state.pending] == [4, 8]


def test_jobs_that_run_or_wait_elsewhere_are_left_out() -> None:
    jobs = [
        job("1", 4, "n9"),
        job("2", 4, queues=("other",)),
        job("3", 4, planned_start=NOW + 60, plan={"n9": None}),
        job("4", 4, need=Need(chunks=1, processors=4, nodes=frozenset())),
    ]
    state = look([node("n1")], jobs)
    assert (state.running, state.pending) == ((), ())


def test_a_plan_is_told_by_parts_or_by_nodes_alone() -> None:
    nodes = [node("n1"), node("n2", exclusive=True)]
    told = job("1", 8, queues=("express",), planned_start=NOW + 60, plan={"n1": Amounts(2), "n9": Amounts(6)})
    names = job("2", 8, queues=("express",), planned_start=NOW - 30, plan=dict.fromkeys(("n2", "n9")))
    whole = job("3", 2, planned_start=NOW + 60, plan={"n1": Amounts(1), "n2": Amounts(1)})
    here = tuple(Part(node=name, processors=4) for name in ("n1", "n2"))
    assert look(nodes, [told, names, whole]).pending == (
        PendingJob("1", 2, 600.0, NOW + 60, (Part(node="n1", processors=2),)),
        PendingJob("2", 4, 600.0, NOW, here[1:]),  # half of its nodes; a plan that is past counts from now
        PendingJob("3", 5, 600.0, NOW + 60, (Part(node="n1", processors=1), here[1])),
    )


def test_a_job_that_is_planned_on_nodes_of_others_alone_is_kept_with_its_parts() -> None:
    nodes = [node("n1"), node("n2", ours=False)]
    (pending,) = look(nodes, [job("1", 2, planned_start=NOW + 60, plan={"n2": Amounts(2)})]).pending
    assert pending == PendingJob("1", 0, 600.0, NOW + 60, (Part(node="n2", processors=2),))


def test_the_plan_of_an_array_is_that_of_its_first_element() -> None:
    array = job(
        "5", 3, elements=("5_2", "5_3"), user="eve", planned_start=NOW + 9, plan={"n1": None, "x": None}
    )
    state = look([node("n1"), node("n2")], [array])
    assert bare(state.pending) == (PendingJob("5_2", 2, 600.0, NOW + 9), PendingJob("5_3", 3, 600.0))
    assert state.owners == {"5_2": "eve", "5_3": "eve"}


def test_jobs_wait_in_the_order_of_their_places_if_they_are_considered() -> None:
    jobs = [job(id, 1, place=place) for id, place in (("3", (0, 7)), ("1", (-5, 9)), ("2", (0, 2)))]
    jobs.append(job("4", 1, considered=False))
    assert [pending.id for pending in look([node("n1")], jobs).pending] == ["1", "2", "3"]


def test_a_job_that_may_run_elsewhere_too_counts_no_more_than_the_site() -> None:
    jobs = [job("1", 99), job("2", 99, queues=("express",))]
    assert [pending.processors for pending in look([node("n1")], jobs).pending] == [99, 4]


@pytest.mark.parametrize("reported", [False, True])
def test_a_reservation_keeps_its_nodes_while_it_is_on_and_is_planned_before(reported: bool) -> None:
    """Whether or not the nodes report as held what it has."""
    on = reservation(
        "R1", -10, 3600, {"n1": None, "n2": Amounts(2), "x": None}, queue="R1", reported=reported
    )
    coming = reservation("R2", 60, 360, {"n1": None, "x": Amounts(4)})
    jobs = [job("1", 1, "n1", queues=("R1",)), job("2", 1, "n3")]
    nodes = [node("n1", 4 if reported else 1), node("n2", 2 if reported else 0), node("n3", 1)]
    state = look(nodes, jobs, reservations=[on, coming])
    assert state.running == (
        RunningJob("1", 1, NOW + 3600, (Part(node="n1", processors=1),)),
        RunningJob("2", 1, NOW + 500, (Part(node="n3", processors=1),)),
        RunningJob(
            "reservation R1", 5, NOW + 3600, (Part(node="n1", processors=3), Part(node="n2", processors=2))
        ),
    )
    assert state.pending == (
        PendingJob("reservation R2", 4, 300.0, NOW + 60, (Part(node="n1", processors=4),)),
    )


def test_jobs_beside_a_reservation_free_what_they_have_unless_it_waits_for_it() -> None:
    on = reservation("R", -1, 900, {"n1": Amounts(2)}, queue="R", reported=True)
    inside = job("1", 1, "n1", queues=("R",))

    def ends(beside: int) -> dict[str, float]:
        state = look([node("n1", 4)], [inside, job("2", beside, "n1")], reservations=[on])
        return {running.id: running.end - NOW for running in state.running}

    assert ends(beside=2) == {"1": 900, "2": 500, "reservation R": 900}
    assert ends(beside=3) == {"1": 900, "2": 900}  # one of the three is the reservation's


@pytest.mark.parametrize(
    ("given", "whole_nodes", "nodes"),
    [
        ({}, False, {"n1": 1, "n2[0]": 1}),
        ({"exclusive": True}, False, {"n1": 4, "n2[0]": 4}),
        ({"exclusive": True, "machines": True}, False, {"n1": 4, "n2[0]": 4, "n2[1]": 4}),
        ({}, True, {"n1": 4, "n2[0]": 4, "n2[1]": 4}),
    ],
)
def test_an_exclusive_reservation_has_more_than_it_asked_for(
    given: dict[str, bool], whole_nodes: bool, nodes: dict[str, int]
) -> None:
    there = site([node("n1"), node("n2[0]"), node("n2[1]"), node("n3")])
    row = reservation("R", -9, 90, {"n1": Amounts(1), "n2[0]": Amounts(1)}, **given)
    assert kept(row, there, whole_nodes=whole_nodes) == {
        name: Amounts(count) for name, count in nodes.items()
    }


def test_nodes_that_are_always_given_whole_are_reserved_whole() -> None:
    there = site([node("n1", exclusive=True), node("n2")])
    row = reservation("R", -9, 90, {"n1": Amounts(1), "n2": Amounts(1)})
    assert kept(row, there, whole_nodes=False) == {"n1": Amounts(4), "n2": Amounts(1)}


def test_what_is_hidden_for_the_first_time_is_looked_at_again() -> None:
    states = [look([node("n1", held)], []) for held in (2, 0, 0, 3, 3)]
    found, second = iter(states), SecondLook()
    assert [hidden_processors(second.state(lambda: next(found))) for _ in range(3)] == [0, 0, 3]


NAMES = ["a[0]", "a[1]", "b", "c"]
AMOUNTS = st.builds(
    lambda processors, memory, gpus: Amounts(processors, memory, (("", gpus),) if gpus else ()),
    st.integers(0, 4),
    st.integers(0, 8),
    st.integers(0, 2),
)


@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES), AMOUNTS, min_size=1), max_size=5),
    st.dictionaries(st.sampled_from(NAMES), AMOUNTS),
    st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_parts_are_what_the_nodes_say_is_held(
    holdings: list[dict[str, Amounts]], unseen: dict[str, Amounts], shown: list[bool]
) -> None:
    """Whichever jobs are shown: all that is held is held by someone, by machine and resource."""
    held = {name: unseen.get(name, Amounts()) for name in NAMES}
    for holding in holdings:
        for name, amounts in holding.items():
            held[name] += amounts
    nodes = [node(name, amounts, has=Amounts(99, 99, (("", 99),))) for name, amounts in held.items()]
    jobs = [job(str(n), 1, *each, holds=each) for n, each in enumerate(holdings) if shown[n] or n % 2]
    said, told = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for name, amounts in held.items():
        _count(said, name.partition("[")[0], amounts)
    for running in look(nodes, jobs).running:
        for part in running.parts:
            _count(told, part.node, Amounts(part.processors, part.memory, part.gpus))
        assert running.processors == sum(part.processors for part in running.parts)
    assert +told == +said


def _count(counts: Counter[tuple[str, str]], host: str, amounts: Amounts) -> None:
    gpus = sum(count for _, count in amounts.gpus)
    counts.update(
        {(host, "processors"): amounts.processors, (host, "memory"): amounts.memory, (host, "gpus"): gpus}
    )


PLACES = st.lists(
    st.tuples(st.integers(1, 8), st.sets(st.sampled_from(["n1", "n2", "n3"]), min_size=1), st.booleans()),
    max_size=8,
)


@given(PLACES, st.booleans())
def test_all_processors_in_use_are_accounted_for(
    places: list[tuple[int, set[str], bool]], whole: bool
) -> None:
    jobs = [
        job(str(index), max(processors, len(names)), *sorted(names), end=NOW + 60 if timed else math.inf)
        for index, (processors, names, timed) in enumerate(places)
    ]
    state = look([node("n1", 3), node("n2"), node("n3", 4)], jobs, whole_nodes=whole)
    assert state.processors == 12
    assert sum(running.processors for running in state.running) >= 7
    assert all(running.end > NOW and running.processors > 0 for running in state.running)
    if whole:
        assert sum(running.processors for running in state.running) <= 12


PARTS = st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.integers(1, 4), min_size=1)


@given(st.lists(st.tuples(PARTS, st.booleans(), st.booleans()), max_size=6), st.integers(0, 5))
def test_every_processor_that_is_held_is_held_by_one_job(
    jobs: list[tuple[dict[str, int], bool, bool]], hidden: int
) -> None:
    """Whichever of the jobs can be seen, and whichever tell their parts."""
    held = Counter({"n1": hidden})
    rows = []
    for number, (parts, visible, detailed) in enumerate(jobs):
        held.update(parts)
        holds = {name: Amounts(count) for name, count in parts.items()} if detailed else None
        rows += [job(str(number), sum(parts.values()), *parts, holds=holds)] if visible else []
    nodes = [node(name, held[name], has=Amounts(64)) for name in ("n1", "n2", "n3")]
    running = look(nodes, rows).running
    assert sum(found.processors for found in running) == sum(held.values())
    assert all(sum(part.processors for part in found.parts) == found.processors for found in running)
    if all(row.holds is not None for row in rows):
        told: Counter[str] = Counter()
        for found in running:
            told.update({part.node: part.processors for part in found.parts})
        assert +told == +held


HALF = Amounts(2)  # of the four processors of a node


def held_of(state: QueueState) -> dict[str, list[int]]:
    return {job.id: [part.processors for part in job.parts] for job in state.running}


@pytest.mark.parametrize(
    ("of_queue", "queues", "expected"),
    [
        (False, ("batch",), []),  # each request of ours may have two, and two are free
        (True, ("batch",), [2]),  # all jobs of the queue together may have two
        (True, ("express",), []),  # jobs of other queues have the other two
    ],
)
def test_jobs_first_hold_what_our_requests_may_not_have(
    of_queue: bool, queues: tuple[str, ...], expected: list[int]
) -> None:
    nodes = [node("n1", 2, most=HALF, most_of_queue=of_queue)]
    state = look(nodes, [job("1", 2, "n1", queues=queues, holds={"n1": Amounts(2)})])
    assert state.processors == 2
    assert held_of(state).get("1", []) == expected


def test_of_several_jobs_those_that_stay_longest_hold_what_we_may_not_have() -> None:
    """Three of four are held, of which we may have two: one is free, and both once the first job ends."""
    jobs = [
        job("1", 1, "n1", queues=("express",), holds={"n1": Amounts(1)}, end=NOW + 100),
        job("2", 2, "n1", queues=("express",), holds={"n1": Amounts(2)}, end=NOW + 900),
    ]
    assert held_of(look([node("n1", 3, most=HALF)], jobs)) == {"1": [1]}


def test_a_job_that_holds_a_whole_node_leaves_nothing_of_it() -> None:
    state = look([node("n1", 4, most=HALF)], [job("1", 4, "n1", exclusive=True)])
    assert held_of(state) == {"1": [2]}
