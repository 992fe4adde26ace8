"""Comparison of two heuristics with wrong assumptions, in replays of a trace.

Each case is a mistake: limits that users change, a scheduler by EASY instead of conservative backfilling, a
second adaptor's requests in the same queue, tasks of which one in ten takes much longer. In every case both
heuristics run the same bags from the same submission times.

    python -m lab.campaign.mistakes --trace ../shared/traces/SDSC-SP2-1998-4.2-cln.swf.gz --processors 128

prints by case the ratio of the turnarounds (geometric mean, 95 % interval of a bootstrap over submission
times), and the worst kind of bag.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.crafting.heuristics import HeuristicName
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor_experiments.derose.design import JobType
from adaptor_experiments.derose.sample import load
from adaptor_simulation.cluster import Policy, cluster_of_processors
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import Array
from lab.campaign.heuristics_live import interval

Mask = npt.NDArray[np.bool_]
SEED = 1
MAX_TR = 64_800
KINDS = tuple(JobType(tasks, mean, 2) for tasks in (100, 1000, 10_000) for mean in (100, 1000, 10_000))


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake in the assumptions."""

    name: str
    jobs: Callable[[Jobs, Mask, random.Random], Jobs] = lambda jobs, _coming, _draw: jobs
    """The local jobs with the mistake; those marked come after the bag."""
    runtimes: Callable[[Array, random.Random], Array] = lambda runtimes, _: runtimes
    policy: Policy = "conservative"
    second: bool = False
    """Whether another adaptor has a bag in the same queue."""


def _limits_change(jobs: Jobs, coming: Mask, draw: random.Random) -> Jobs:
    """From the bag on, users ask for half to four times as long, never for less than their jobs run."""
    factors = np.array([draw.choice((0.5, 1.0, 2.0, 4.0)) for _ in range(len(jobs))])
    changed = np.maximum(jobs.run, np.rint(jobs.estimate * factors).astype(np.int64))
    return msgspec.structs.replace(jobs, estimate=np.where(coming, changed, jobs.estimate))


def _one_in_ten_asks_for_ten_times_as_long(jobs: Jobs, _coming: Mask, draw: random.Random) -> Jobs:
    wrong = np.array([draw.random() < 0.1 for _ in range(len(jobs))])
    return msgspec.structs.replace(jobs, estimate=np.where(wrong, 10 * jobs.estimate, jobs.estimate))


def _stragglers(runtimes: Array, draw: random.Random) -> Array:
    slow = np.array([draw.random() < 0.1 for _ in range(len(runtimes))])
    return np.where(slow, np.minimum(4 * runtimes, MAX_TR), runtimes)


CASES = (
    Case(name="nothing wrong"),
    Case(name="limits change when the bag comes", jobs=_limits_change),
    Case(name="one local job in ten asks for ten times as long", jobs=_one_in_ten_asks_for_ten_times_as_long),
    Case(name="EASY backfilling", policy="easy"),
    Case(name="a second adaptor in the queue", second=True),
    Case(name="one task in ten takes four times as long", runtimes=_stragglers),
)


class Run(msgspec.Struct, frozen=True):
    kind: JobType
    sample: int
    ratio: float


def runs(
    case: Case, whole: Jobs, processors: int, pending: Sequence[int], samples: int, pair: tuple[str, str]
) -> Iterator[Run]:
    for sample in range(samples):
        draw = random.Random(f"{SEED} {sample}")
        at = draw.randint(int(whole.submit[0]), int(whole.submit[-1]))
        coming = whole.submit >= at
        jobs = case.jobs(whole, coming, draw)
        if case.second:
            jobs = _with_second(jobs, processors, at, pair[1])
        base = cluster_of_processors(jobs, processors, case.policy)
        base.advance(at)
        for kind in KINDS:
            runtimes = case.runtimes(kind.runtimes(SEED, sample), draw)
            for most in pending:
                took = [
                    run_grid_job(base.fork(), runtimes, _terms(name, processors, most)).turnaround
                    for name in pair
                ]
                yield Run(kind, sample, took[0] / took[1])


def _terms(name: str, processors: int, pending: int) -> GridTerms:
    limits = Limits(max_pending_requests=pending, max_proc=processors, max_tr=MAX_TR)
    return GridTerms(
        rules=SiteRules(limits=limits, max_submissions=60),
        heuristic=cast(HeuristicName, name),
        workers=INSTANT_WORKERS,
    )


def _with_second(jobs: Jobs, processors: int, at: int, name: str) -> Jobs:
    """With the requests that another bag, of an hour ago, has made alone; they cannot react to ours."""
    base = cluster_of_processors(jobs, processors, "conservative")
    base.advance(max(int(jobs.submit[0]), at - 3600))
    kind = JobType(1000, 1000, 2)
    found = run_grid_job(base, kind.runtimes(SEED + 1, 0), _terms(name, processors, 3))
    held = [each for each in found.requests if each.started is not None and each.ended is not None]
    rows = [
        (each.submitted, max(1, (each.ended or 0) - (each.started or 0)), each.tr, each.p) for each in held
    ]
    more = np.array(rows, np.int64).reshape(len(rows), 4)
    order = np.argsort(np.concatenate([jobs.submit, more[:, 0]]), kind="stable")
    columns = {"submit": 0, "run": 1, "estimate": 2, "processors": 3}
    return Jobs(
        number=np.concatenate([jobs.number, np.zeros(len(rows), np.int64)])[order],
        **{
            column: np.concatenate([getattr(jobs, column), more[:, place]])[order]
            for column, place in columns.items()
        },
    )


def told(case: Case, found: Sequence[Run]) -> str:
    by_sample: dict[int, list[float]] = defaultdict(list)
    by_kind: dict[JobType, list[float]] = defaultdict(list)
    for each in found:
        by_sample[each.sample].append(math.log(each.ratio))
        by_kind[each.kind].append(math.log(each.ratio))
    mean, low, high = interval([math.exp(statistics.fmean(logs)) for logs in by_sample.values()])
    cells = {kind: math.exp(statistics.fmean(logs)) for kind, logs in by_kind.items()}
    worst = min(cells, key=cells.__getitem__)
    return (
        f"{case.name}: {mean:.2f} [{low:.2f}, {high:.2f}]; "
        f"worst kind {cells[worst]:.2f} ({worst.tasks:,} tasks of {worst.mean:,} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trace", type=Path, required=True, help="SWF, also compressed")
    parser.add_argument("--processors", type=int, required=True)
    parser.add_argument("--samples", type=int, default=20, help="Submission times")
    parser.add_argument("--max-pending", type=int, nargs="+", default=[1, 3, 6])
    parser.add_argument("--heuristics", nargs=2, default=["adaptive", "completion"], metavar=("BASE", "NEW"))
    parser.add_argument("--case", action="append", help="Only cases whose names contain this")
    chosen = parser.parse_args()
    whole = load(chosen.trace, chosen.processors)
    base, new = chosen.heuristics
    print(f"turnaround of {base} / turnaround of {new}, {chosen.samples} submission times", flush=True)
    for case in CASES:
        if chosen.case and not any(part in case.name for part in chosen.case):
            continue
        found = list(runs(case, whole, chosen.processors, chosen.max_pending, chosen.samples, (base, new)))
        print(told(case, found), flush=True)


if __name__ == "__main__":
    main()
