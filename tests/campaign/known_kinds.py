"""What it is worth to adaptive to know roughly how long the tasks run, in the cells of De Rose's Table 3.

The first estimate is `initial_tr` of an hour (the paper's), of a minute, or a multiple of what 95 % of the
tasks take, times an error as real earlier bags have it (`tests.campaign.earlier_bags`): log-normal with a
factor of 2 as deviation, and in 6 % of the bags anything from a hundredth to a hundredfold.

    python -m tests.campaign.known_kinds --traces ../shared/traces --trace sdsc-sp2
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import statistics
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from adaptor.simulation.grid_run import run_grid_job
from adaptor_experiments.derose.campaign import Piece, jobs_of, pieces
from adaptor_experiments.derose.design import WORKLOADS, JobType, Settings
from adaptor_experiments.derose.sample import cluster_at, terms_of

MULTIPLES = (0.5, 0.7, 1.0, 1.5, 2.0)
_OTHERWISE = 0.06
"""How many bags are another thing altogether."""


def error(draw: random.Random) -> float:
    """The factor between what earlier bags say and what is."""
    if draw.random() < _OTHERWISE:
        return 10.0 ** draw.uniform(-2.0, 2.0)
    return math.exp(draw.gauss(0.0, math.log(2.0)))


Cell = tuple[JobType, int]


def turnarounds(kinds: Sequence[JobType], piece: Piece) -> dict[Cell, list[int]]:
    """By kind of bag and limit of requests: with an hour, a minute, and the multiples."""
    base = cluster_at(piece.workload, jobs_of(piece), piece.settings, piece.sample)
    draw = random.Random(piece.sample)
    found = {}
    for kind in kinds:
        runtimes = kind.runtimes(piece.settings.seed, piece.sample)
        high = float(np.quantile(runtimes, 0.95)) * error(draw)
        for pending in piece.settings.max_pending:
            terms = terms_of(piece.workload, piece.settings, pending, "adaptive")
            guesses = (3600.0, 60.0, *(max(1.0, multiple * high) for multiple in MULTIPLES))
            known = [msgspec.structs.replace(terms, initial_tr=guess) for guess in guesses]
            found[kind, pending] = [run_grid_job(base.fork(), runtimes, each).turnaround for each in known]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=Path, required=True, help="Folder")
    parser.add_argument("--trace", choices=[each.key for each in WORKLOADS], required=True)
    parser.add_argument("--samples", type=int, default=4, help="Submission times")
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--means", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    kinds = [
        each for each in Settings().job_types if each.tasks in chosen.tasks and each.mean in chosen.means
    ]
    wanted = pieces(
        [each for each in WORKLOADS if each.key == chosen.trace], chosen.traces, Settings(), chosen.samples
    )
    cells: dict[Cell, list[list[int]]] = defaultdict(list)
    with multiprocessing.Pool(chosen.processes) as pool:
        for sample in pool.map(partial(turnarounds, kinds), wanted, chunksize=1):
            for cell, row in sample.items():
                cells[cell].append(row)
    sums = [[sum(column) for column in zip(*rows, strict=True)] for rows in cells.values()]
    print(f"{len(sums)} cells, {chosen.samples} submission times: turnaround with an hour over that with")
    for place, name in enumerate(["1h", "1m", *(f"{each:g} x 95 %" for each in MULTIPLES)]):
        ratios = [row[0] / row[place] for row in sums]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        worse = sum(each < 0.97 for each in ratios)
        print(f"{name:12} {mean:.2f}  worst cell {min(ratios):.2f}, below 0.97: {worse}")


if __name__ == "__main__":
    main()
