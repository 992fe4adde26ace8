"""Gain of a planner that knows the future: the time that is left to gain for a heuristic.

At each of completion's decisions in a replay, every other one is tried, with all that follows by completion:
nothing, each free slot as a request, each queued request withdrawn, the proposals of the paper's heuristics.
The best by what really happened is kept. So this planner knows the run times of the tasks and of all local
jobs, and which ones are still to come; nobody does. It improves each decision once, so it is no bound on what
is possible.

    python -m lab.campaign.foresight --traces ../shared/traces --trace sdsc-sp2

prints for each kind of bag the ratio of adaptive's turnaround to completion's, and to that with foresight.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.multisite.division import SitePart
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import PlannedAction, SiteState, SubmitRequest, Withdraw, Withhold
from adaptor.model import CraftedRequest, PilotState, QueueState, Request
from adaptor_experiments.derose.design import WORKLOADS, Heterogeneity, JobType, Settings
from adaptor_experiments.derose.sample import Piece, cluster_at, jobs_of, pieces, terms_of
from adaptor_experiments.resumable import in_processes
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.kernels import Array

_APART, _SHARE = 1200.0, 6
"""Decisions that do nothing are questioned after so many seconds, or this share of the bag's age."""
_SHORTEST = 60.0
"""Seconds, of the requests that are tried."""


class Step(msgspec.Struct, frozen=True):
    view: SiteState
    decisions: list[PlannedAction]


class Replay(msgspec.Struct, frozen=True):
    turnaround: float
    """Seconds; infinite: the bag is never done."""
    steps: list[Step]


def with_foresight(base: Cluster, runtimes: Array, terms: GridTerms) -> tuple[int, int]:
    """Turnarounds by the heuristic of the terms, seconds: without foresight, and with it."""
    best = plain = _replay(base, runtimes, terms, [])
    questioned = -math.inf
    for place in itertools.count():
        if place >= len(best.steps):  # their number changes
            break
        step, begun = best.steps[place], best.steps[0].view.now
        now = step.view.now
        acts = any(not isinstance(each, Withhold) for each in step.decisions)
        if not acts and now - questioned < max(_APART, (now - begun) / _SHARE):
            continue
        questioned = now
        before = [each.decisions for each in best.steps[:place]]
        tried = [
            _replay(base, runtimes, terms, [*before, other])
            for other in alternatives(step.view, step.decisions)
        ]
        best = min([best, *tried], key=lambda each: each.turnaround)
    return int(plain.turnaround), int(best.turnaround)


def _replay(
    base: Cluster, runtimes: Array, terms: GridTerms, script: Sequence[list[PlannedAction]]
) -> Replay:
    """By these decisions first, then by the heuristic."""
    steps: list[Step] = []

    def planner(view: SiteState, _part: SitePart | None = None) -> list[PlannedAction]:
        decisions = script[len(steps)] if len(steps) < len(script) else plan(view)
        steps.append(Step(view, decisions))
        return decisions

    try:
        with patch("adaptor.decisions.decide.plan", planner):
            return Replay(run_grid_job(base.fork(), runtimes, terms).turnaround, steps)
    except ReplayError:  # no request is made, and none is there
        return Replay(math.inf, steps)


def alternatives(view: SiteState, decisions: Sequence[PlannedAction]) -> Iterator[list[PlannedAction]]:
    """Decisions that could be made instead of these."""
    seen = {_told(decisions)}
    for each in _all(view, [each for each in decisions if isinstance(each, SubmitRequest)]):
        if _told(each) not in seen:
            seen.add(_told(each))
            yield each


def _all(view: SiteState, issues: list[SubmitRequest]) -> Iterator[list[PlannedAction]]:
    if not view.demands or view.queue is None:  # no task waits: the queue is not read
        return
    yield [Withhold("")]
    for name in ("adaptive", "static"):
        yield plan(msgspec.structs.replace(view, heuristic=name))
    for issue in issues:
        yield [each for each in issues if each is not issue]
    if view.requests_left > 0:
        yield from ([SubmitRequest(each, view.demands[0])] for each in _requests(view, view.queue))
    queued: list[PlannedAction] = [
        Withdraw(pilot.id, "", recraft=True) for pilot in view.requests if pilot.state is PilotState.QUEUED
    ]
    yield from ([each] for each in queued)
    yield queued


def _requests(view: SiteState, queue: QueueState) -> Iterator[CraftedRequest]:
    """The widest and longest of each free slot."""
    limits = view.rules.limits
    widest = min(limits.max_proc, view.demands[0].waiting + view.demands[0].running)
    for slot in Availability(queue).profile().free_slots():
        if slot.duration >= _SHORTEST:
            request = Request(min(slot.processors, widest), int(min(slot.duration, limits.max_tr)))
            yield CraftedRequest(request, slot.start, 1, "")


def _told(decisions: Sequence[PlannedAction]) -> tuple[object, ...]:
    return tuple(
        each.crafted.request if isinstance(each, SubmitRequest) else each.pilot
        for each in decisions
        if not isinstance(each, Withhold)
    )


class Cell(msgspec.Struct, frozen=True):
    """A kind of bag."""

    kind: JobType
    pending: int

    @property
    def name(self) -> str:
        kind = self.kind
        return f"{kind.tasks:,} × {kind.mean:,} s, {kind.heterogeneity}x, limit {self.pending}"


def turnarounds(cells: Sequence[Cell], piece: Piece) -> list[tuple[int, int, int]]:
    """By cell: of adaptive, of completion, and of completion with foresight."""
    base = cluster_at(piece.workload, jobs_of(piece), piece.settings, piece.sample)
    found = []
    for cell in cells:
        runtimes = cell.kind.runtimes(piece.settings.seed, piece.sample)
        by_adaptive = terms_of(piece.workload, piece.settings, cell.pending, "adaptive")
        by_completion = terms_of(piece.workload, piece.settings, cell.pending, "completion")
        adaptive = run_grid_job(base.fork(), runtimes, by_adaptive).turnaround
        found.append((adaptive, *with_foresight(base, runtimes, by_completion)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--traces", type=Path, required=True, help="Folder")
    parser.add_argument("--trace", choices=[each.key for each in WORKLOADS], required=True)
    parser.add_argument("--samples", type=int, default=24, help="Submission times, of seed 1")
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--means", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--heterogeneity", type=int, nargs="+", default=[1], choices=[1, 4])
    parser.add_argument("--max-pending", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    spreads: list[Heterogeneity] = chosen.heterogeneity
    cells = [
        Cell(JobType(tasks, mean, spread), pending)
        for tasks, mean, spread, pending in itertools.product(
            chosen.tasks, chosen.means, spreads, chosen.max_pending
        )
    ]
    workloads = [each for each in WORKLOADS if each.key == chosen.trace]
    wanted = pieces(workloads, chosen.traces, Settings(), chosen.samples)
    samples = list(in_processes(partial(turnarounds, cells), wanted, chosen.processes))
    print(f"adaptive's turnaround over completion's, and with foresight; {chosen.samples} submission times")
    ratios = []
    for place, cell in enumerate(cells):
        adaptive, completion, foreseen = (
            sum(column) for column in zip(*(each[place] for each in samples), strict=True)
        )
        ratios.append((adaptive / completion, adaptive / foreseen))
        print(f"{cell.name}: {adaptive / completion:.2f}, {adaptive / foreseen:.2f}")
    told = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)]
    print("geometric mean: {:.2f}, {:.2f}".format(*told))


if __name__ == "__main__":
    main()
