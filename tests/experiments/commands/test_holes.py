"""What `adaptor replay holes` says, and the options of `adaptor replay bag` about nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaptor.errors import UsageError
from adaptor_experiments.commands.replay import replay
from adaptor_simulation.files import TraceError
from tests.simulation.invoking_replay import call

SMALL = Path(__file__).parents[3] / "fixtures" / "traces" / "small.swf"


def ask(command, *arguments):
    return call(replay, command, "--trace", SMALL, "--tasks", 30, "--task-time", "10m", *arguments).output


def test_both_profiles_side_by_side():
    told = ask("holes", "--nodes", "8x8", "--chunk", "4", "--cpus", "3", "--samples", "5")
    assert told.splitlines()[0].split() == ["the", "planner", "sees", "processors", "nodes"]
    before, after = json.loads(
        ask("holes", "--nodes", "8x8", "--chunk", "4", "--cpus", "3", "--samples", "5", "--json")
    )
    assert (before["profile"], after["profile"]) == ("processors", "nodes")
    assert before["bags"] == after["bags"] == len(after["turnarounds"]) == 5
    assert after["started"] == after["promised"]


def test_a_bag_by_one_profile_or_by_both():
    on_nodes = ("bag", "--nodes", "8x8", "--cpus", "3", "--heuristic", "adaptive")
    both = json.loads(ask(*on_nodes, "--profile", "nodes,processors", "--json"))
    assert [each["profile"] for each in both] == ["processors", "nodes"]
    (one,) = json.loads(ask(*on_nodes, "--json"))
    assert one == both[1]
    text = ask(*on_nodes, "--scheduler", "easy")
    assert text.splitlines()[0].split() == ["adaptive,", "nodes"]
    assert "started at once, as planned" in text


def test_one_node_of_all_processors_gives_the_same_answer_as_processors():
    (nodes,) = json.loads(ask("bag", "--nodes", "1x64", "--heuristic", "adaptive", "--json"))
    (processors,) = json.loads(ask("bag", "--heuristic", "adaptive", "--json"))
    for name in ("profile", "left_out"):
        nodes.pop(name)
    for request in [*nodes["requests"], *processors["requests"]]:
        request.pop("reason")
    assert nodes == processors


def test_jobs_that_the_nodes_never_hold_are_counted():
    told = ask("bag", "--nodes", "10x4", "--chunk", "3")
    assert "of the trace left out: the nodes never hold them" in told
    with pytest.raises(TraceError, match=r"small\.swf: .*(never hold|needs)"):
        ask("bag", "--nodes", "10x4", "--chunk", "3", "--larger", "refuse")


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        ("holes", (), "on which nodes"),
        ("bag", ("--nodes", "many"), "--nodes: 'many' is no kind of nodes"),
        ("bag", ("--chunk", "4"), "--chunk means nothing without --nodes"),
        ("bag", ("--node-memory", "4G"), "--node-memory means nothing without --nodes"),
        ("bag", ("--profile", "nodes"), "--profile means nothing without --nodes"),
        ("bag", ("--nodes", "8x8", "--processors", "64"), "say one of them"),
        ("bag", ("--nodes", "8x8", "--chunk", "0"), "--chunk: '0' is neither"),
        ("bag", ("--nodes", "8x8", "--chunk", "half"), "--chunk: 'half' is neither"),
        ("bag", ("--nodes", "8x8", "--profile", "gpus"), "--profile: 'gpus' is none of processors, nodes"),
    ],
)
def test_options_that_do_not_go_together_are_said(command, arguments, says):
    with pytest.raises(UsageError, match=says):
        ask(command, *arguments)
