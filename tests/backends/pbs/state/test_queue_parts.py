"""What jobs hold of machines, from recorded and made-up rows."""

from __future__ import annotations

import pytest

from adaptor.model import QueueState
from adaptor.resources import Part
from backends.observed.rows import Amounts
from backends.observed.state import HIDDEN
from backends.pbs.fields import amounts_of, parse_vnodes
from tests.backends.pbs.pbs_rows import job, node
from tests.backends.pbs.state.test_queue import look

GB = 2**30


def parts(state: QueueState) -> dict[str, tuple[Part, ...]]:
    return {each.id: each.parts for each in state.running}


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
