"""Running every bag: sampled, with each budget, ended in each way."""

from __future__ import annotations

import random

import msgspec

from adaptor.budget.provisioning.menu import menu
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.runtimes.task_time import TaskTime
from adaptor_experiments.bats.design import (
    BUDGETS,
    EVERY_WAY,
    KINDS,
    SITES,
    BudgetName,
    Kind,
    Settings,
    Way,
    bag,
)
from adaptor_experiments.bats.ending import TailPhase
from adaptor_experiments.bats.sampling import sample
from adaptor_experiments.bats.throughput import Throughput
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
    planned: float
    """The time that the menu promised."""
    allowed: float
    """The budget, with what the sample has cost."""
    sampled: float
    """Cost of the sample."""
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


def of(runs: Runs[Run], kind: Kind, budget: BudgetName, way: Way) -> Runs[Run]:
    return runs.where(kind=kind, budget=budget, way=way)


class Piece(msgspec.Struct, frozen=True):
    """One bag."""

    kind: Kind
    number: int
    settings: Settings

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.number}"


def pieces(settings: Settings) -> list[Piece]:
    return [Piece(kind, number, settings) for kind in KINDS for number in range(settings.bags)]


def run_piece(piece: Piece) -> list[Run]:
    """The bag in all orders, with both budgets, in all ways."""
    runtimes = bag(piece.kind, piece.settings, piece.number)
    times = [[float(runtime / site.speed) for runtime in runtimes] for site in SITES]
    found = []
    for run in range(piece.settings.runs):
        draw = random.Random(f"{piece.settings.seed} {piece.kind} {piece.number} {run}")  # noqa: S311
        sampled = sample(times, draw)
        rest = [task for task in range(len(runtimes)) if task not in sampled.done]
        choices = {line.name: line for line in menu(len(rest), offers(sampled.known), len(sampled.done))}
        order = draw.sample(rest, len(rest))
        for budget in BUDGETS:
            line = choices[_LINES[budget]]
            allowed = line.budget + sampled.cost
            ending = Throughput(times, order, line, allowed, sampled).run()
            draws = {way: random.Random(run) for way in EVERY_WAY}  # noqa: S311
            results = {way: TailPhase(ending, times, way, draws[way]).run() for way in EVERY_WAY}
            found += [
                Run(
                    kind=piece.kind,
                    bag=piece.number,
                    run=run,
                    budget=budget,
                    way=way,
                    planned=line.seconds.value,
                    allowed=allowed,
                    sampled=sampled.cost,
                    without=results["none"].seconds,
                    asked=ending.asked,
                    **msgspec.structs.asdict(result),
                )
                for way, result in results.items()
            ]
    return found


def offers(known: dict[str, TaskTime]) -> list[SiteOffer]:
    return [site.offer(known[site.name]) for site in SITES]
