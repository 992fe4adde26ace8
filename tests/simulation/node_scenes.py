"""Small random clusters of nodes, and traces on them."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import strategies as st

from adaptor.resources import Node
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.machine import Machine
from tests.simulation.trace_strategies import PROCESSORS, traces

GIB = 2**30


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines with at least as many processors as the largest job of `traces`."""
    by_memory = draw(st.booleans())
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=5).filter(lambda n: sum(n) >= PROCESSORS))
    nodes = tuple(
        Node(name=f"n{i}", processors=size, memory=draw(st.integers(2, 6)) * GIB if by_memory else None)
        for i, size in enumerate(sizes)
    )
    return Machine(nodes=nodes, by_memory=by_memory)


@st.composite
def with_memory(draw: st.DrawFn, most: int = 30) -> Jobs:
    jobs = draw(traces(most))
    memory = draw(st.lists(st.integers(0, 3), min_size=len(jobs), max_size=len(jobs)))
    return msgspec.structs.replace(jobs, memory=np.array(memory, np.int64) * GIB)
