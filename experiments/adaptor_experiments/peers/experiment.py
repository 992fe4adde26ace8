"""Bags, limits and the ways to run a bag that are compared; the rows of a piece, and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HEURISTICS, HeuristicName
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from adaptor.units import format_duration
from adaptor_experiments.bootstrap import Interval, drawn_means, weights
from adaptor_experiments.derose.design import Settings as Paper
from adaptor_experiments.derose.design import Workload, trace_files, traces_named
from adaptor_experiments.derose.sample import cluster_at, first_guess, followed, load
from adaptor_experiments.experiment import Experiment, Plan
from adaptor_experiments.figures.exhibits import Report
from adaptor_experiments.peers.by_hand import ARRAYS, ByHand, Policy, Site
from adaptor_experiments.peers.pools import POOLS, Pool
from adaptor_experiments.tables import Runs, texts
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.cluster import Policy as Scheduler
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.kernels import Array
from adaptor_simulation.queue_rules import FairShare, QueueRules
from adaptor_simulation.slowdown import UNHARMED, Slowdowns
from adaptor_simulation.what_if import LocalJobs

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


class Outcome(Slowdowns, frozen=True, kw_only=True):
    """One bag in one way: a line of the results. Times in seconds, held and work in processor-seconds."""

    trace: str
    scheduler: str
    sample: int
    tasks: int
    mean: int
    shape: str
    way: str
    submitted: int
    turnaround: int
    """-1: this way cannot run the bag."""
    work: int
    held: int
    jobs: int
    """Number of submitted jobs."""
    local_wait: int
    """Seconds by which the local jobs waited longer in all, until three days after the bag's end."""

    @property
    def added(self) -> float:
        """Seconds by which local jobs waited longer, for each processor-second of the tasks."""
        return self.local_wait / self.work


def run_piece(piece: Piece) -> list[Outcome]:
    """Raises TraceError: the trace cannot be read or leaves no job."""
    workload, settings = piece.workload, piece.settings
    base = cluster_at(
        *on_nodes(workload, piece.path, settings.node),
        piece.scheduler,
        settings.seed,
        piece.sample,
        settings.queue,
    )
    local, outcomes = LocalJobs(base), list[Outcome]()
    for bag in settings.bags:
        runtimes = bag.runtimes(settings.seed, piece.sample)
        for way in settings.ways:
            cluster = base.fork()
            found = _run(way, cluster, runtimes, settings.site)
            jobs = followed(local, cluster, base.now + found.turnaround) if found else None
            outcomes.append(
                Outcome(
                    trace=workload.key,
                    scheduler=piece.scheduler,
                    sample=piece.sample,
                    **msgspec.structs.asdict(bag),
                    way=way,
                    submitted=base.now,
                    turnaround=found.turnaround if found else -1,
                    work=int(runtimes.sum()),
                    held=found.held if found else 0,
                    jobs=found.jobs if found else 0,
                    local_wait=jobs.added_wait if jobs else 0,
                    **msgspec.structs.asdict(jobs.slowdowns if jobs else UNHARMED),
                )
            )
    return outcomes


def on_nodes(workload: Workload, trace: Path, node: int) -> tuple[Workload, Jobs]:
    """The machine and its jobs, which all have whole nodes."""
    whole = msgspec.structs.replace(workload, processors=workload.processors // node * node)
    return whole, load(trace, whole.processors).on_whole_nodes(node)


def _run(name: str, cluster: Cluster, runtimes: Array, site: Site) -> ByHand | None:
    """Figures of one run; None: this way cannot run the bag."""
    way = WAYS[name]
    if not isinstance(way, Ours):
        return way.run(cluster, runtimes, site)
    result = run_grid_job(cluster, runtimes, way.terms(cluster.processors, site))
    return ByHand(turnaround=result.turnaround, jobs=len(result.requests), held=result.held)


_OF_A_BAG = ("trace", "scheduler", "sample", "tasks", "mean", "shape")
_PARTS = ("scheduler", "tasks", "mean", "shape")


def report_of(rows: Runs[Outcome], settings: Settings, folder: Path) -> Report:  # noqa: ARG001
    page = texts("peers")
    samples = len(rows.by("sample"))
    parts = [(field, value) for field in _PARTS for value in rows.by(field)]
    names = [way.name for way in OURS if way.name in settings.ways]
    return page.report(
        [_said(name, rows) for name in names],
        [],
        [
            page.exhibit("ways", _ways(rows, parts), (*map(_shown, parts), *page.tables["rest"].headings)),
            page.exhibit("cells", _cells(rows, names), names),
        ],
        settings=settings,
        nodes=page.say("processors" if settings.node == 1 else "nodes", node=settings.node),
        start=page.say("costs" if settings.start else "free", start=settings.start),
        order=page.say(
            "by_share" if settings.fair_share else "by_submission",
            half_life=format_duration(settings.fair_share),
        ),
        depth=page.say(
            "bounded" if settings.backfill_per_user else "unbounded", per_user=settings.backfill_per_user
        ),
        samples=samples,
        traces=", ".join(rows.by("trace")),
    )


def ratios(rows: Runs[Outcome], name: str) -> dict[tuple[object, ...], list[float]]:
    """Turnarounds of a way over those of the reference, by trace, scheduler and sample; bags that one of the
    two cannot run are left out."""
    known = rows.by("way")
    reference = {_bag(row): row.turnaround for row in known[REFERENCE] if row.turnaround > 0}
    found: dict[tuple[object, ...], list[float]] = {}
    for row in known.get(name, ()):
        if row.turnaround > 0 and (other := reference.get(_bag(row))):
            found.setdefault(_bag(row)[:3], []).append(row.turnaround / other)
    return found


def _bag(row: Outcome) -> tuple[object, ...]:
    return tuple(getattr(row, field) for field in _OF_A_BAG)


def geometric(rows: Runs[Outcome], name: str) -> Interval | None:
    """The geometric mean of the ratios, with what chance leaves open; None: there are none."""
    logs = np.array([np.log(each).mean() for each in ratios(rows, name).values()])
    if not len(logs):
        return None
    found = drawn_means(logs, weights(len(logs), 1)).through(np.exp)
    return found.interval


def _ways(rows: Runs[Outcome], parts: list[tuple[str, object]]) -> Iterator[list[str]]:
    for name, runs in rows.by("way").items():
        ran = _ran(runs)
        if not ran:
            yield [name, *["-"] * (len(parts) + 2), f"{len(runs)} of {len(runs)}", *["-"] * 5]
            continue
        each = [_mean(rows.where(**{field: value}), name) for field, value in parts]
        worst = max(ratio for some in ratios(rows, name).values() for ratio in some)
        yield [
            name,
            str(geometric(rows, name)),
            *each,
            f"{worst:.2f}",
            f"{len(runs) - len(ran)} of {len(runs)}",
            _waste(ran),
            f"{ran.mean('jobs'):,.0f}",
            f"{ran.mean('added'):.2f}",
            f"{ran.geometric(lambda row: row.slower):.2f}",
            f"{ran.geometric(lambda row: row.slower_per_processor):.2f}",
        ]


def _cells(rows: Runs[Outcome], names: list[str]) -> Iterator[list[str]]:
    for (tasks, mean, shape), runs in rows.by("tasks", "mean", "shape").items():
        yield [f"{tasks:,}", f"{mean:,}", shape, *(_mean(runs, name) for name in names)]


def _mean(rows: Runs[Outcome], name: str) -> str:
    found = geometric(rows, name)
    return "-" if found is None else f"{found.value:.2f}"


def _shown(part: tuple[str, object]) -> str:
    field, value = part
    return f"{value:,} {'tasks' if field == 'tasks' else 's'}" if isinstance(value, int) else str(value)


def _said(name: str, rows: Runs[Outcome]) -> str:
    waste = _waste(_ran(rows.where(way=name)))
    return texts("peers").say("way", name=name, ratio=geometric(rows, name), waste=waste)


def _ran(runs: Runs[Outcome]) -> Runs[Outcome]:
    """Runs of bags that their way can run."""
    return Runs(row for row in runs if row.turnaround > 0)


def _waste(runs: Runs[Outcome]) -> str:
    """The part of what they held that ran no task."""
    return f"{1 - sum(row.work for row in runs) / sum(row.held for row in runs):.0%}"


def plan(
    names: Sequence[str],
    samples: int = 10,
    processors: int | None = None,
    traces: Path | None = None,
    ways: Sequence[str] = tuple(WAYS),
    **part: Any,
) -> Plan[Piece, Outcome, Settings]:
    """Of that number of submission times on each of the traces of these names (see `traces_named`)."""
    settings = Settings(ways=tuple(way for way in WAYS if way in (*ways, REFERENCE)), **part)
    return Plan(settings, pieces(*traces_named(names, processors, traces), settings, samples), report_of)


EXPERIMENT = Experiment(row=Outcome, run=run_piece, plan=plan)
