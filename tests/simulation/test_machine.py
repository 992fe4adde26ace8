"""Nodes as text, and the jobs of a trace on them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from adaptor.resources import Need
from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.machine import lay_out, parse_machine
from tests.simulation.trace_strategies import jobs_from

GIB = 2**30


def of_processors(*processors: int, memory: tuple[int, ...] | None = None) -> Jobs:
    jobs = jobs_from([(0, each, 10, 10) for each in processors])
    return msgspec.structs.replace(jobs, memory=np.array(memory, np.int64) * GIB if memory else None)


def test_kinds_of_nodes_in_the_order_in_which_they_are_filled():
    machine = parse_machine("2x4 + 1x8:32G", "16G")
    assert [(node.name, node.processors, node.memory) for node in machine.nodes] == [
        ("n1", 4, 16 * GIB),
        ("n2", 4, 16 * GIB),
        ("n3", 8, 32 * GIB),
    ]
    assert machine.processors == 16
    assert machine.capacity().tolist() == [[4, 16 * GIB], [4, 16 * GIB], [8, 32 * GIB]]
    assert parse_machine("2x4").capacity().tolist() == [[4], [4]]


@pytest.mark.parametrize(
    ("text", "memory", "says"),
    [
        ("", None, "'' is no kind of nodes such as 128x4"),
        ("4", None, "'4' is no kind"),
        ("0x4", None, "'0x4' is no kind"),
        ("4x0", None, "'4x0' is no kind"),
        ("4x4+", None, "'' is no kind"),
        ("4x4:gpu", None, "'gpu' is not a size"),
        ("4x4", "much", "'much' is not a size"),
        ("4x4+2x8:64G", None, "4 nodes without memory; say --node-memory"),
        ("19999x1+2x1", None, "more than 20,000 nodes"),
    ],
)
def test_what_is_no_machine_is_said(text, memory, says):
    with pytest.raises(ValueError, match=says):
        parse_machine(text, memory)


def test_chunks_of_a_request_that_the_empty_nodes_hold():
    machine = parse_machine("4x4+1x8", "16G")
    assert machine.chunks(Need(chunks=1, processors=3)) == 6
    assert machine.chunks(Need(chunks=1, processors=1, memory=6 * GIB)) == 10
    assert machine.chunks(Need(chunks=1, processors=9)) == 0


def test_a_job_is_cut_into_equal_chunks_and_a_small_one_is_one():
    laid_out = lay_out(of_processors(1, 4, 6, 8), parse_machine("3x4"), 4)
    assert laid_out.chunks.tolist() == [1, 1, 2, 2]
    assert laid_out.each.tolist() == [[1], [4], [4], [4]]
    assert laid_out.jobs.processors.tolist() == [1, 4, 8, 8]
    assert laid_out.left_out == 0


def test_a_job_of_whole_nodes_takes_all_of_them():
    laid_out = lay_out(of_processors(1, 9, memory=(1, 1)), parse_machine("3x4", "16G"), None)
    assert laid_out.chunks.tolist() == [1, 3]
    assert laid_out.each.tolist() == [[4, 16 * GIB]] * 2
    with pytest.raises(TraceError, match="--chunk node: the nodes differ in size"):
        lay_out(of_processors(1), parse_machine("3x4+1x8"), None)


def test_memory_goes_with_the_processors_of_a_chunk():
    jobs = of_processors(2, 2, 8, memory=(0, 4, 1))
    laid_out = lay_out(jobs, parse_machine("3x4", "16G"), 4)
    assert laid_out.each.tolist() == [[2, 0], [2, 8 * GIB], [4, 4 * GIB]]
    assert lay_out(jobs, parse_machine("3x4"), 4).each.tolist() == [[2], [2], [4]]


def test_jobs_that_the_empty_nodes_never_hold_are_left_out():
    """5 chunks of 3 on 4 nodes of 4; and one processor with more memory than a node has."""
    laid_out = lay_out(of_processors(15, 12, 1, memory=(1, 1, 20)), parse_machine("4x4", "16G"), 3)
    assert laid_out.jobs.processors.tolist() == [12]
    assert laid_out.left_out == 2
    with pytest.raises(TraceError, match="hold none of the trace's jobs"):
        lay_out(of_processors(15), parse_machine("4x4"), 3)


def test_absurd_memory_is_more_than_any_node_has():
    jobs = msgspec.structs.replace(of_processors(4, 1), memory=np.array([2**60, 1]))
    assert lay_out(jobs, parse_machine("1x4", "16G"), 4).left_out == 1
