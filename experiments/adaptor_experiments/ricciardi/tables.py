"""The tables beside Figs 1 and 2 of the paper, and where they agree."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.ricciardi.campaign import PAPER_RUNS, Run
from adaptor_experiments.ricciardi.design import (
    CHANGES,
    COUNTS,
    FLAVOURS,
    GOALS,
    TABLES,
    Change,
    Flavour,
    Variation,
)

WITHIN = 2.0
"""Per cent, of the target that is to be met on average."""

_HEADINGS = (
    "target",
    "resources",
    *(f"{flavour}{what}" for what in (", 5 runs", "", ": besides") for flavour in FLAVOURS),
)
_REMARKS = {
    ("task", 1): (
        "The paper draws its percentages as bars, without numbers in its text. It says that stable resources"
        " meet their cost, and so it is here: 98 to 99 % with its allocation, 100 % with both variants of"
        " ours.",
        "Its times are 5 % too long. It plans with the throughput of all processors until the end,"
        " yet the last tasks have to end after the last start.",
    ),
    ("task", 2): (
        "The paper says that unstable resources meet their cost and miss their time. So it is here: 8 to"
        " 9 % too long, since the last of a hundred tasks ends the later the more they vary.",
        "Both variants of ours meet both, the daemon's within 2 %. They plan for the end of the last task"
        " (residual life of the running ones) and count running tasks with what is to be expected of them, as"
        " the finished ones alone are the short ones. Even odds decides more often in the last three Δt.",
        "Where a cost is the target, ours spends the last credits as exactly, and is faster with them. The"
        " plan's own time is out of reach for both: it does not count the end of the last tasks, and the"
        " cheapest site alone has to finish where nothing is left to choose from.",
    ),
    ("period", 1): ("If all tasks of a resource within one Δt are equally long, nothing averages out.",),
    ("period", 2): (
        "Here the paper's allocation misses its times by 1 % only, unlike in the paper. So what its authors"
        " drew was most likely the time of each task, as in the tables above.",
        "Nobody can steer to 2 % a resource that is slow or fast as a whole for a tenth of the production."
        " Ours stays some 5 % below its times, being careful; the spread of the costs is 10 % with both.",
    ),
}
_TITLES = {
    ("task", 1): "Fig. 1: stable resources (Table 1), per cent of the target",
    ("task", 2): "Fig. 2: unstable resources (Table 2), per cent of the target",
    ("period", 1): "Table 1, if a resource is slow or fast as a whole for a Δt",
    ("period", 2): "Table 2, if a resource is slow or fast as a whole for a Δt",
}


def tables(runs: Sequence[Run]) -> list[Exhibit]:
    return [
        Exhibit(
            name=f"table-{table}-{change}",
            title=_TITLES[change, table],
            headings=_HEADINGS,
            rows=[_row(runs, table, count, goal, change) for goal in GOALS for count in COUNTS],
            remarks=_REMARKS[change, table],
        )
        for change in CHANGES
        for table in TABLES
    ]


def _row(runs: Sequence[Run], table: int, count: int, goal: str, change: Change) -> list[str]:
    by = {flavour: of(runs, table, goal, flavour, count, change) for flavour in FLAVOURS}
    first = [f"{mean(some[:PAPER_RUNS]):.1f} %" for some in by.values()]
    others = [_spread([run.reached for run in some[PAPER_RUNS:]]) for some in by.values()]
    besides = [_spread([run.other for run in some]) for some in by.values()]
    return [goal, str(count), *first, *others, *besides]


def of(
    runs: Sequence[Run],
    table: int,
    goal: str,
    flavour: str,
    count: int | None = None,
    change: Change = "task",
    variation: Variation = "printed",
) -> list[Run]:
    wanted = (table, goal, flavour, change, variation)
    return [
        run
        for run in runs
        if (run.table, run.goal, run.flavour, run.change, run.variation) == wanted
        and count in (None, run.count)
    ]


def mean(runs: Sequence[Run]) -> float:
    return float(np.mean([run.reached for run in runs]))


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values):.1f} %" if values else "-"


class Verdict(msgspec.Struct, frozen=True):
    """Whether the targets of the unstable resources are met."""

    time: float
    """Per cent of the target, mean over all runs."""
    cost: float
    worst: float
    """Of the means of the single cells, that farthest from 100 %."""

    @property
    def met(self) -> bool:
        return all(abs(each - 100) <= WITHIN for each in (self.time, self.cost))


def conclusion(runs: Sequence[Run]) -> tuple[str, ...]:
    """In sentences: the targets of the unstable resources by each allocation."""
    return tuple(_reached(flavour, verdict(runs, flavour)) for flavour in reversed(FLAVOURS))


def _reached(flavour: Flavour, found: Verdict) -> str:
    return (
        f"{flavour}: unstable resources reach {found.time:.1f} % of the target time and {found.cost:.1f} % of"
        f" the target cost on average ({'within' if found.met else 'not within'} {WITHIN:g} %); single kinds"
        f" differ by {abs(found.worst - 100):.1f} % at most"
    )


def verdict(runs: Sequence[Run], flavour: Flavour) -> Verdict:
    """An allocation on the unstable resources, a draw for each task."""
    found = {goal: mean(of(runs, 2, goal, flavour)) for goal in GOALS}
    single = [mean(of(runs, 2, goal, flavour, count)) for goal in GOALS for count in COUNTS]
    return Verdict(found["time"], found["cost"], max(single, key=lambda each: abs(each - 100)))
