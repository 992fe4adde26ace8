"""Which parts of the experiments are recorded: each in minutes of processor time, on two processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from adaptor.resources import TaskSize
from adaptor.simulation.distributions import draw_runtimes
from adaptor.simulation.traces.repairs import Choices
from adaptor.simulation.what_if import find_holes
from adaptor_experiments.commands.bag_terms import NodesOptions, load_cluster, terms_of_bag
from adaptor_experiments.derose.design import PARTS, WORKLOADS, Workload
from adaptor_experiments.golden.scenes import SCENES, run_scene
from adaptor_experiments.resumable import in_processes

Rows: TypeAlias = "Iterable[msgspec.Struct]"
SMALL = Path("fixtures/traces/small.swf")
SDSC_SP2 = WORKLOADS[0]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    run: Callable[[Path, int], Rows]
    """The full results, with the traces of a folder, in this number of processes."""
    groups: tuple[str, ...]
    """Columns whose values name a group of rows."""
    figures: tuple[str, ...]
    """Columns of which the record has means by group."""
    fast: bool = False
    """Whether a test runs it: seconds, and no trace from elsewhere."""


def _flat(run: Callable[[Any], Rows], pieces: Sequence[Any], processes: int) -> list[msgspec.Struct]:
    return [row for rows in in_processes(run, pieces, processes) for row in rows]


def _derose(workloads: Sequence[Workload], traces: Path, samples: int, processes: int, **part: Any) -> Rows:
    from adaptor_experiments.derose.design import Settings
    from adaptor_experiments.derose.sample import pieces, run_piece

    settings = Settings(**{**PARTS["goals"], **part})
    return _flat(run_piece, pieces(workloads, traces, settings, samples), processes)


def _small(_: Path, processes: int) -> Rows:
    from adaptor_experiments.derose.own_trace import own_workload

    every: Any = ("static", "adaptive", "completion")
    part = {"tasks": (100,), "means": (100, 1000), "max_pending": (1, 3), "heuristics": every}
    return _derose([own_workload(SMALL)], Path(), 3, processes, **part)


def _completion(traces: Path, processes: int) -> Rows:
    part = {"tasks": (100, 1000), "means": (1000,), "max_pending": (1, 3), "heuristics": ("completion",)}
    return _derose([SDSC_SP2], traces, 2, processes, **part)


def _transparent(traces: Path, processes: int) -> Rows:
    from adaptor_experiments.transparent.design import Settings, pieces
    from adaptor_experiments.transparent.sample import run_piece

    settings = Settings(tasks=(100, 1000), loads=(1.3, 1.0))
    return _flat(run_piece, pieces(traces, settings, 1), processes)


def _bats(_: Path, processes: int) -> Rows:
    from adaptor_experiments.bats.campaign import run_all
    from adaptor_experiments.bats.design import Settings

    return run_all(Settings(bags=2, runs=2), processes, _unseen)


def _a2ha(_: Path, processes: int) -> Rows:
    from adaptor_experiments.a2ha.campaign import run_all
    from adaptor_experiments.a2ha.design import Settings, schemes

    return run_all(schemes(), Settings(orders=20), processes, _unseen)


def _cost_aware(_: Path, processes: int) -> Rows:
    from adaptor_experiments.ricciardi.campaign import Settings, run_all

    return run_all(Settings(runs=7, tasks=400), processes, _unseen)


def _endings(traces: Path, processes: int) -> Rows:
    from adaptor_experiments.forecasts.campaign import on_queues

    return on_queues([traces / f"{SDSC_SP2.file}.swf.gz"], 30, 1, processes, _unseen)


def _budget_check(_: Path, processes: int) -> Rows:
    from adaptor_experiments.forecasts.campaign import paid_for
    from adaptor_experiments.forecasts.paid_bags import Settings

    return paid_for(Settings(orders=8), processes, _unseen)


def _holes(traces: Path, _: int) -> Rows:
    nodes = NodesOptions(nodes="32x4", memory=None, chunk=1, profiles=())
    trace = traces / f"{SDSC_SP2.file}.swf.gz"
    loaded = load_cluster(trace, "conservative", None, nodes, Choices(), lenient=False)
    limits: dict[str, Any] = {"max_pending": 3, "max_proc": None, "max_tr": None}
    (terms,) = terms_of_bag(loaded, TaskSize(processors=3), heuristic="adaptive", **limits)
    jobs = loaded.cluster.jobs.submit
    instants = [int(jobs[len(jobs) * part // 5]) for part in (1, 2, 3, 4)]
    every = [msgspec.structs.replace(terms, sees_nodes=sees) for sees in (False, True)]
    return find_holes(loaded.cluster, instants, draw_runtimes("uniform(5m, 15m)", 300, 1), every)


def _scenes(_: Path, __: int) -> Rows:
    return [row for name in SCENES for row in run_scene(name)]


def _unseen(_: int) -> None:
    """Ignores progress."""


_BAG = ("turnaround", "requests", "withdrawn", "reshaped", "held", "local_wait")
_DONATED = ("turnaround", "held", "used", "donated", "lost", "reclaims", "later")
_BOUGHT = ("hosts", "units", "wall", "cut", "wasted", "continued")
_TAIL = ("seconds", "spent", "replicas", "won", "migrations")
_FORECAST = ("cost", "cost_low", "cost_value", "cost_high", "end", "end_low", "end_value", "end_high")
CASES = {
    "small": Case(run=_small, groups=("heuristic", "mean", "max_pending"), figures=_BAG, fast=True),
    "scenes": Case(run=_scenes, groups=("scene", "what"), figures=("at", "p", "tr", "credits"), fast=True),
    "derose": Case(
        run=lambda traces, processes: _derose(WORKLOADS[:3], traces, 20, processes),
        groups=("trace", "heuristic", "mean", "max_pending"),
        figures=_BAG,
    ),
    "completion": Case(run=_completion, groups=("tasks", "max_pending"), figures=_BAG),
    "transparent": Case(run=_transparent, groups=("load", "tasks", "strategy"), figures=_DONATED),
    "bats": Case(run=_bats, groups=("kind", "budget", "way", "replanning"), figures=_TAIL),
    "a2ha": Case(run=_a2ha, groups=("experiment", "bag", "preset", "bought"), figures=_BOUGHT),
    "cost-aware": Case(
        run=_cost_aware, groups=("table", "goal", "flavour", "variation"), figures=("time", "cost", "steps")
    ),
    "endings": Case(
        run=_endings,
        groups=("bag", "moment"),
        figures=("at", "end_low", "end_value", "end_high", "end", "pace", "planned"),
    ),
    "budget-check": Case(run=_budget_check, groups=("bag", "moment"), figures=_FORECAST),
    "holes": Case(
        run=_holes, groups=("sees_nodes",), figures=("requests", "promised", "started", "mean_turnaround")
    ),
}
