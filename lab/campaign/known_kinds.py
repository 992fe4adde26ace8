"""Worth of a rough knowledge of the tasks' runtimes, in the cells of De Rose's Table 3.

`--heuristic adaptive`: the first estimate is `initial_tr` of an hour (the paper's), of a minute, or a
multiple of what 95 % of the tasks take, times an error as real earlier bags have it
(`lab.campaign.earlier_bags`): log-normal with a factor of 2 as deviation, and in 6 % of the bags anything
from a hundredth to a hundredfold.

`--heuristic completion`: nothing is known, or an earlier bag of the kind whose mean is that of this one, or
that of this one times a log-normal error with a factor of 2 as deviation; beside the paper's two.

    python -m lab.campaign.known_kinds --traces ../shared/traces --trace sdsc-sp2
    python -m lab.campaign.known_kinds --traces ../shared/traces --heuristic completion --limits 1
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HeuristicName
from adaptor.runtimes.known import EarlierTasks
from adaptor_experiments.derose.design import WORKLOADS, JobType, Settings
from adaptor_experiments.derose.sample import Piece, cluster_at, jobs_of, pieces, terms_of
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.kernels import Array

MULTIPLES = (0.5, 0.7, 1.0, 1.5, 2.0)
_OTHERWISE = 0.06
"""Share of bags that are another thing altogether."""


def error(draw: random.Random) -> float:
    """The factor between what earlier bags say and what is."""
    if draw.random() < _OTHERWISE:
        return 10.0 ** draw.uniform(-2.0, 2.0)
    return math.exp(draw.gauss(0.0, math.log(2.0)))


Cell = tuple[JobType, int]
ADAPTIVE = ("1h", "1m", *(f"{multiple:g} x 95 %" for multiple in MULTIPLES))
COMPLETION = ("nothing", "the mean", "within a factor of 2", "adaptive", "static")


def earlier(runtimes: Array, factor: float) -> EarlierTasks:
    """An earlier bag whose tasks took so many times what these take."""
    low, high = (float(each) * factor for each in np.quantile(runtimes, (0.05, 0.95)))
    mean = float(runtimes.mean()) * factor
    return EarlierTasks(kind="fit.py", tasks=len(runtimes), mean=mean, factor=2.0, low=low, high=high)


def known_terms(
    heuristic: str, runtimes: Array, factor: float, terms: Callable[[HeuristicName], GridTerms]
) -> list[GridTerms]:
    """Terms of the names above; `factor`: the error of the knowledge, `terms`: of a heuristic that knows
    nothing."""
    if heuristic == "adaptive":
        high = float(np.quantile(runtimes, 0.95)) * factor
        guesses = (3600.0, 60.0, *(max(1.0, multiple * high) for multiple in MULTIPLES))
        return [msgspec.structs.replace(terms("adaptive"), initial_tr=guess) for guess in guesses]
    bags = (None, earlier(runtimes, 1.0), earlier(runtimes, factor))
    known = [msgspec.structs.replace(terms("completion"), earlier=bag) for bag in bags]
    return [*known, terms("adaptive"), terms("static")]


def turnarounds(heuristic: str, kinds: Sequence[JobType], piece: Piece) -> dict[Cell, list[int]]:
    """By kind of bag and limit of requests: those of the names above."""
    base = cluster_at(piece.workload, jobs_of(piece), piece.settings, piece.sample)
    draw = random.Random(piece.sample)
    found = {}
    for kind in kinds:
        runtimes = kind.runtimes(piece.settings.seed, piece.sample)
        factor = error(draw) if heuristic == "adaptive" else math.exp(draw.gauss(0.0, math.log(2.0)))
        for pending in piece.settings.max_pending:
            known = known_terms(
                heuristic, runtimes, factor, partial(terms_of, piece.workload, piece.settings, pending)
            )
            found[kind, pending] = [run_grid_job(base.fork(), runtimes, each).turnaround for each in known]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=Path, required=True, help="Folder")
    parser.add_argument("--trace", choices=[each.key for each in WORKLOADS], help="All, if none is named")
    parser.add_argument("--samples", type=int, default=4, help="Submission times")
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--means", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--heuristic", choices=["adaptive", "completion"], default="adaptive")
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6], help="Of requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    kinds = [
        each for each in Settings().job_types if each.tasks in chosen.tasks and each.mean in chosen.means
    ]
    settings = Settings(seed=chosen.seed, max_pending=tuple(chosen.limits))
    workloads = [each for each in WORKLOADS if chosen.trace in (None, each.key)]
    wanted = pieces(workloads, chosen.traces, settings, chosen.samples)
    cells: dict[tuple[str, Cell], list[list[int]]] = defaultdict(list)
    with multiprocessing.Pool(chosen.processes) as pool:
        found = pool.map(partial(turnarounds, chosen.heuristic, kinds), wanted, chunksize=1)
    for piece, sample in zip(wanted, found, strict=True):
        for cell, row in sample.items():
            cells[piece.workload.key, cell].append(row)
    if chosen.heuristic == "adaptive":
        names, pairs = ADAPTIVE, [(0, place) for place in range(1, len(ADAPTIVE))]
    else:
        names, pairs = (
            COMPLETION,
            [(other, known) for other in (0, 3, 4) for known in range(3) if known != other],
        )
    sums = [[sum(column) for column in zip(*rows, strict=True)] for rows in cells.values()]
    print(
        f"{len(sums)} cells, {chosen.samples} submission times: turnaround with the first / with the second"
    )
    for first, second in pairs:
        ratios = [row[first] / row[second] for row in sums]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        worst, worse = min(ratios), sum(each < 0.97 for each in ratios)
        print(
            f"{names[first]:8} / {names[second]:20} {mean:.2f}  worst cell {worst:.2f}, below 0.97: {worse}"
        )


if __name__ == "__main__":
    main()
