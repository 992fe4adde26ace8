"""Running every bag: sampled, with each budget, ended in each way."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec

from adaptor.budget.provisioning.menu import menu
from adaptor.budget.provisioning.site_offers import Line, SiteOffer
from adaptor.runtimes.task_time import TaskTime
from adaptor_experiments.bats.design import (
    BUDGETS,
    EVERY_WAY,
    KINDS,
    REPLANNINGS,
    SITES,
    BudgetName,
    Kind,
    Replanning,
    Settings,
    Way,
    bag,
)
from adaptor_experiments.bats.ending import TailPhase
from adaptor_experiments.bats.sampling import Sampled, sample
from adaptor_experiments.bats.throughput import Throughput
from adaptor_experiments.resumable import gathered
from adaptor_experiments.tables import Runs

_LINES = {"minimal +10 %": "cheapest +10 %", "fastest": "fastest"}
"""The line of the menu that each budget stands for."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One bag that was run: a line of the results. Times in seconds, costs in credits."""

    kind: str
    bag: int
    run: int
    budget: str
    way: str
    replanning: str
    planned: float
    """The time that the menu promised."""
    allowed: float
    """The budget, with what the sample has cost."""
    sampled: float
    """What the sample has cost."""
    seconds: float
    without: float
    """Without a tail phase."""
    spent: float
    replicas: int
    won: int
    """Replicas that ended before any other attempt of their task."""
    migrations: int
    asked: bool
    """Whether the budget was found to be too small on the way."""

    @property
    def relative(self) -> float:
        """Time, per cent of that without a tail phase."""
        return 100 * self.seconds / self.without

    @property
    def over(self) -> bool:
        return self.spent > self.allowed * (1 + 1e-9)


def of(
    runs: Runs[Run], kind: Kind, budget: BudgetName, way: Way, replanning: Replanning = "daemon"
) -> Runs[Run]:
    return runs.where(kind=kind, budget=budget, way=way, replanning=replanning)


class Piece(msgspec.Struct, frozen=True):
    """One bag: what a process does at a time."""

    kind: Kind
    number: int
    settings: Settings


def run_all(settings: Settings, processes: int, done: Callable[[int], None]) -> list[Run]:
    """All runs; `done` gets the number of bags that have been run."""
    pieces = [Piece(kind, number, settings) for kind in KINDS for number in range(settings.bags)]
    return gathered(run_bag, pieces, processes, lambda _: done(1))


def run_bag(piece: Piece) -> list[Run]:
    """In all orders, with both budgets, in all ways."""
    runtimes = bag(piece.kind, piece.settings, piece.number)
    times = [[float(each / site.speed) for each in runtimes] for site in SITES]
    found = []
    for run in range(piece.settings.runs):
        draw = random.Random(f"{piece.settings.seed} {piece.kind} {piece.number} {run}")  # noqa: S311
        sampled = sample(times, draw)
        rest = [task for task in range(len(runtimes)) if task not in sampled.done]
        choices = {line.name: line for line in menu(len(rest), offers(sampled.known), len(sampled.done))}
        order = draw.sample(rest, len(rest))
        for budget in BUDGETS:
            case = Case(piece, run, budget, choices[_LINES[budget]], sampled)
            found += [run for each in REPLANNINGS for run in _ended(case, each, times, order)]
    return found


def offers(known: dict[str, TaskTime]) -> list[SiteOffer]:
    return [site.offer(known[site.name]) for site in SITES]


class Case(msgspec.Struct, frozen=True):
    """One run of a bag with one budget."""

    piece: Piece
    run: int
    budget: BudgetName
    line: Line
    sampled: Sampled

    @property
    def allowed(self) -> float:
        """The money is the line's and the sample's."""
        return self.line.budget + self.sampled.cost


def _ended(
    case: Case, replanning: Replanning, times: Sequence[Sequence[float]], order: list[int]
) -> list[Run]:
    """The same run of the throughput phase, ended in each way.

    Where it is replanned as in the slides, it is ended without a tail phase only.
    """
    ending = Throughput(times, order, case.line.configuration, case.allowed, case.sampled, replanning).run()
    results = {
        way: TailPhase(ending, times, way, random.Random(case.run)).run()  # noqa: S311
        for way in (EVERY_WAY if replanning == "daemon" else EVERY_WAY[:1])
    }
    return [
        Run(
            kind=case.piece.kind,
            bag=case.piece.number,
            run=case.run,
            budget=case.budget,
            way=way,
            replanning=replanning,
            planned=case.line.configuration.seconds,
            allowed=case.allowed,
            sampled=case.sampled.cost,
            without=results["none"].seconds,
            asked=ending.asked,
            **msgspec.structs.asdict(result),
        )
        for way, result in results.items()
    ]
