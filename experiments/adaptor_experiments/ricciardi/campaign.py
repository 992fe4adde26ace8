"""Running every production: all cells with all seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from adaptor_experiments.ricciardi.design import (
    CHANGES,
    COUNTS,
    FLAVOURS,
    GOALS,
    TABLES,
    TASKS,
    VARIATIONS,
    Cell,
    Flavour,
    Resource,
    Runtimes,
    Target,
    Variation,
    target,
)
from adaptor_experiments.ricciardi.production import (
    Controller,
    DaemonController,
    EvenOddsController,
    PaperController,
    Production,
)

PAPER_RUNS = 5
"""Runs of each cell in the paper (§4). The further ones show what chance does."""


_CONTROLLERS: dict[Flavour, Callable[[Sequence[Resource], Target, float], Controller]] = {
    "paper": PaperController,
    "even odds": EvenOddsController,
    "daemon": DaemonController,
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    runs: int = 50
    """Of each cell; the first five are the experiment of the paper."""
    tasks: int = TASKS

    def runs_of(self, cell: Cell) -> int:
        """Of this cell: those that show a reason need few, and without spread all runs are alike."""
        most: dict[Variation, int] = {"printed": self.runs, "no spread": 1, "more tasks": PAPER_RUNS}
        return most[cell.variation]


class Run(Cell, frozen=True, kw_only=True):
    """One production of a cell: a line of the results."""

    run: int
    time: float
    """Per cent of the target, or of what the paper's plan promises for the target cost."""
    cost: float
    """Per cent of the target, or of what the paper's plan promises for the target time."""
    steps: int
    """Decisions."""

    @property
    def reached(self) -> float:
        """Per cent of the target."""
        return self.time if self.goal == "time" else self.cost

    @property
    def other(self) -> float:
        """Per cent of what was to be minimised, as the plan promised it."""
        return self.cost if self.goal == "time" else self.time


def cells() -> list[Cell]:
    """Of both figures, by each allocation; then those that show why the paper's misses its targets."""
    figures = [
        Cell(table, count, goal, flavour, change)
        for change in CHANGES
        for table in TABLES
        for count in COUNTS
        for goal in GOALS
        for flavour in FLAVOURS
    ]
    reasons = [
        msgspec.structs.replace(cell, variation=variation)
        for cell in figures
        for variation in VARIATIONS[1:]
        if cell.flavour == "paper" and cell.change == "task"
    ]
    return figures + reasons


class Piece(msgspec.Struct, frozen=True):
    """All runs of a cell."""

    cell: Cell
    settings: Settings

    @property
    def name(self) -> str:
        return "-".join(map(str, msgspec.structs.astuple(self.cell)))


def pieces(settings: Settings) -> list[Piece]:
    return [Piece(cell, settings) for cell in cells()]


def run_piece(piece: Piece) -> list[Run]:
    settings = piece.settings
    return [run_once(piece.cell, settings, number) for number in range(settings.runs_of(piece.cell))]


def run_once(cell: Cell, settings: Settings, number: int) -> Run:
    resources, tasks = cell.resources, cell.tasks(settings.tasks)
    wanted = target(resources, cell.goal, tasks)
    delta = max(resource.seconds for resource in resources)
    runtimes = Runtimes(resources, [settings.seed, number], cell.change, delta)
    controller: Controller = _CONTROLLERS[cell.flavour](resources, wanted, delta)
    outcome = Production(resources, runtimes, tasks).run(controller)
    return Run(
        **msgspec.structs.asdict(cell),
        run=number,
        time=100 * outcome.seconds / wanted.seconds,
        cost=100 * outcome.credits / wanted.credits,
        steps=outcome.steps,
    )
