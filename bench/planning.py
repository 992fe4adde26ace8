"""Time of one planning step with 1,000 jobs in the queue.

The queue: 300 running jobs and 700 pending ones of which the scheduler has planned none, all of
different shapes, on 1,024 processors. Alone: `python -m bench.planning`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.availability import availability
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, SiteRules, SiteState, TaskGroup
from adaptor.decisions.decide import decide
from adaptor.decisions.memory import Memory
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import Limits, PendingJob, QueueState, RunningJob
from adaptor.scheduling.state import SiteTerms
from bench.stopwatch import median_seconds
from bench.table import Row, show, timed

RUNNING, PENDING, PROCESSORS = 300, 700, 1024
REPETITIONS = 11
TARGET = 0.050


def crowded_queue(seed: int) -> QueueState:
    """A queue with jobs of any number of processors and any whole number of minutes up to a day."""
    draw = random.Random(seed)  # noqa: S311 (not for secrets)
    running = [
        RunningJob(f"r{i}", draw.randint(1, 2 * PROCESSORS // RUNNING - 1), draw.uniform(60, 86400))
        for i in range(RUNNING)
    ]
    pending = [
        PendingJob(f"p{i}", draw.randint(1, 128), 60.0 * draw.randint(5, 1440)) for i in range(PENDING)
    ]
    return QueueState(now=0.0, processors=PROCESSORS, running=tuple(running), pending=tuple(pending))


def view(queue: QueueState, heuristic: str, requests: int) -> SiteState:
    limits = Limits(max_pending_requests=requests, max_proc=64, max_tr=64800)
    return SiteState(
        now=queue.now,
        queue=queue,
        rules=SiteRules(limits=limits, time_resolution=60, slot_margin=60, pad=30.0),
        heuristic=heuristic,
        demands=(Demand(waiting=10_000, runtime=1000.0, payers={1: 10_000.0}),),
    )


def snapshot(queue: QueueState, sites: int) -> Snapshot:
    """One bag at sites with the same queue; the first one decides."""
    ledger = Ledger()
    facts, terms = {}, {}
    known = view(queue, "adaptive", 6)
    for number in range(sites):
        name = f"site {number}"
        facts[name] = SiteFacts(
            now=queue.now, name=name, rules=known.rules, heuristic="adaptive", queue=queue
        )
        terms[name] = SiteTerms(initial_tr=1000.0, growth_factor=2, longest=64_000.0)
        ledger.set_price(name, Tariff(price_explicit=1.0, price_donated=1.0), 0.0)
    (demand,) = known.demands
    return Snapshot(
        site="site 0",
        sites=facts,
        queue=queue,
        terms=terms,
        demands=known.demands,
        groups=(TaskGroup(demand.waiting, dict.fromkeys(facts, demand)),),
        ledger=ledger,
        memory=Memory(),
        work=True,
    )


def rows() -> Iterator[Row]:
    queue = crowded_queue(seed=1)
    steps: dict[str, tuple[Callable[[], object], float | None]] = {
        "availability of 1,000 jobs": (lambda: availability(queue), None),
        "planning step, static, 6 requests": (lambda: plan(view(queue, "static", 6)), TARGET),
        "planning step, adaptive, 6 requests": (lambda: plan(view(queue, "adaptive", 6)), TARGET),
        "planning step, adaptive, 100 requests": (lambda: plan(view(queue, "adaptive", 100)), None),
        "whole decision of one site, adaptive, 6": (lambda: decide(snapshot(queue, sites=1)), None),
        "whole decision beside a second site": (lambda: decide(snapshot(queue, sites=2)), None),
    }
    for name, (step, most) in steps.items():
        yield timed(name, median_seconds(step, REPETITIONS), most)


if __name__ == "__main__":
    show("One planning step with 1,000 jobs in the queue", rows())
