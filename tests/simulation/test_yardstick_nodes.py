"""The lower bound holds on nodes, and for tasks of several processors."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adaptor.resources import TaskSize
from adaptor_simulation.what_if import what_if
from tests.examples import examples
from tests.simulation.grid_strategies import MAX_TR, terms
from tests.simulation.test_queue_view import clusters
from tests.simulation.trace_strategies import PROCESSORS


@given(clusters(), terms(), st.lists(st.integers(1, MAX_TR - 4), min_size=1, max_size=20), st.integers(1, 3))
@examples(150)
def test_no_bag_is_over_before_the_bound(cluster, terms, runtimes, cpus):
    widest = max(node.processors for node in cluster.machine.nodes)
    most = min(terms.rules.limits.max_proc, PROCESSORS)
    limits = msgspec.structs.replace(terms.rules.limits, max_proc=most)
    rules = msgspec.structs.replace(terms.rules, limits=limits)
    task = TaskSize(processors=min(cpus, widest, most))
    terms = msgspec.structs.replace(terms, rules=rules, task=task)
    before = cluster.fork()
    (found,) = what_if(cluster, cluster.now, np.array(runtimes), [terms])
    assert found.bound <= found.result.turnaround
    assert (found.waits.jobs == 0) == (len(before.starts()[before.starts() < 0]) == 0)
