"""Each request goes to the partition where it runs most tasks for its time, and the others know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.availability import Availability
from adaptor.crafting.planner import plan
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteState, SubmitRequest, Withhold
from adaptor.model import (
    CraftedRequest,
    Limits,
    PendingJob,
    PilotState,
    QueueState,
    Request,
    RunningJob,
)
from adaptor.resources import Need, Node, Part
from backends.partitions import most_of, together
from tests.runtimes.known import known_runtimes

from .planner_views import views

HOUR = 3600
SHORT = Limits(max_pending_requests=4, max_proc=16, max_tr=2 * HOUR)
LONG = Limits(max_pending_requests=4, max_proc=16, max_tr=48 * HOUR)
HEURISTICS = ["static", "adaptive", "completion"]


def nodes(*names: str) -> tuple[Node, ...]:
    return tuple(Node(name=name, processors=4) for name in names)


def queue(*running: RunningJob, nodes: tuple[Node, ...] = (), processors: int = 16) -> QueueState:
    return QueueState(now=0.0, processors=processors, running=running, nodes=nodes)


def on(name: str, end: float) -> RunningJob:
    """A job on all of a node of 4 processors."""
    return RunningJob(f"on {name}", 4, end, (Part(node=name, processors=4),))


def site(
    partitions: Mapping[str, tuple[QueueState, Limits]],
    *demands: Demand,
    most: int = 4,
    heuristic: str = "adaptive",
    pilots: tuple[PilotView, ...] = (),
    avoided: Mapping[str, str] | None = None,
    closed: Mapping[str, str] | None = None,
) -> SiteState:
    limits = most_of({name: limits for name, (_, limits) in partitions.items()})
    return SiteState(
        now=0.0,
        queue=together(
            {name: queue for name, (queue, _) in partitions.items() if name not in (closed or {})}, closed
        ),
        rules=SiteRules(limits=msgspec.structs.replace(limits, max_pending_requests=most), pad=30.0),
        heuristic=heuristic,
        requests=pilots,
        demands=demands,
        avoided={(demands[0].shape, name): why for name, why in (avoided or {}).items()},
    )


def tasks(count: int, runtime: float) -> Demand:
    known = known_runtimes(finished=10, mean=runtime, longest=runtime)
    return Demand(waiting=count, runtime=runtime, shortest=runtime, times=known)


def issued(view: SiteState) -> list[CraftedRequest]:
    return [each.crafted for each in plan(view) if isinstance(each, SubmitRequest)]


def withheld(view: SiteState) -> str:
    (found,) = (each.reason for each in plan(view) if isinstance(each, Withhold))
    return found


HOLES = {
    # One node is idle for two hours; in the other partition all are idle from three hours on.
    "short": (queue(on("a", 9 * HOUR), nodes=nodes("a", "b"), processors=8), SHORT),
    "long": (queue(on("c", 3 * HOUR), on("d", 3 * HOUR), nodes=nodes("c", "d"), processors=8), LONG),
}


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_short_tasks_go_where_the_hole_is_and_long_ones_where_they_may_last(heuristic: str) -> None:
    short = issued(site(HOLES, tasks(4, 600.0), heuristic=heuristic))
    assert {each.partition for each in short} == {"short"}
    long = issued(site(HOLES, tasks(4, 5.0 * HOUR), heuristic=heuristic))
    assert {each.partition for each in long} == {"long"}
    assert all(each.request.tr >= 5 * HOUR for each in long)


@pytest.mark.parametrize("heuristic", ["adaptive", "completion"])
def test_tasks_of_one_bag_go_to_both_when_one_has_no_room_for_all(heuristic: str) -> None:
    made = issued(site(HOLES, tasks(64, HOUR - 60.0), heuristic=heuristic))
    assert min(made, key=lambda each: each.predicted_start or 0.0).partition == "short"
    assert {each.partition for each in made} == {"short", "long"}
    assert len(made) <= 4
    assert sum(each.tasks for each in made) <= 64
    assert sum(each.tasks for each in made if each.partition == "long") >= 32


def test_the_only_request_goes_where_it_does_most_not_where_it_starts_first() -> None:
    (only,) = issued(site(HOLES, tasks(64, 600.0), most=1))
    assert only.partition == "short"
    (only,) = issued(site(HOLES, tasks(640, HOUR - 60.0), most=1))
    assert only.partition == "long"


@pytest.mark.parametrize("heuristic", ["static", "adaptive"])
def test_the_reason_names_the_partition_and_what_the_other_offers(heuristic: str) -> None:
    first, *_ = issued(site(HOLES, tasks(4, 600.0), heuristic=heuristic))
    assert "; in short (" in first.reason
    assert "tasks an hour, from now), rather than long (" in first.reason
    assert "in 3h" in first.reason


def test_a_set_of_requests_names_the_partition_of_each() -> None:
    first, *_ = issued(site(HOLES, tasks(64, HOUR - 60.0), heuristic="completion"))
    assert "in short now + " in first.reason
    assert "in long at 03:00:00" in first.reason


def test_of_equal_partitions_the_first_listed_gets_the_request() -> None:
    same = queue(nodes=nodes("a", "b"), processors=8)
    for names in (["p", "q"], ["q", "p"]):
        made = issued(site(dict.fromkeys(names, (same, SHORT)), tasks(4, 600.0)))
        assert {each.partition for each in made} == {names[0]}


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_partitions_without_a_common_node_work_side_by_side(heuristic: str) -> None:
    p, q = queue(nodes=nodes("a", "b"), processors=8), queue(nodes=nodes("c", "d"), processors=8)
    made = issued(site({"p": (p, SHORT), "q": (q, SHORT)}, tasks(64, 600.0), heuristic=heuristic))
    done = {name: sum(each.tasks for each in made if each.partition == name) for name in "pq"}
    assert done == {"p": 32, "q": 32}


@pytest.mark.parametrize("heuristic", ["adaptive", "completion"])
def test_a_request_takes_the_nodes_that_partitions_share(heuristic: str) -> None:
    """Two names for the same 8 processors hold no more tasks than the 8 do."""
    same = queue(nodes=nodes("a", "b"), processors=8)
    made = issued(
        site({"p": (same, SHORT), "q": (same, SHORT)}, tasks(100, 3000.0), most=8, heuristic=heuristic)
    )
    assert _most_at_once(made) <= 8


def test_of_partly_shared_nodes_only_those_are_taken_that_the_request_gets() -> None:
    p, q = queue(nodes=nodes("a", "b"), processors=8), queue(nodes=nodes("b", "c"), processors=8)
    made = issued(site({"p": (p, SHORT), "q": (q, SHORT)}, tasks(12, 3000.0), most=8))
    now = [each for each in made if each.predicted_start == 0.0]
    assert sum(each.request.p for each in now) == 12, "8 of p, and c of q"


def test_a_request_that_starts_later_is_made_before_one_that_would_take_its_nodes() -> None:
    """q needs a and c from 600 s on; a request of p for now takes b beside it, and a where it comes first."""
    p = queue(nodes=nodes("a", "b"), processors=8)
    q = queue(on("c", 600.0), nodes=nodes("a", "c"), processors=8)
    narrow = msgspec.structs.replace(LONG, max_proc=4)
    made = issued(site({"p": (p, narrow), "q": (q, LONG)}, tasks(12, 9000.0), most=2))
    assert [(each.partition, each.request.p, each.predicted_start) for each in made] == [
        ("q", 8, 600.0),
        ("p", 4, 0.0),
    ]


@pytest.mark.parametrize("heuristic", ["adaptive", "completion"])
def test_a_request_that_is_being_submitted_takes_shared_nodes_too(heuristic: str) -> None:
    same = queue(nodes=nodes("a", "b"), processors=8)
    pilot = PilotView(
        id=1, state=PilotState.SUBMITTING, request=Request(8, HOUR), partition="p", shape=tasks(1, 1).shape
    )
    view = site(
        {"p": (same, SHORT), "q": (same, SHORT)}, tasks(100, 3000.0), pilots=(pilot,), heuristic=heuristic
    )
    assert all((each.predicted_start or 0.0) >= HOUR for each in issued(view))


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_partition_has_a_limit_of_its_own_below_that_of_the_site(heuristic: str) -> None:
    one = msgspec.structs.replace(SHORT, max_pending_requests=1)
    holes = {"short": (HOLES["short"][0], one), "long": HOLES["long"]}
    there = PilotView(id=1, state=PilotState.QUEUED, request=Request(1, 600), partition="short")
    assert [each.partition for each in issued(site(holes, tasks(400, 600.0), heuristic=heuristic))].count(
        "short"
    ) == 1
    made = issued(site(holes, tasks(400, 600.0), pilots=(there,), heuristic=heuristic))
    assert made
    assert {each.partition for each in made} == {"long"}


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_partition_that_is_closed_or_where_requests_fail_gets_none(heuristic: str) -> None:
    for view in (
        site(HOLES, tasks(4, 600.0), heuristic=heuristic, closed={"short": "partition short is down"}),
        site(HOLES, tasks(4, 600.0), heuristic=heuristic, avoided={"short": "invalid account"}),
    ):
        assert {each.partition for each in issued(view)} == {"long"}


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_where_no_partition_can_run_them_it_says_why_of_each(heuristic: str) -> None:
    none = queue(processors=0)
    said = withheld(
        site({"short": (none, SHORT), "long": (none, LONG)}, tasks(4, 5.0 * HOUR), heuristic=heuristic)
    )
    assert "short: a task may need 5h 30s, and a request lasts 2h at most" in said
    assert "long: " in said


@given(views(heuristics=("static", "adaptive", "completion")))
def test_one_partition_is_as_none(view: SiteState) -> None:
    if view.queue is None:
        return
    limits = msgspec.structs.replace(view.rules.limits, partitions={"only": view.rules.limits})
    pilots = tuple(msgspec.structs.replace(each, partition="only") for each in view.requests)
    named = msgspec.structs.replace(
        view,
        queue=together({"only": view.queue}),
        rules=msgspec.structs.replace(view.rules, limits=limits),
        requests=pilots,
    )

    def bare(decision: object) -> object:
        if not isinstance(decision, SubmitRequest):
            return decision
        return msgspec.structs.replace(
            decision, crafted=msgspec.structs.replace(decision.crafted, partition="")
        )

    assert [bare(each) for each in plan(named)] == plan(view)


@st.composite
def shared(draw: st.DrawFn) -> SiteState:
    """Two partitions over some of six nodes, on which jobs run, and tasks of two kinds."""
    names = "abcdef"
    subsets = st.sets(st.sampled_from(names), min_size=1).map(sorted)
    held = {name: on(name, draw(st.integers(1, 40)) * 600.0) for name in names if draw(st.booleans())}
    partitions = {}
    for name in ("p", "q"):
        members = draw(subsets)
        limits = Limits(
            max_pending_requests=draw(st.integers(1, 4)),
            max_proc=draw(st.integers(1, 24)),
            max_tr=draw(st.integers(5, 200)) * 60,
        )
        running = [held[each] for each in members if each in held]
        partitions[name] = (queue(*running, nodes=nodes(*members), processors=4 * len(members)), limits)
    demand = st.builds(tasks, st.integers(1, 60), st.integers(60, 9000).map(float))
    demands = draw(st.lists(demand, min_size=1, max_size=2))
    demands = [msgspec.structs.replace(each, bag=bag) for bag, each in enumerate(demands)]
    return site(
        partitions, *demands, most=draw(st.integers(1, 6)), heuristic=draw(st.sampled_from(HEURISTICS))
    )


@given(shared())
def test_limits_hold_in_each_partition_and_together(view: SiteState) -> None:
    made = issued(view)
    limits = view.rules.limits
    assert len(made) <= limits.max_pending_requests
    for name, own in limits.partitions.items():
        there = [each.request for each in made if each.partition == name]
        assert len(there) <= own.max_pending_requests
        assert all(each.p <= own.max_proc and each.tr <= own.max_tr for each in there)


@given(shared())
def test_requests_that_are_to_start_now_all_fit_on_the_nodes_at_once(view: SiteState) -> None:
    """What each gets of its partition in turn, as the scheduler would place it, is all that it asks for.

    Of later ones that is not known: a request of another partition may get a node that they were planned on.
    """
    queue = view.queue
    assert queue is not None
    there = {node.name: node for each in queue.partitions.values() for node in each.nodes}
    everything = dict(sorted(there.items()))  # the order in which all partitions fill them
    running = {job.id: job for each in queue.partitions.values() for job in each.running}
    pending: tuple[PendingJob, ...] = ()
    for number, each in enumerate(issued(view)):
        if each.predicted_start != queue.now:
            continue
        members = frozenset(node.name for node in queue.partitions[each.partition].nodes)
        ask = Need(chunks=each.request.p, processors=1, nodes=members)
        state = QueueState(
            now=queue.now,
            processors=4 * len(everything),
            running=tuple(running.values()),
            pending=pending,
            nodes=tuple(everything.values()),
        )
        free = Availability(state).profile(Need(chunks=1, processors=1, nodes=members))
        begin = each.predicted_start
        assert free.minimum(begin, begin + each.request.tr) >= each.request.p
        pending += (PendingJob(str(number), each.request.p, each.request.tr, begin, need=ask),)


def test_a_later_request_leaves_what_comes_before_it_to_those_of_now() -> None:
    """Nine processors from 30 minutes on take all of p, whose nodes the three of now, in q, share before."""
    short = Limits(max_pending_requests=1, max_proc=2, max_tr=660)
    long = Limits(max_pending_requests=2, max_proc=9, max_tr=2460)
    on_a, on_b = on("a", 600.0), on("b", 1800.0)
    view = site(
        {
            "p": (queue(on_a, nodes=nodes("a", "c"), processors=8), short),
            "q": (queue(on_a, on_b, nodes=nodes("a", "b", "c"), processors=12), long),
        },
        tasks(40, 593.0),
        most=3,
        heuristic="completion",
    )
    asked = [(each.partition, each.request.p, each.predicted_start) for each in issued(view)]
    assert asked == [("q", 3, 0.0), ("p", 1, 0.0), ("q", 9, 1800.0)]


def _most_at_once(made: Sequence[CraftedRequest]) -> int:
    beside = Profile(0.0, 10**6)
    for each in made:
        beside.take(each.predicted_start or 0.0, each.request.tr, each.request.p)
    return 10**6 - min(free for _, free in beside.steps())
