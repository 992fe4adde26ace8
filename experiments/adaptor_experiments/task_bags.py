"""The next bags of real workflows on the queue of a trace: job arrays, and the heuristics.

Each heuristic runs a bag twice: knowing nothing of its tasks, and knowing the earlier bag of the kind. Next
to them stand a job array with the walltime that the user asked for each task, where that is known, and the
array that knows the longest task to a factor of 1.5 (`peers`), in whose turnaround all others are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from statistics import fmean, geometric_mean

import msgspec
import numpy as np

from adaptor_experiments.derose.sample import Piece as Moment
from adaptor_experiments.derose.sample import cluster_at, jobs_of
from adaptor_experiments.next_bags import NextBag
from adaptor_experiments.peers.by_hand import ARRAYS, ByHand, Site, UserJob, run_by_hand
from adaptor_experiments.peers.experiment import OURS, REFERENCE
from adaptor_experiments.peers.experiment import Settings as Peers
from adaptor_experiments.resumable import in_processes
from adaptor_experiments.task_records import TaskRecord
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.kernels import Array

ASKED = "array as asked"
KNOWN = next(array for array in ARRAYS if array.name == REFERENCE)
HEURISTICS = tuple(each for each in OURS if each.name in ("elastic-100", "completion-6", "adaptive-6"))


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one bag."""

    workflow: str
    way: str
    relative: float
    """Turnaround over that of the array that knows the longest task."""
    unused: float
    """Share of the processor time held in which no task ran that finished there."""
    jobs: int


class Bag(msgspec.Struct, frozen=True):
    """A next bag of a workflow."""

    workflow: str
    next: NextBag
    most: int = 1000
    """Number of its first tasks that are played, at most."""

    @property
    def tasks(self) -> Sequence[TaskRecord]:
        return self.next.tasks[: self.most]

    @property
    def runtimes(self) -> Array:
        """Whole seconds."""
        seconds = np.ceil([task.ran for task in self.tasks])
        return np.maximum(1, seconds).astype(np.int64)

    def as_asked(self, longest: int) -> list[UserJob] | None:
        """Jobs of one task each, that may last for `longest` seconds; None: what was asked for one is not
        known."""
        limits = [task.limit for task in self.tasks if task.limit is not None]
        if len(limits) < len(self.tasks):
            return None
        return [
            UserJob(1, 1, min(longest, max(int(ran), round(limit))), (int(ran),))
            for ran, limit in zip(self.runtimes, limits, strict=True)
        ]


class Piece(msgspec.Struct, frozen=True):
    """A bag that comes at a moment of a queue."""

    moment: Moment
    bag: Bag


def play(piece: Piece) -> list[Played]:
    """The bag in every way; nothing if one of its tasks takes longer than a request may.

    Raises TraceError: the trace is at fault.
    """
    base, site = _queue(piece.moment).fork(), Peers().site
    bag, runtimes = piece.bag, piece.bag.runtimes
    if (reference := KNOWN.run(base.fork(), runtimes, site)) is None:
        return []
    found = {REFERENCE: reference}
    if (jobs := bag.as_asked(site.longest)) is not None:
        found[ASKED] = run_by_hand(base.fork(), jobs, KNOWN.in_system)
    found.update(_by_heuristics(base, bag, site))
    return [
        Played(
            workflow=bag.workflow,
            way=way,
            relative=each.turnaround / reference.turnaround,
            unused=1 - int(runtimes.sum()) / each.held,
            jobs=each.jobs,
        )
        for way, each in found.items()
    ]


@cache
def _queue(moment: Moment) -> Cluster:
    """The cluster at a moment. Raises TraceError: the trace is at fault."""
    settings = moment.settings
    return cluster_at(moment.workload, jobs_of(moment), settings.scheduler, settings.seed, moment.sample)


def _by_heuristics(base: Cluster, bag: Bag, site: Site) -> Iterator[tuple[str, ByHand]]:
    for ours in HEURISTICS:
        terms = ours.terms(base.processors, site)
        for title, earlier in (("knows nothing", None), ("knows the earlier bag", bag.next.earlier)):
            knows = msgspec.structs.replace(terms, earlier=earlier)
            result = run_grid_job(base.fork(), bag.runtimes, knows)
            figures = ByHand(turnaround=result.turnaround, jobs=len(result.requests), held=result.held)
            yield f"{ours.name}, {title}", figures


def play_all(pieces: Sequence[Piece], processes: int, done: Callable[[int], None]) -> list[Played]:
    """Every piece; `done` counts them. Raises TraceError: a trace is at fault."""
    rows = []
    for found in in_processes(play, pieces, processes):
        rows += found
        done(1)
    return rows


HEADINGS = ("workflow", "way", "runs", "turnaround ÷ array-1.5", "worst", "held, not used", "jobs of a bag")


def table(rows: Sequence[Played]) -> Iterator[tuple[str, ...]]:
    """By workflow and way, and of all bags."""
    names = list(dict.fromkeys(row.workflow for row in rows))
    for workflow in (*names, *(["all"] if len(names) > 1 else [])):
        its = [row for row in rows if workflow in ("all", row.workflow)]
        for way in dict.fromkeys(row.way for row in its):
            of_way = [row for row in its if row.way == way]
            yield (
                *(workflow, way, f"{len(of_way):,}"),
                f"{geometric_mean(row.relative for row in of_way):.2f}",
                f"{max(row.relative for row in of_way):.2f}",
                f"{fmean(row.unused for row in of_way):.0%}",
                f"{fmean(row.jobs for row in of_way):,.0f}",
            )
