"""Design of the experiment: bags, limits, and the ways to run a bag that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HEURISTICS, HeuristicName
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor_experiments.derose.design import Settings as Paper
from adaptor_experiments.derose.design import Workload, trace_files
from adaptor_experiments.derose.sample import first_guess
from adaptor_experiments.peers.by_hand import ARRAYS, Policy, Site
from adaptor_experiments.peers.pools import POOLS, Pool
from adaptor_simulation.cluster import Policy as Scheduler
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.kernels import Array
from adaptor_simulation.queue_rules import FairShare, QueueRules

Shape = Literal["equal", "log-normal", "heavy"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
_SIGMA: dict[Shape, float] = {"equal": 0.0, "log-normal": 0.6, "heavy": 1.0}
_MOST = 5.0
"""Times the mean that a task takes at most: no bag is one task."""
_LOOK = 10
"""Seconds between two looks of the heuristic of many pilots: it looks at all of them each time."""


class Ours(msgspec.Struct, frozen=True):
    """The daemon with one of its heuristics."""

    heuristic: HeuristicName
    in_system: int

    @property
    def name(self) -> str:
        return f"{self.heuristic}-{self.in_system}"

    def terms(self, processors: int, site: Site) -> GridTerms:
        traits = HEURISTICS[self.heuristic]
        limits = Limits(
            max_pending_requests=self.in_system,
            max_pilots=self.in_system if traits.narrow else 0,
            max_proc=processors,
            max_tr=site.longest,
        )
        return GridTerms(
            rules=SiteRules(
                limits=limits,
                may_reshape=True,
                granularity=site.node,
                pad=site.start,
                backfilled=site.backfilled,
            ),
            heuristic=self.heuristic,
            workers=msgspec.structs.replace(INSTANT_WORKERS, boot=site.start),
            initial_tr=first_guess(Paper(), self.heuristic),
            poll_interval=_LOOK if traits.narrow else 0,
            replicas=1 if traits.narrow else 0,
        )


OURS = (
    *(Ours("elastic", most) for most in (1000, 100, 50, 20)),
    Ours("completion", 6),
    Ours("adaptive", 6),
    Ours("static", 6),
)
_EVERY: tuple[Ours | Policy | Pool, ...] = (*ARRAYS, *POOLS, *OURS)
WAYS = {way.name: way for way in _EVERY}
"""All that are compared, by their names."""
REFERENCE = "array-1.5"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All on which a result depends, except the trace and the number of the sample."""

    seed: int = 1
    tasks: tuple[int, ...] = (100, 1000)
    means: tuple[int, ...] = (1000, 10_000)
    shapes: tuple[Shape, ...] = SHAPES
    schedulers: tuple[Scheduler, ...] = ("conservative", "easy")
    ways: tuple[str, ...] = tuple(WAYS)
    max_tr: int = 64_800
    node: int = 1
    """Processors of a node, of which every job, local ones too, has whole ones."""
    start: int = 0
    """Seconds from the start of a job of ours until its first task begins."""
    fair_share: float = 0
    """Seconds in which the usage of a user halves; 0: jobs are served by submission."""
    backfill_per_user: int = 0
    """Waiting jobs of a user that backfilling looks at; 0: all."""

    @property
    def queue(self) -> QueueRules:
        share = FairShare(half_life=max(1, round(self.fair_share))) if self.fair_share else None
        return QueueRules(fair_share=share, per_user=self.backfill_per_user)

    @property
    def site(self) -> Site:
        return Site(
            longest=self.max_tr,
            node=self.node,
            start=self.start,
            backfilled=self.backfill_per_user or None,
        )

    @property
    def bags(self) -> list[Bag]:
        return [
            Bag(tasks, mean, shape) for tasks in self.tasks for mean in self.means for shape in self.shapes
        ]


class Bag(msgspec.Struct, frozen=True):
    """A kind of bag."""

    tasks: int
    mean: int
    """Seconds."""
    shape: Shape

    def runtimes(self, seed: int, sample: int) -> Array:
        """In whole seconds; the same for every trace and every way."""
        sigma = _SIGMA[self.shape]
        draw = np.random.default_rng([seed, sample, self.tasks, self.mean, SHAPES.index(self.shape)])
        times = np.minimum(_MOST, draw.lognormal(-(sigma**2) / 2, sigma, self.tasks))
        found: Array = np.maximum(1, np.rint(self.mean * times)).astype(np.int64)
        return found


class Piece(msgspec.Struct, frozen=True):
    """One submission time on one trace under one scheduler."""

    workload: Workload
    path: Path
    scheduler: Scheduler
    sample: int
    settings: Settings

    @property
    def name(self) -> str:
        return f"{self.workload.in_files}-{self.scheduler}-{self.sample:04}"


def pieces(workloads: Sequence[Workload], traces: Path, settings: Settings, samples: int) -> list[Piece]:
    """All samples, those of all traces and schedulers in turn.

    Raises:
        ReplayError: a trace is not there.
    """
    paths = trace_files(workloads, traces)
    return [
        Piece(workload, path, scheduler, sample, settings)
        for sample in range(samples)
        for workload, path in paths.items()
        for scheduler in settings.schedulers
    ]
