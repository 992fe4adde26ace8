"""Time of the profile of 1,000 nodes, with 1,000, 10,000 and 20,000 jobs in the queue.

The nodes have 32 processors and 128 GB, every tenth 4 GPUs. Running jobs hold parts of one to eight nodes. Of
the waiting jobs the scheduler has planned the first hundred, on nodes that it names; the others are planned
here. `adaptive`, `completion`: a whole planning step. `arrays`: twenty jobs in a row ask for the same;
`different`: no two do. Alone: `python -m bench.nodes`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from adaptor.crafting.availability import availability
from adaptor.crafting.nodes.schedule import node_schedule
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, SiteRules, SiteState
from adaptor.model import Limits, PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Node, Part, TaskSize
from bench.stopwatch import median_seconds
from bench.table import Row, show, timed

NODES, RUNNING, PLANNED = 1000, 300, 100
GB = 2**30
UNIT = Need(chunks=1, processors=3, memory=4 * GB)
REPETITIONS = 7


def crowded_nodes(pending: int, alike: int, seed: int = 1) -> QueueState:
    """`alike`: waiting jobs in a row that ask for the same."""
    draw = random.Random(seed)  # noqa: S311 (not for secrets)
    nodes = tuple(
        Node(name=f"n{n}", processors=32, memory=128 * GB, gpus=(("a100", 4),) if n % 10 == 0 else ())
        for n in range(NODES)
    )
    left = dict.fromkeys((node.name for node in nodes), 32)
    running = tuple(_running(draw, f"r{number}", nodes, left) for number in range(RUNNING))
    jobs: list[PendingJob] = []
    while len(jobs) < pending:
        chunks, processors = draw.choice([1, 2, 4, 16, 32, 64]), draw.choice([1, 2, 4, 8, 32])
        need = Need(chunks=chunks, processors=processors, memory=draw.choice([0, 1, 2, 4]) * processors * GB)
        tr = 60.0 * draw.randint(5, 1440)
        for _ in range(min(alike, pending - len(jobs))):
            jobs.append(PendingJob(f"p{len(jobs)}", chunks * processors, tr, need=need))
    return QueueState(
        now=0.0, processors=32 * NODES, running=running, pending=(*_planned(draw, nodes), *jobs), nodes=nodes
    )


def _running(draw: random.Random, id: str, nodes: tuple[Node, ...], left: dict[str, int]) -> RunningJob:
    processors, wide = draw.choice([4, 8, 16, 32]), draw.choice([1, 1, 1, 1, 2, 4, 8])
    parts = []
    for node in draw.sample(nodes, 4 * wide):
        if len(parts) < wide and left[node.name] >= processors:
            left[node.name] -= processors
            parts.append(Part(node=node.name, processors=processors, memory=2 * processors * GB))
    return RunningJob(id, processors * len(parts), draw.uniform(60, 86400), tuple(parts))


def _planned(draw: random.Random, nodes: tuple[Node, ...]) -> Iterator[PendingJob]:
    for number in range(PLANNED):
        chosen = draw.sample(nodes, draw.choice([1, 2, 4, 8]))
        parts = tuple(node.whole for node in chosen)
        start, tr = draw.uniform(60, 86400), 60.0 * draw.randint(5, 1440)
        yield PendingJob(f"s{number}", 32 * len(parts), tr, start, parts)


def _view(queue: QueueState, heuristic: str) -> SiteState:
    limits = Limits(max_pending_requests=6, max_proc=64, max_tr=64800)
    return SiteState(
        now=queue.now,
        queue=queue,
        rules=SiteRules(limits=limits, time_resolution=60, slot_margin=60, pad=30.0),
        heuristic=heuristic,
        demands=(Demand(waiting=10_000, runtime=1000.0, task=TaskSize(processors=3, memory=4 * GB)),),
    )


def rows() -> Iterator[Row]:
    """First the compiled loops are loaded."""
    node_schedule(crowded_nodes(10, 1), compiled=True)
    plan(_view(crowded_nodes(10, 1), "completion"))
    for pending, target in ((900, 0.050), (9900, 0.400), (19_900, 0.800)):
        for kind, alike in (("arrays", 20), ("different", 1)):
            queue = crowded_nodes(pending, alike)
            steps: dict[str, tuple[Callable[[], object], float | None]] = {
                "availability": (lambda queue=queue: availability(queue, UNIT), target),  # type: ignore[misc]
                "adaptive": (lambda queue=queue: plan(_view(queue, "adaptive")), None),  # type: ignore[misc]
                "completion": (lambda queue=queue: plan(_view(queue, "completion")), None),  # type: ignore[misc]
            }
            for name, (step, most) in steps.items():
                what = f"{name}, {pending + PLANNED:,} jobs, {kind}"
                yield timed(what, median_seconds(step, REPETITIONS), most)


if __name__ == "__main__":
    show("The profile of 1,000 nodes", rows())
