"""Whole bags through the daemon's own step, in 5 to 10 s of one core a measure. No constant was chosen with
this seed in sight."""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path

import msgspec

from adaptor.crafting.heuristics import HEURISTICS, HeuristicName
from adaptor.model import Preference
from adaptor_experiments.derose import design as derose
from adaptor_experiments.derose import sample
from adaptor_experiments.forecasts import paid_bags, queue_bags
from adaptor_experiments.forecasts.row import Row as Foreseen
from adaptor_experiments.forecasts.row import What
from adaptor_experiments.forecasts.site_run import submitted
from adaptor_experiments.forecasts.trace_queues import TraceFile
from adaptor_experiments.frontier import design as frontier
from adaptor_experiments.frontier.experiment import earlier_of, tasks_of
from adaptor_experiments.peers import experiment as peers
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.grid_run import run_grid_job
from adaptor_simulation.kernels import Array
from lab.campaign.free_budgets import Scene
from lab.campaign.heuristics_live import scene_of
from lab.campaign.several_sites import turnaround
from lab.mutants.rooms import ROOT

TRACES = Path(os.environ.get("ABLATION_TRACES") or ROOT / "../shared/traces").resolve()
"""Where they are; a copy of the tree is told."""
SEED = 17
_TASKS, _PROCESSORS = 160, 32  # of the bags that pay
_MISS = 20.0
"""Weight of what an interval misses by, relative to its width: 2/α of the interval score at 90 %."""


Bags = Callable[[int], list[tuple[str, Array]]]
"""Names and runtimes in seconds of the bags of a sample."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A bag or a forecast."""

    measure: str
    cell: str
    goal: float
    """What is left open by the wish, the less the better: seconds, credits, or the score of an interval."""
    time: float = 0.0
    """Seconds; 0: of a forecast."""
    cost: float = 0.0
    """Credits; 0: it is not counted."""
    kept: bool = True
    """Whether all tasks are done, by the deadline; of a forecast, whether its interval held."""
    exceeded: bool = False
    """Whether the bag cost more than its budget."""


class Wish(msgspec.Struct, frozen=True):
    prefer: Preference | None = None
    budget: float | None = None
    """Times the work at the least price."""
    deadline: float | None = None
    """Times what the work takes on all processors, and the longest task after it."""

    def __str__(self) -> str:
        amount = self.budget or self.deadline
        return self.prefer or f"{'budget' if self.budget else 'deadline'} {amount:g}"


def _paid(
    measure: str,
    heuristics: Iterable[HeuristicName],
    sites: Iterable[frontier.Sites],
    units: Iterable[int],
    knowledge: Iterable[frontier.Knowledge],
    wishes: Iterable[Wish],
    *,
    bags: Iterable[str] = frontier.QUICK,
    order: int = 0,
) -> Iterator[Row]:
    """Bags of `budget-frontier` with each wish: an even one, and a heavy-tailed one."""
    for heuristic, where, unit, known, wish, bag in product(
        heuristics, sites, units, knowledge, wishes, bags
    ):
        tasks = tasks_of(bag, SEED, order)[:_TASKS]
        there = frontier.sites_of(where, unit, _shape(heuristic))
        work = math.fsum(tasks)
        price = min(min(site.tariff.price_explicit, site.tariff.price_donated) for site in there)
        budget = None if wish.budget is None else wish.budget * work * price / 3600
        by = None
        if wish.deadline is not None:
            by = wish.deadline * (work / sum(site.processors for site in there) + max(tasks))
        bag_run = submitted(
            tasks,
            *there,
            prefer=wish.prefer,
            budget=budget,
            deadline=by,
            time=work / len(tasks) if known == "time" else None,
            earlier=earlier_of(bag, SEED, order) if known == "earlier" else None,
            order="random",
            foresees=False,
        )
        found = bag_run.run(longest=12 * 3600)
        by_cost = wish.prefer == "cheap" or wish.deadline is not None
        yield Row(
            measure=measure,
            cell=f"{heuristic}, {where}, {unit} s, {known}, {wish}, {bag} {order}",
            goal=found.cost if by_cost else found.end,
            time=found.end,
            cost=found.cost,
            kept=found.ended and found.done == len(tasks) and (by is None or found.end <= by),
            exceeded=budget is not None and found.cost > budget + 1e-5,
        )


def budget() -> Iterator[Row]:
    wishes = [Wish(budget=amount) for amount in (1.35, 3.0)]
    yield from _paid("budget", ["completion"], ["one"], (1, 3600), ("unknown", "time"), wishes)
    yield from _paid("budget", ["elastic"], ["one"], [1], ["unknown"], wishes)


def deadline() -> Iterator[Row]:
    wishes = [Wish(deadline=amount) for amount in (2.0, 4.0, 10.0)]
    yield from _paid("deadline", ["completion"], ["one"], (1, 3600), ("unknown", "earlier"), wishes)


def preference() -> Iterator[Row]:
    wishes = [Wish("cheap"), Wish("balanced"), Wish("fast")]
    yield from _paid("preference", ["completion"], ["one"], (1, 3600), ("unknown", "time"), wishes)


def places() -> Iterator[Row]:
    """Two sites of different prices, and a site beside donated nodes."""
    wishes = Wish("cheap"), Wish(budget=3.0), Wish(deadline=4.0)
    yield from _paid("places", ["completion"], ("two", "donated"), [60], ["unknown"], wishes)


def free() -> Iterator[Row]:
    """Bags with twice what they cost without a budget: how much later."""
    for heuristic, bag in product(("elastic", "completion"), range(7)):
        scene = Scene(bag=bag, seed=SEED, heuristic=heuristic, unit=1, told=bag % 2 == 0)
        plain = scene.run()
        paid = scene.run(2 * plain.cost)
        yield Row(
            measure="free",
            cell=f"{heuristic}, bag {bag}",
            goal=paid.end / plain.end,
            time=paid.end,
            cost=paid.cost,
            kept=paid.done == plain.done,
            exceeded=paid.cost > 2 * plain.cost * (1 + 1e-9),
        )


def _shape(heuristic: HeuristicName) -> frontier.Shape:
    first = HEURISTICS[heuristic].assumed_runtime
    return frontier.Shape(heuristic=heuristic, initial_tr=first, processors=_PROCESSORS)


@functools.cache
def _workloads() -> tuple[derose.Workload, ...]:
    return tuple(each for each in derose.WORKLOADS if each.key in ("sdsc-sp2", "ctc-sp2-338"))


def _on_traces(
    measure: str, samples: Iterable[int], terms: Callable[[int], dict[str, GridTerms]], bags: Bags
) -> Iterator[Row]:
    """Bags without a wish among the local jobs of two traces, each by all terms (of that many processors)."""
    for workload, number in product(_workloads(), samples):
        jobs = sample.load(TRACES / f"{workload.file}.swf.gz", workload.processors)
        base = sample.cluster_at(workload, jobs, "conservative", SEED, number)
        for (way, by), (bag, runtimes) in product(terms(workload.processors).items(), bags(number)):
            found = run_grid_job(base.fork(), runtimes, by)
            yield Row(
                measure=measure,
                cell=f"{workload.key}, {number}, {way}, {bag}",
                goal=found.turnaround,
                time=found.turnaround,
                cost=found.held / 3600,
            )


def elastic() -> Iterator[Row]:
    """With many and with some pilots."""
    ways = peers.Ours("elastic", 1000), peers.Ours("elastic", 100)
    yield from _on_traces(
        "elastic",
        (1, 3),
        lambda processors: {way.name: way.terms(processors, peers.Settings().site) for way in ways},
        lambda number: [
            (str(bag), bag.runtimes(SEED, number))
            for bag in (peers.Bag(150, 1000, "equal"), peers.Bag(150, 1000, "heavy"))
        ],
    )


def _few(
    measure: str,
    *heuristics: HeuristicName,
    samples: Iterable[int] = range(1, 4),
    kinds: Iterable[derose.JobType] = (derose.JobType(300, 1000, 4),),
    longest: int = 64_800,
) -> Iterator[Row]:
    """Cells by which heuristics with few requests are judged."""
    settings = derose.Settings(seed=SEED, max_tr=longest)
    yield from _on_traces(
        measure,
        samples,
        lambda processors: {
            f"{heuristic} {pending}": sample.terms_of(
                msgspec.structs.replace(_workloads()[0], processors=processors), settings, pending, heuristic
            )
            for heuristic in heuristics
            for pending in (1, 3)
        },
        lambda number: [(str(kind), kind.runtimes(SEED, number)) for kind in kinds],
    )


def completion() -> Iterator[Row]:
    yield from _few("completion", "completion")


def goals() -> Iterator[Row]:
    """Ten times as many bags of `completion`, for groups of constants."""
    kinds = derose.JobType(100, 100, 1), derose.JobType(100, 1000, 4), derose.JobType(1000, 1000, 4)
    yield from _few("goals", "completion", samples=range(4, 14), kinds=kinds)


def short() -> Iterator[Row]:
    """Bags that last for many of the longest walltimes."""
    kinds = [derose.JobType(600, 1000, 4)]
    yield from _few("short", "completion", samples=(1, 2), kinds=kinds, longest=2400)


def adaptive() -> Iterator[Row]:
    yield from _few("adaptive", "adaptive", "static")


def deadlines() -> Iterator[Row]:
    """Many bags with deadlines, most of them heavy-tailed, for groups of constants."""
    yield from _many("deadlines", [Wish(deadline=amount) for amount in (1.5, 2.0, 4.0)], "completion")


def budgets() -> Iterator[Row]:
    """The same with budgets, at sites that first assume a minute and an hour."""
    wishes = [Wish(budget=amount) for amount in (1.2, 2.0)]
    yield from _many("budgets", wishes, "completion", "adaptive")


def _many(measure: str, wishes: list[Wish], *heuristics: HeuristicName) -> Iterator[Row]:
    bags = "exponential", "two-kinds", "rare-long", "many-kinds", "levy"
    for order in range(1, 4 if len(heuristics) == 1 else 3):
        yield from _paid(measure, heuristics, ["one"], (1, 3600), ["unknown"], wishes, bags=bags, order=order)


def sites() -> Iterator[Row]:
    """Two sites that share a bag without a wish."""
    for number, heuristic, unequal in product(range(3), ("adaptive", "elastic"), (False, True)):
        scenes = [scene_of(10_000 * SEED + number), scene_of(10_000 * SEED + number + 500)]
        time = turnaround(scenes, heuristic, 10.0, unequal=unequal, seed=number)
        yield Row(
            measure="sites", cell=f"{heuristic}, {number}, {unequal}", goal=float(time), time=float(time)
        )


def _scores(measure: str, rows: Iterable[Foreseen], whats: tuple[What, ...]) -> Iterator[Row]:
    """Interval scores, relative to what came: the width, and far more for what is missed by."""
    for row, what in product(rows, whats):
        low, high, came, since = (
            (row.cost_low, row.cost_high, row.cost, 0.0)
            if what == "cost"
            else (row.end_low, row.end_high, row.end, row.at)
        )
        if not math.isnan(low):
            missed = max(0.0, low - came, came - high)
            yield Row(
                measure=measure,
                cell=f"{row.where}, {row.bag}, {row.number}, {row.moment}, {what}",
                goal=(high - low + _MISS * missed) / max(1e-9, came - since),
                kept=row.holds(what),
            )


def paid_forecasts() -> Iterator[Row]:
    """Ends and costs of bags that pay (`budget-check`)."""
    settings = paid_bags.Settings(seed=SEED, orders=2, bags=tuple(paid_bags.BAG)[1::3])
    for piece in paid_bags.pieces(settings):
        yield from _scores("paid forecasts", paid_bags.run_piece(piece), ("cost", "end"))


def queue_forecasts() -> Iterator[Row]:
    """Ends of bags on the queue of a trace (`endings`)."""
    trace = TraceFile(TRACES / f"{_workloads()[0].file}.swf.gz")
    for piece in queue_bags.pieces([trace], 8, SEED):
        yield from _scores("queue forecasts", queue_bags.run_piece(piece), ("end",))


MEASURES: dict[str, Callable[[], Iterator[Row]]] = {
    "budget": budget,
    "deadline": deadline,
    "deadlines": deadlines,
    "budgets": budgets,
    "preference": preference,
    "places": places,
    "free": free,
    "elastic": elastic,
    "completion": completion,
    "goals": goals,
    "short": short,
    "adaptive": adaptive,
    "sites": sites,
    "paid forecasts": paid_forecasts,
    "queue forecasts": queue_forecasts,
}
FORECASTS = "paid forecasts", "queue forecasts"


def print_rows() -> None:
    """The rows of the measures that the command line names, as JSON."""
    for name in sys.argv[1:]:
        for row in MEASURES[name]():
            print(json.dumps(msgspec.structs.asdict(row)))  # infinite ones too
