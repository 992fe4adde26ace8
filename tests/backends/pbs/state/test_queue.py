"""The state of a queue from recorded and made-up rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Part
from backends.base import SchedulerError
from backends.observed.state import LINGER
from backends.pbs.fields import parse_long
from backends.pbs.openpbs.hardware import nodes_of, queues_of, reservations_of
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue
from backends.pbs.state.nodes import find_site, served
from backends.pbs.state.queue import queue_state
from tests.backends.pbs.openpbs_recordings import recorded, recorded_nodes
from tests.backends.pbs.pbs_rows import NOW, QUEUES, held, job, node


def look(nodes: list[PbsNode], jobs: list[PbsJob], queue: str = "workq", **given: object) -> QueueState:
    site = find_site(nodes, QUEUES, queue)
    return queue_state(**{"now": NOW, "site": site, "jobs": jobs, "queues": QUEUES, **given})  # type: ignore[arg-type]


def bare(jobs: Iterable[RunningJob]) -> list[RunningJob]:
    """Without their parts."""
    return [msgspec.structs.replace(each, parts=()) for each in jobs]


@pytest.mark.parametrize(
    ("recording", "in_service", "allocated"),
    [
        ("02b-pbsnodes-suspended", 16, 16),
        ("04b-pbsnodes-av", 16, 0),
        ("05-D-pbsnodes-av", 16, 12),
        ("05-R-pbsnodes-av", 16, 8),
        ("05-S-pbsnodes-av", 16, 8),
        ("06-pbsnodes-recovered", 16, None),
        ("06b-after-5s-pbsnodes", 16, 1),
        ("06b-after-40s-pbsnodes", 16, 1),
        ("06b-after-80s-pbsnodes", 12, 0),
        ("06b-back-pbsnodes", 16, 1),
        ("09-pbsnodes-av", 16, 0),
        ("12b-pbsnodes-av", 16, 2),
    ],
)
def test_recorded_nodes(recording: str, in_service: int, allocated: int | None) -> None:
    site = find_site(nodes_of(parse_long(recorded_nodes()[recording], "")), QUEUES, "workq")
    assert site.processors == in_service
    assert site.usual_size == 4
    if allocated is not None:
        assert sum(each.held.processors for each in site.nodes.values()) == allocated


def test_no_recording_of_nodes_is_forgotten() -> None:
    assert len(recorded_nodes()) == 12


@pytest.mark.parametrize(
    "state",
    ["down", "offline", "state-unknown,down", "job-busy,offline", "stale", "provisioning", "maintenance"],
)
def test_nodes_out_of_service_and_what_runs_there_do_not_count(state: str) -> None:
    found = look([node("n1", 2), node("n2", 2, state)], [job("1", 4, "n1", "n2")])
    assert found.processors == 4
    assert found.running == (RunningJob("1", 2, NOW + 500, (Part(node="n1", processors=2),)),)


@pytest.mark.parametrize("state", ["free", "job-busy", "job-exclusive", "resv-exclusive"])
def test_nodes_in_service(state: str) -> None:
    assert look([node("n1", 0, state)], []).processors == 4


def test_a_job_whose_start_the_server_has_forgotten() -> None:
    found = look([node("n1", 1)], [job("1", 1, "n1", start=None, used=50.0)])
    assert bare(found.running) == [RunningJob("1", 1, NOW + 550)]


def test_a_job_that_is_ending_holds_its_nodes_and_a_suspended_one_does_not() -> None:
    jobs = [job("1", 4, "n1", state="E"), job("2", 4, "n2", state="S")]
    assert bare(look([node("n1", 4), node("n2")], jobs).running) == [RunningJob("1", 4, NOW + LINGER)]


def test_a_node_that_one_job_has_for_itself_counts_whole() -> None:
    alone = node("n1", 1, "job-exclusive", jobs=("1",))
    full = node("n2", 4, "job-exclusive", jobs=("2", "3"))
    jobs = [job("1", 1, "n1"), job("2", 1, "n2"), job("3", 3, "n2")]
    assert [each.processors for each in look([alone, full], jobs).running] == [4, 1, 3]


def test_a_plan_that_is_past_is_stale_and_its_nodes_do_not_count() -> None:
    late = job("1", 4, planned_start=NOW - LINGER - 1, planned_nodes=held({"n9": 4}))
    just = job("2", 4, planned_start=NOW - 5, planned_nodes=held({"n1": 4}))
    state = look([node("n1"), node("n9", queue="other")], [late, just])
    planned = (Part(node="n1", processors=4),)
    assert state.pending == (PendingJob("1", 4, 600.0), PendingJob("2", 4, 600.0, NOW, planned))


def test_queues_with_a_higher_priority_come_first_then_the_oldest() -> None:
    jobs = [job("3", 1), job("1", 1), job("2", 1, queue="express"), job("4", 1, queue="other")]
    assert [each.id for each in look([node("n1")], jobs).pending] == ["2", "1", "3"]


@pytest.mark.parametrize(
    "comment",
    [
        "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 16 T: 16)",
        "Not Running: User has reached queue limited running job limit.",
        "Not Running: Queue not started.",
        "Not Running: would exceed user bob's limit on resource ncpus in complex",
    ],
)
def test_for_a_job_that_waits_for_something_else_nothing_is_kept(comment: str) -> None:
    assert look([node("n1")], [job("1", 1, comment=comment)]).pending == ()
    assert look([node("n1")], [job("1", 1, state="H")]).pending == ()
    assert look([node("n1")], [job("1", 1, state="W")]).pending == ()


def test_the_recorded_reservation_is_for_its_own_queue() -> None:
    (held,) = reservations_of(parse_long(recorded("09-rstat-f"), "Resv ID: ", indent=""))
    assert (held.name, held.queue, held.end - held.start) == ("R97.pbshead", "R97", 600)
    nodes = nodes_of(parse_long(recorded_nodes()["09-pbsnodes-av"], ""))
    assert {each.name for each in nodes if held.name in each.reservations} == {"node01", "node02"}
    own = find_site(nodes, {"R97": PbsQueue(name="R97")}, "R97", [held])
    assert (own.processors, set(own.members)) == (8, {"R97"})


def test_nodes_are_found_by_queue_trait_and_partition() -> None:
    nodes = [
        node("any"),
        node("bound", queue="big"),
        node("gpu", traits={"Qlist": frozenset({"gpu", "debug"})}),
        node("apart", partition="p2"),
    ]
    queues = {
        "plain": PbsQueue(name="plain"),
        "big": PbsQueue(name="big"),
        "gpu": PbsQueue(name="gpu", wants={"Qlist": "gpu"}),
        "p2": PbsQueue(name="p2", partition="p2"),
        "all": PbsQueue(name="all", routes_to=("big", "again")),
        "again": PbsQueue(name="again", routes_to=("gpu", "all")),
    }
    used = {name: sorted(find_site(nodes, queues, name).nodes) for name in queues}
    assert used == {
        "plain": ["any", "gpu"],
        "big": ["bound"],
        "gpu": ["gpu"],
        "p2": ["apart"],
        "all": ["bound", "gpu"],
        "again": ["bound", "gpu"],
    }
    assert find_site(nodes, queues, "gpu").members.keys() == {"plain", "gpu", "all", "again"}


def test_a_queue_wants_what_its_chunks_name_and_not_what_they_use_up() -> None:
    text = "Queue: gpu\n    default_chunk.{}\n    enabled = True\n    started = True\n"
    values = ["ncpus = 4", "hbm = 1.5gb", "Qlist = gpu", "bigmem = True"]
    (queue,) = queues_of(parse_long(text.format("\n    default_chunk.".join(values)), "Queue: "), "alice")
    assert queue.wants == {"Qlist": "gpu", "bigmem": "True"}
    nodes = "n1\n     state = free\n     resources_available.Qlist = all,gpu\n"
    (fitting,) = nodes_of(parse_long(nodes + "     resources_available.bigmem = True\n", ""))
    (plain,) = nodes_of(parse_long(nodes, ""))
    assert [*served((fitting, plain), queue, ())] == [fitting]


def test_the_queue_must_be_known() -> None:
    with pytest.raises(SchedulerError, match="no queue night; there are: express, route, workq"):
        find_site([node("n1")], QUEUES, "night")
    with pytest.raises(SchedulerError, match="no default queue: set `partition`"):
        find_site([node("n1")], QUEUES, None)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.booleans(), st.booleans())))
def test_processors_are_those_of_our_nodes_in_service(
    vnodes: list[tuple[str, int, bool, bool]],
) -> None:
    """However vnodes of a machine are split among queues, and whichever of them are down."""
    nodes = [
        node(
            f"{host}[{n}]",
            state="free" if up else "down",
            processors=processors,
            queue=None if ours else "express",
        )
        for n, (host, processors, up, ours) in enumerate(vnodes)
    ]
    state = look(nodes, [])
    usable = [each for each in state.nodes if each.ours and each.in_service]
    assert state.processors == sum(each.processors for each in usable)
    assert len({each.name for each in state.nodes}) == len(state.nodes)
