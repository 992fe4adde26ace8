"""Which idle nodes are used, and which are left."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.deciding import decide
from adaptor.donation.fitting import held, least_probability, room
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import (
    DonatedUse,
    DonationDemand,
    DonationRules,
    DonationState,
    Hours,
    LeaveNodes,
    NodeUse,
    NodeView,
    UseNodes,
    UseNoMore,
)
from adaptor.resources import TaskSize

NOW = 100_000.0
HAZARD = IdleLearner().hazard
TASKS = DonationDemand(waiting=100, needs=60.0)


def node(name="n1", use=NodeUse.IDLE, **more) -> NodeView:
    return NodeView(**{"name": name, "processors": 4, "use": use, "since": NOW - 3600, **more})


def used(name="n1", use=NodeUse.IDLE, since=NOW - 100, busy=4, **more) -> NodeView:
    return node(name, use, donated=DonatedUse(since=since, busy=busy), **more)


def step(*nodes, demands=(TASKS,), midnight=0.0, **rules):
    view = DonationState(
        now=NOW, nodes=nodes, rules=DonationRules(**rules), demands=demands, midnight=midnight
    )
    return decide(view, HAZARD)


def of(kind, decisions) -> list[str]:
    return [name for each in decisions if isinstance(each, kind) for name in each.nodes]


def test_idle_nodes_are_used_until_a_job_is_planned_there():
    decisions = step(node("n1"), node("n2", planned=NOW + 7200), node("n3", use=NodeUse.TAKEN))
    assert of(UseNodes, decisions) == ["n1", "n2"]
    assert {each.until for each in decisions if isinstance(each, UseNodes)} == {math.inf, NOW + 7200}


def test_a_node_on_which_a_job_is_planned_in_five_minutes_is_not_used():
    decisions = step(node(planned=NOW + 300))
    assert of(UseNodes, decisions) == []
    assert "1 planned sooner" in decisions[-1].reason


@pytest.mark.parametrize(
    ("use", "says"), [(NodeUse.TAKEN, "a local job takes it"), (NodeUse.AWAY, "down, drained, reserved")]
)
def test_what_a_local_job_or_the_operator_wants_is_left_at_once(use, says):
    decisions = step(used("n1", use), used("n2"))
    assert of(LeaveNodes, decisions) == ["n1"]
    assert says in decisions[0].reason


def test_nodes_that_two_local_jobs_want_are_left_once():
    decisions = step(*(used(f"n{i}", NodeUse.TAKEN) for i in range(4)), demands=())
    assert of(LeaveNodes, decisions) == ["n0", "n1", "n2", "n3"]


def test_without_tasks_no_node_is_used_and_idle_ones_are_left():
    decisions = step(node("n1"), used("n2", busy=0), used("n3"), demands=())
    assert of(UseNodes, decisions) == []
    assert of(LeaveNodes, decisions) == ["n2"]


@pytest.mark.parametrize("allocation", ["explicit"])
def test_explicit_bags_use_no_donated_nodes(allocation):
    assert step(node(), demands=(msgspec.structs.replace(TASKS, allocation=allocation),)) == []


def test_the_limits_of_the_rules():
    nodes = [node(f"n{i}") for i in range(10)]
    assert len(of(UseNodes, step(*nodes, max_nodes=3))) == 3
    assert len(of(UseNodes, step(*nodes, reserve_nodes=4))) == 6
    assert of(UseNodes, step(*nodes, max_nodes=0)) == []
    assert "max_nodes is 0" in step(*nodes, max_nodes=0)[-1].reason


def test_the_node_used_last_is_left_first_when_the_rules_want_some_back():
    nodes = [used("old", since=NOW - 900), used("young", since=NOW - 9), used("middle", since=NOW - 90)]
    assert of(LeaveNodes, step(*nodes, max_nodes=1)) == ["young", "middle"]
    assert of(LeaveNodes, step(*nodes, reserve_nodes=1)) == ["young"]


def test_outside_the_hours_no_node_is_used():
    night = (Hours(20 * 3600.0, 7 * 3600.0),)
    noon, evening = NOW - 12 * 3600, NOW - 21 * 3600
    assert of(UseNodes, step(node(), hours=night, midnight=noon)) == []
    assert of(LeaveNodes, step(used(), hours=night, midnight=noon)) == ["n1"]
    (decision,) = step(node("n1"), demands=(TASKS,), hours=night, midnight=evening)[:1]
    assert decision.until == NOW + 10 * 3600


def test_no_more_nodes_than_tasks_need_and_the_steadiest_of_them():
    nodes = [node("young", since=NOW - 60), node("old", since=NOW - 90_000), node("soon", planned=NOW + 9000)]
    few = (DonationDemand(waiting=4, needs=60.0),)
    assert of(UseNodes, step(*nodes, demands=few)) == ["old"]
    assert of(UseNodes, step(*nodes, used("n9", busy=0), demands=few)) == []


def test_tasks_that_would_rarely_fit_use_no_node():
    longer = HAZARD.longest(3600, 0.5) + 60
    assert of(UseNodes, step(node(), demands=(DonationDemand(waiting=9, needs=longer),))) == []
    alone = DonationDemand(waiting=9, needs=longer, allocation="transparent")
    assert of(UseNodes, step(node(), demands=(alone,))) == ["n1"]
    assert of(UseNodes, step(node(), demands=(DonationDemand(waiting=9),))) == ["n1"]


def test_a_task_that_spans_more_than_a_node_has_no_place():
    assert of(UseNodes, step(node(), demands=(DonationDemand(waiting=1, task=TaskSize(processors=5)),))) == []


def test_a_scheduler_that_does_not_answer_changes_nothing():
    view = DonationState(now=NOW, nodes=None, rules=DonationRules(), demands=(TASKS,))
    (keep,) = decide(view, HAZARD)
    assert isinstance(keep, UseNoMore)
    assert decide(msgspec.structs.replace(view, demands=()), HAZARD) == []


def test_patience_and_room():
    rules = DonationRules()
    assert [held(times, rules) for times in (0, 2, 3)] == [False, False, True]
    assert room(HAZARD, 0.0, 10.0, least_probability("mixed", rules)) == 10.0
    assert room(HAZARD, 0.0, 1e9, least_probability("explicit", rules)) == 0.0
    assert room(HAZARD, 0.0, -5.0, 0.5) == 0.0


@pytest.mark.parametrize("allocation", ["transparent", "mixed"])
def test_with_choose_all_neither_the_plan_nor_the_hazard_counts(allocation):
    """The rule of De Rose 2008, §3."""
    wanted = (DonationDemand(waiting=9, needs=1e9, allocation=allocation),)
    nodes = [node("new", since=NOW), node("soon", planned=NOW + 1), node("late", planned=NOW - 1)]
    assert of(UseNodes, step(*nodes, demands=wanted)) == []
    decisions = step(*nodes, demands=wanted, choose="all")
    assert sorted(of(UseNodes, decisions)) == ["late", "new", "soon"]
    assert {each.until for each in decisions if isinstance(each, UseNodes)} == {math.inf}
    assert "choose: all" in decisions[0].reason
    assert len(of(UseNodes, step(*nodes, demands=wanted, choose="all", max_nodes=2))) == 2
    assert of(LeaveNodes, step(used("n1", NodeUse.TAKEN), demands=wanted, choose="all")) == ["n1"]
    assert not held(99, DonationRules(choose="all"))


@st.composite
def views(draw: st.DrawFn) -> DonationState:
    ours = st.none() | st.builds(DonatedUse, since=st.floats(0, NOW), busy=st.integers(0, 1))
    count = draw(st.integers(0, 12))
    nodes = tuple(
        NodeView(
            name=f"n{i}",
            processors=draw(st.integers(1, 4)),
            use=draw(st.sampled_from(NodeUse)),
            since=draw(st.floats(0, NOW)),
            planned=draw(st.just(math.inf) | st.floats(NOW - 100, NOW + 1e5)),
            donated=draw(ours),
        )
        for i in range(count)
    )
    rules = DonationRules(
        choose=draw(st.sampled_from(["likely", "all"])),
        max_nodes=draw(st.none() | st.integers(0, 8)),
        reserve_nodes=draw(st.integers(0, 4)),
        hours=draw(st.sampled_from([(), (Hours(0, 40_000),)])),
    )
    demand = st.builds(
        DonationDemand,
        waiting=st.integers(0, 20),
        task=st.builds(TaskSize, processors=st.integers(1, 3)),
        needs=st.floats(0, 1e5),
        allocation=st.sampled_from(["explicit", "transparent", "mixed"]),
    )
    return DonationState(now=NOW, nodes=nodes, rules=rules, demands=tuple(draw(st.lists(demand, max_size=3))))


@given(views())
def test_what_holds_in_every_step(view):
    decisions = decide(view, HAZARD)
    uses, leaves = of(UseNodes, decisions), of(LeaveNodes, decisions)
    by_name = {each.name: each for each in view.nodes}
    assert len({*uses, *leaves}) == len(uses) + len(leaves)
    assert all(by_name[name].use is NodeUse.IDLE and by_name[name].donated is None for name in uses)
    if view.rules.choose == "likely":
        assert all(by_name[name].planned - NOW > view.rules.useful_time for name in uses)
    wanted = {each.name for each in view.nodes if each.donated and each.use is not NodeUse.IDLE}
    assert wanted <= {*leaves}
    after = {each.name for each in view.nodes if each.donated} - {*leaves} | {*uses}
    assert view.rules.max_nodes is None or len(after) <= view.rules.max_nodes
    idle = [each for each in view.nodes if each.use is NodeUse.IDLE and each.donated is None]
    if uses:
        assert len(idle) - len(uses) >= view.rules.reserve_nodes
        assert any(each.waiting and each.allocation != "explicit" for each in view.demands)
    assert all(each.reason for each in decisions)
    # A second step that sees the first one done uses nothing new.
    assert of(UseNodes, decide(_done(view, uses, leaves), HAZARD)) == []


def _done(view, uses, leaves):
    """The view after the decisions, the used nodes not yet at work."""
    nodes = tuple(
        msgspec.structs.replace(each, donated=DonatedUse(since=NOW))
        if each.name in uses
        else msgspec.structs.replace(each, donated=None, use=NodeUse.TAKEN)
        if each.name in leaves
        else each
        for each in view.nodes
    )
    return msgspec.structs.replace(view, nodes=nodes)
