"""Parts of the experiments that are recorded, each in minutes of processor time; four scenes of sites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.situation import Reshape, SiteRules, SubmitRequest, Withdraw
from adaptor.decisions.actions import End
from adaptor.decisions.site_settings import DonationSettings, SiteSettings
from adaptor.donation.situation import DonationRules
from adaptor.model import Limits
from adaptor.resources import TaskSize
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor_experiments.a2ha import design as a2ha
from adaptor_experiments.bats import design as bats_design
from adaptor_experiments.bats import experiment as bats
from adaptor_experiments.commands.bag_options import load_cluster, terms_of_bag
from adaptor_experiments.derose import design as derose
from adaptor_experiments.derose import sample
from adaptor_experiments.derose.design import own_workload
from adaptor_experiments.forecasts import paid_bags, queue_bags
from adaptor_experiments.forecasts.trace_queues import TraceFile
from adaptor_experiments.ricciardi import experiment as ricciardi
from adaptor_experiments.transparent import design as transparent
from adaptor_simulation.distributions import draw_runtimes
from adaptor_simulation.driver import SimulatedDriver
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.machine import parse_machine
from adaptor_simulation.scene.site import ScenePlace, SimulatedSite
from adaptor_simulation.scene.world import World
from adaptor_simulation.what_if import HolesFound, find_holes
from adaptor_simulation.worker import Attempt

_DONATION = DonationSettings(rules=DonationRules(useful_time=60.0), preemptible=False)
_QUICK = Limits(max_pending_requests=2, max_proc=8, max_tr=600)
_SLOW = Limits(max_pending_requests=2, max_proc=12, max_tr=3600)
_UNTIL = 40_000


class SceneRow(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, the end of one task, or the cost of one bag."""

    scene: str
    what: str
    at: float = 0.0
    bag: int = 0
    number: int = 0
    """Number of the pilot or task."""
    p: int = 0
    tr: int = 0
    credits: float = 0.0


def _place(
    name: str,
    processors: int,
    rows: list[tuple[int, int, int, int]],
    *,
    heuristic: str = "adaptive",
    donation: DonationSettings | None = None,
    parts: dict[str, Limits] | None = None,
    **keys: Any,
) -> ScenePlace:
    """A site whose local jobs have these submissions, processors, limits and run times."""
    submit, wide, estimate, run = np.array(rows, np.int64).T
    jobs = Jobs(
        number=np.arange(1, len(rows) + 1), submit=submit, run=run, estimate=estimate, processors=wide
    )
    limits = Limits(max_pending_requests=2, max_proc=processors, max_tr=3600, partitions=parts or {})
    rules = SiteRules(limits=limits, pad=10.0, may_reshape=True)
    settings = SiteSettings(name=name, rules=rules, heuristic=heuristic, donation=donation)
    return ScenePlace(settings=settings, jobs=jobs, processors=processors, **keys)


def _bag(
    tasks: int, seconds: int, budget: int | None = None, **wishes: Any
) -> tuple[BagSpec, int, int, int | None]:
    """`seconds` of the shortest task; others take up to 6 s more. `budget` in millionths of a credit."""
    return BagSpec(name="", cwd="", output="", environment={}, **wishes), tasks, seconds, budget


_NEAR = [(0, 4, 900, 600), (100, 8, 600, 300), (2000, 6, 900, 500)]
_FEW = [(0, 6, 300, 200), (900, 3, 900, 800)]
_FAR = [(0, 8, 300, 200), (900, 4, 900, 800)]
_BUSY = [(0, 8, 600, 400), (200, 6, 900, 500), (700, 4, 1200, 300), (800, 8, 600, 600), (2500, 7, 900, 450)]
_WIDE = [(0, 12, 900, 600), (100, 6, 600, 300), (2000, 12, 900, 500)]
_PARTITIONS = {"quick": frozenset({"n3", "n4"}), "slow": frozenset({"n1", "n2", "n3"})}
SCENES = {
    "credits and donation": (
        [_place("near", 8, _NEAR, donation=_DONATION), _place("far", 8, _FAR)],
        [
            _bag(60, 50, 3_000_000),
            _bag(40, 30, deadline=1500.0),
            _bag(30, 40, allocation="transparent"),
            _bag(40, 20),
        ],
    ),
    "nodes": (
        [
            _place("near", 16, _WIDE, machine=parse_machine("4x4"), chunk=3),
            _place("far", 11, _FEW, machine=parse_machine("1x3+2x4"), chunk=3),
        ],
        [_bag(20, 50, cpus=3), _bag(30, 30)],
    ),
    "partitions": (
        [
            _place(
                "here",
                16,
                [(0, 6, 900, 600), (2000, 12, 900, 500)],
                parts={"quick": _QUICK, "slow": _SLOW},
                machine=parse_machine("4x4"),
                partitions=_PARTITIONS,
            )
        ],
        [_bag(40, 50), _bag(8, 700, cpus=2)],
    ),
    "completion and static": (
        [
            _place("completion", 8, _BUSY, heuristic="completion"),
            _place("static", 8, _BUSY, heuristic="static", policy="easy"),
        ],
        [_bag(300, 70), _bag(60, 300)],
    ),
}


def run_scene(name: str) -> list[SceneRow]:
    """Events of a scene: submissions, changes, withdrawals and ends of pilots; ends of tasks; costs of
    bags."""
    places, bags = SCENES[name]
    sites = {place.settings.name: SimulatedSite(place) for place in places}
    terms = {key: site.place.terms(60.0) for key, site in sites.items()}
    price = {key: Tariff(price_explicit=9.0 if key == "near" else 3.0, price_donated=1.0) for key in sites}
    driver = SimulatedDriver(sites, Broker(terms), price)
    world = World(sites, driver)
    for number, (spec, tasks, seconds, budget) in enumerate(bags, 1):
        if budget is not None:
            driver.ledger.set_budget(Budget(amount=budget, bag=number), 0.0)
        bag = Bag(number, spec, tasks)
        bag.fill()
        if budget is not None or spec.aims:
            driver.broker.keep_apart(number)
        world.add_bag(bag, lambda key, _site, seconds=seconds: Attempt(float(seconds + key.task % 7)))  # type: ignore[misc]
    world.run(_UNTIL)
    ends = [
        SceneRow(scene=name, what=end.state.value, at=end.at, bag=end.bag, number=end.task)
        for end in world.ended
    ]
    costs = [
        SceneRow(scene=name, what="cost", bag=number, credits=driver.ledger.of_bag(number).used / 1e6)
        for number in range(1, len(bags) + 1)
    ]
    return [*_decisions(name, driver), *ends, *costs]


def _decisions(scene: str, driver: SimulatedDriver) -> Iterator[SceneRow]:
    for decided in driver.log:
        action, row = decided.action, SceneRow(scene=scene, what="", at=decided.at)
        name = type(action).__name__.lower()
        if isinstance(action, SubmitRequest):
            request = action.crafted.request
            yield msgspec.structs.replace(row, what=f"submit {decided.site}", p=request.p, tr=request.tr)
        elif isinstance(action, Reshape):
            request = action.crafted.request
            yield msgspec.structs.replace(row, what=name, number=action.pilot, p=request.p, tr=request.tr)
        elif isinstance(action, Withdraw | End):
            yield msgspec.structs.replace(row, what=name, number=action.pilot)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    run: Callable[[Any], Iterable[msgspec.Struct]]
    """The full results of a piece."""
    pieces: Callable[[Path], Iterable[Any]]
    """With the traces of a folder."""
    groups: tuple[str, ...]
    """Columns whose values name a group of rows."""
    figures: tuple[str, ...]
    """Columns of which the record has means by group."""
    fast: bool = False
    """Whether a test runs it: seconds, and no trace from elsewhere."""


SDSC_SP2 = derose.WORKLOADS[0]


def _part(**part: Any) -> derose.Settings:
    """Some of the cells by which heuristics are judged."""
    return derose.Settings(**{**derose.PARTS["goals"], **part})


_FEW_REQUESTS = tuple(name for name, traits in HEURISTICS.items() if not traits.narrow)
_SMALL = _part(tasks=(100,), means=(100, 1000), max_pending=(1, 3), heuristics=_FEW_REQUESTS)
_COMPLETION = _part(tasks=(100, 1000), means=(1000,), max_pending=(1, 3), heuristics=("completion",))


def _trace(traces: Path) -> Path:
    return traces / f"{SDSC_SP2.file}.swf.gz"


def _holes(trace: Path) -> list[HolesFound]:
    cluster, _ = load_cluster(trace, nodes="32x4")
    (terms,) = terms_of_bag(cluster, TaskSize(processors=3), heuristics=("adaptive",), max_pending=3)
    submits = cluster.jobs.submit
    instants = [int(submits[len(submits) * part // 5]) for part in (1, 2, 3, 4)]
    every = [msgspec.structs.replace(terms, sees_nodes=sees) for sees in (False, True)]
    return find_holes(cluster, instants, draw_runtimes("uniform(5m, 15m)", 300, 1), every)


_BAG = ("turnaround", "requests", "withdrawn", "reshaped", "held", "local_wait")
CASES = {
    "small": Case(
        run=sample.run_piece,
        pieces=lambda _: sample.pieces([own_workload(Path("fixtures/traces/small.swf"))], Path(), _SMALL, 3),
        groups=("heuristic", "mean", "max_pending"),
        figures=_BAG,
        fast=True,
    ),
    "scenes": Case(
        run=run_scene,
        pieces=lambda _: SCENES,
        groups=("scene", "what"),
        figures=("at", "p", "tr", "credits"),
        fast=True,
    ),
    "derose": Case(
        run=sample.run_piece,
        pieces=lambda traces: sample.pieces(derose.WORKLOADS[:3], traces, _part(), 20),
        groups=("trace", "heuristic", "mean", "max_pending"),
        figures=_BAG,
    ),
    "completion": Case(
        run=sample.run_piece,
        pieces=lambda traces: sample.pieces([SDSC_SP2], traces, _COMPLETION, 2),
        groups=("tasks", "max_pending"),
        figures=_BAG,
    ),
    "transparent": Case(
        run=transparent.run_piece,
        pieces=lambda traces: transparent.pieces(
            traces, transparent.Settings(tasks=(100, 1000), loads=(1.3, 1.0)), 1
        ),
        groups=("load", "tasks", "strategy"),
        figures=("turnaround", "held", "used", "donated", "lost", "reclaims", "later"),
    ),
    "bats": Case(
        run=bats.run_piece,
        pieces=lambda _: bats.pieces(bats_design.Settings(bags=2, runs=2)),
        groups=("kind", "budget", "way"),
        figures=("seconds", "spent", "replicas", "won", "migrations"),
    ),
    "a2ha": Case(
        run=a2ha.run_piece,
        pieces=lambda _: a2ha.pieces(a2ha.Settings(orders=20)),
        groups=("experiment", "bag", "preset", "bought"),
        figures=("hosts", "units", "wall", "cut", "wasted", "continued"),
    ),
    "cost-aware": Case(
        run=ricciardi.run_piece,
        pieces=lambda _: ricciardi.pieces(ricciardi.Settings(runs=7, tasks=400)),
        groups=("table", "goal", "flavour", "variation"),
        figures=("time", "cost", "steps"),
    ),
    "endings": Case(
        run=queue_bags.run_piece,
        pieces=lambda traces: queue_bags.pieces([TraceFile(_trace(traces))], 30, 1),
        groups=("bag", "moment"),
        figures=("at", "end_low", "end_value", "end_high", "end", "pace", "planned"),
    ),
    "budget-check": Case(
        run=paid_bags.run_piece,
        pieces=lambda _: paid_bags.pieces(paid_bags.Settings(orders=8)),
        groups=("bag", "moment"),
        figures=("cost", "cost_low", "cost_value", "cost_high", "end", "end_low", "end_value", "end_high"),
    ),
    "holes": Case(
        run=_holes,
        pieces=lambda traces: [_trace(traces)],
        groups=("sees_nodes",),
        figures=("requests", "promised", "started", "mean_turnaround"),
    ),
}
