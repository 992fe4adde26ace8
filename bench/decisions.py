"""Time of one whole decision of a site with a long queue, by heuristic: `python -m bench.decisions`.

The queue: waiting jobs of different users, limits and widths, a third as many running ones, and four requests
of ours, two of which wait: a heuristic that withdraws has to weigh them. Each of `--queues` queues is decided
on before anything is known of the tasks, and when some have finished. A decision is all that the daemon
computes in one step, in a thread; the scheduler's answers take their own time. Counted are seconds of a
processor, which a busy machine does not change much.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator

from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.situation import Demand, SiteRules, TaskGroup
from adaptor.decisions.decide import decide
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import EndedJob, Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.scheduling.state import SiteTerms
from bench.table import Row, in_words, show

PROCESSORS = 4096
USERS = 60
TARGETS = {100: 0.06, 1000: 0.25}
"""Seconds of a decision, by queued jobs: the first of a process is counted too, since nothing is compiled."""


def long_queue(waiting: int, draw: random.Random) -> QueueState:
    """Its jobs, four of ours among them."""
    running, used = [], 0
    for number in range(waiting // 3):
        width = draw.choice((1, 2, 4, 8, 16, 32))
        if used + width <= PROCESSORS - 64:
            running.append(RunningJob(f"r{number}", width, draw.uniform(60, 43_200)))
            used += width
    pending = [
        PendingJob(f"p{number}", draw.choice((1, 4, 16, 64, 256)), 60.0 * draw.randint(5, 1440))
        for number in range(waiting)
    ]
    pending.insert(waiting // 2, PendingJob("own-3", 64, 7200.0))
    pending.append(PendingJob("own-4", 32, 3600.0))
    running += [RunningJob(f"own-{number}", 16, 1800.0 * number) for number in (1, 2)]
    names = [job.id for job in (*running, *pending)]
    return QueueState(
        now=0.0,
        processors=PROCESSORS,
        running=tuple(running),
        pending=tuple(pending),
        owners={name: f"u{draw.randrange(USERS)}" for name in names},
        limits={job.id: 43_200.0 for job in running},
    )


def snapshot(queue: QueueState, heuristic: str, runtime: float, jobs: RunShares) -> Snapshot:
    pilots = tuple(
        Pilot(
            id=number,
            state=PilotState.RUNNING if number < 3 else PilotState.QUEUED,
            request=Request(*{1: (16, 3600), 2: (16, 3600), 3: (64, 7200), 4: (32, 3600)}[number]),
            started=-600.0 if number < 3 else None,
            ends=1800.0 * number if number < 3 else None,
            processors=16 if number < 3 else None,
            submitted=-7200.0,
            predicted_start=0.0,
            job=f"own-{number}",
        )
        for number in (1, 2, 3, 4)
    )
    limits = Limits(max_pending_requests=6, max_proc=256, max_tr=64_800)
    rules = SiteRules(limits=limits, time_resolution=60, slot_margin=100, pad=30.0, max_submissions=60)
    demand = Demand(waiting=10_000, running=32, runtime=runtime, shortest=runtime, payers={1: 10_000.0})
    site = SiteFacts(
        now=0.0, name="hpc", rules=rules, heuristic=heuristic, queue=queue, requests=pilots, jobs=jobs
    )
    ledger = Ledger()
    ledger.set_price("hpc", Tariff(price_explicit=1.0, price_donated=1.0), 0.0)
    return Snapshot(
        site="hpc",
        sites={"hpc": site},
        queue=queue,
        terms={"hpc": SiteTerms(initial_tr=3600.0, growth_factor=2, longest=64_000.0)},
        demands=(demand,),
        groups=(TaskGroup(10_000, {"hpc": demand}),),
        ledger=ledger,
        memory=Memory(),
        work=True,
    )


def seconds(waiting: int, heuristic: str, queues: int) -> list[float]:
    """Seconds of each decision."""
    draw = random.Random(1)  # noqa: S311 (not for secrets)
    jobs = RunShares(salt=b"bench")
    jobs.recall(
        EndedJob(f"u{draw.randrange(USERS)}", 60.0 * draw.randint(5, 1440), 60.0 * draw.uniform(1, 300))
        for _ in range(2000)
    )
    found = []
    for _ in range(queues):
        queue = long_queue(waiting, draw)
        for runtime in (3600.0, 400.0):
            view = snapshot(queue, heuristic, runtime, jobs.copy())
            started = time.process_time()
            decide(view)
            found.append(time.process_time() - started)
    return found


def rows(queued: tuple[int, ...], heuristics: tuple[str, ...], queues: int) -> Iterator[Row]:
    for waiting in queued:
        for heuristic in heuristics:
            found = seconds(waiting, heuristic, queues)
            most = TARGETS.get(waiting)
            name = f"{heuristic}, {waiting:,} queued jobs"
            yield _row(f"{name}: median", statistics.median(found), most)
            yield _row(f"{name}: worst of {len(found)}", max(found), most)


def _row(what: str, took: float, most: float | None) -> Row:
    print(f"{what}: {in_words(took)}", flush=True)
    return Row(what, in_words(took), "" if most is None else f"≤ {in_words(most)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--queued", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--heuristics", nargs="+", default=[name for name in HEURISTICS if name != "static"])
    parser.add_argument("--queues", type=int, default=10)
    chosen = parser.parse_args()
    show("One decision of a site", rows(tuple(chosen.queued), tuple(chosen.heuristics), chosen.queues))


if __name__ == "__main__":
    main()
