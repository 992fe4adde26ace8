"""Small random grid jobs on small random clusters."""

from __future__ import annotations

from hypothesis import strategies as st

from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor.runtimes.known import ENOUGH, EarlierTasks
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.grid_job import GridTerms, WorkerTerms
from tests.simulation.trace_strategies import PROCESSORS, policies, traces

MAX_TR = 40


def earlier(mean: int) -> EarlierTasks:
    return EarlierTasks(kind="fit", tasks=9, mean=float(mean), factor=2.0, low=mean / 2, high=2.0 * mean)


@st.composite
def terms(draw: st.DrawFn) -> GridTerms:
    limits = Limits(
        max_pending_requests=draw(st.integers(1, 4)),
        max_proc=draw(st.integers(1, PROCESSORS + 2)),
        max_tr=MAX_TR,
    )
    pad = draw(st.integers(0, 4))
    workers = WorkerTerms(
        last=draw(st.integers(0, pad)),
        idle_timeout=draw(st.sampled_from([0, 0, 3, 15])),
        latency=0.0,
        reserve=0.0,
    )
    return GridTerms(
        rules=SiteRules(limits=limits, pad=float(pad)),
        heuristic=draw(st.sampled_from(["static", "adaptive", "completion"])),
        workers=workers,
        initial_tr=float(draw(st.integers(1, 30))),
        earlier=draw(st.none() | st.integers(1, 30).map(earlier)),
        growth_factor=draw(st.integers(2, 3)),
        poll_interval=draw(st.sampled_from([0, 0, 7])),
    )


bags = st.one_of(
    # Some of these are cut although they had all the time that a request can give.
    st.lists(st.integers(MAX_TR - 8, MAX_TR - 4), min_size=1, max_size=12),
    st.lists(st.integers(1, MAX_TR - 4), min_size=1, max_size=40),
    st.tuples(st.integers(1, MAX_TR - 4), st.integers(1, 40)).map(lambda drawn: [drawn[0]] * drawn[1]),
    # So many and so different that they start at even odds, where they may.
    st.lists(st.integers(1, MAX_TR - 4), min_size=ENOUGH + 1, max_size=60),
    st.lists(st.sampled_from([1, 2, 3, 30, 36]), min_size=ENOUGH + 1, max_size=60),
)
scenes = st.tuples(traces(), policies, st.integers(0, 70))


def cluster_of(scene) -> Cluster:
    jobs, policy, at = scene
    cluster = cluster_of_processors(jobs, PROCESSORS, policy)
    cluster.advance(at)
    return cluster
