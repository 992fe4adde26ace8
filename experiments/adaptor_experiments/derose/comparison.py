"""How heuristics compare on one trace, cell by cell and on the whole, with what chance leaves open."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor_experiments.bootstrap import Interval, Matrix, interval, weights
from adaptor_experiments.derose.design import Workload
from adaptor_experiments.derose.sample import Outcome
from adaptor_experiments.tables import Runs

CLEARLY_SLOWER = 0.97
"""Cells with a smaller ratio are counted."""

BIGGEST = 10**8
"""Seconds of work from which on a bag is left out of `Profile.local_wait`: the 10,000 × 10,000 s of six of 54
cells are four fifths of all work."""

MEANS = (
    *("turnaround", "bound", "requests", "withdrawn", "reshaped", "held", "work", "local_wait"),
    *("decisions", "planning"),
)
"""The fields of an outcome of which a cell has the mean."""


class Kind(msgspec.Struct, frozen=True, order=True):
    """A kind of grid job under one limit."""

    tasks: int
    mean: int
    heterogeneity: int
    max_pending: int

    def __str__(self) -> str:
        return f"{self.tasks:,} × {self.mean:,} s, {self.heterogeneity}x, limit {self.max_pending}"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One kind by one heuristic."""

    kind: Kind
    heuristic: str
    means: dict[str, float]
    """By the fields of `MEANS`, over the submission times: seconds and processor-seconds."""
    over: dict[str, Interval]
    """By another heuristic: its mean turnaround / this one's."""


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """How many times sooner one heuristic finishes a bag than another: of the ratios of the cells."""

    heuristic: str
    over: str
    geometric: Interval
    arithmetic: Interval
    by_mean: dict[int, Interval]
    """Geometric means of the cells with this mean runtime."""
    worst: Interval
    worst_kind: Kind
    slower: int
    """Cells below `CLEARLY_SLOWER`."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a heuristic does on the whole."""

    heuristic: str
    distance: Interval
    """Geometric mean of mean turnaround / mean lower bound."""
    waste: Interval
    """Of what the requests held, the share in which no task ran that finished there; mean of the cells."""
    local_wait: Interval
    """Hours that the local jobs wait longer in all for each processor-hour used, by all cells together but
    those of the biggest bags. In a single cell of small bags it is mostly chance."""
    requests: float
    """For each bag."""
    withdrawn: float
    reshaped: float
    """Changes of requests that waited, for each bag."""
    decisions: float
    """Planning steps for each bag."""
    decision_time: float
    """Milliseconds of processor time for each of them."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All heuristics on one trace."""

    workload: Workload
    samples: int
    kinds: list[Kind]
    profiles: dict[str, Profile]
    ratios: list[Ratio]
    """Each heuristic over each other one."""
    cells: list[Cell]
    log_ratios: dict[str, Matrix]
    """`a/b`: the geometric mean's logarithm in each repetition of the bootstrap."""

    def ratio(self, heuristic: str, over: str) -> Ratio | None:
        """None: one of them was not run, or the two are one."""
        pair = (heuristic, over)
        return next((ratio for ratio in self.ratios if (ratio.heuristic, ratio.over) == pair), None)

    def of(self, heuristic: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.heuristic == heuristic]


def compare(workload: Workload, outcomes: Sequence[Outcome], seed: int) -> Comparison:
    """The outcomes of one trace, whose samples all hold the same cells.

    What the bootstrap draws again are the submission times, for all cells and heuristics together; also for
    all machines of one trace, as they share them. Other traces have draws of their own, so that figures of
    several can be put together.
    """
    figures = _Figures(outcomes, [seed, zlib.crc32(workload.file.encode())])
    names = list(figures.values)
    pairs = [(one, other) for one in names for other in names if one != other]
    return Comparison(
        workload=workload,
        samples=figures.samples,
        kinds=figures.kinds,
        profiles={name: figures.profile(name) for name in names},
        ratios=[figures.ratio(*pair) for pair in pairs],
        cells=[figures.cell(row, name) for row in range(len(figures.kinds)) for name in names],
        log_ratios={
            f"{one}/{other}": np.log(figures.sooner(one, other)[1]).mean(axis=0) for one, other in pairs
        },
    )


def on_all(comparisons: Sequence[Comparison], heuristic: str, over: str) -> Interval | None:
    """The geometric mean over the cells of all traces; None: one of the two was not run."""
    ratios = [ratio for found in comparisons if (ratio := found.ratio(heuristic, over)) is not None]
    if not ratios:
        return None
    cells = np.array([len(found.kinds) for found in comparisons], np.float64)
    logs = np.array([np.log(ratio.geometric.value) for ratio in ratios])
    drawn = np.array([found.log_ratios[f"{heuristic}/{over}"] for found in comparisons])
    share = cells / cells.sum()
    samples = min(found.samples for found in comparisons)
    return interval(float(np.exp(share @ logs)), np.exp(share @ drawn), samples)


class _Figures:
    """What follows from the outcomes of a trace. A figure is its values by cell, and these drawn again."""

    def __init__(self, outcomes: Sequence[Outcome], seed: list[int]) -> None:
        cells = Runs(outcomes).by(*Kind.__struct_fields__)
        self.kinds = sorted(Kind(*values) for values in cells)
        self.samples = len({outcome.sample for outcome in outcomes})
        self.values = {
            name: _matrices(rows, (len(self.kinds), self.samples))
            for name, rows in Runs(outcomes).by("heuristic").items()
        }
        again = weights(self.samples, seed)
        self._again = {
            name: {what: matrix @ again for what, matrix in by.items()} for name, by in self.values.items()
        }

    def sooner(self, one: str, other: str) -> tuple[Matrix, Matrix]:
        """How many times sooner one is: mean turnaround of the other / its own."""
        return self._divided(other, "turnaround", one, "turnaround")

    def _divided(self, upper: str, of_upper: str, lower: str, of_lower: str) -> tuple[Matrix, Matrix]:
        return (
            self._mean(upper, of_upper) / self._mean(lower, of_lower),
            self._again[upper][of_upper] / self._again[lower][of_lower],
        )

    def _mean(self, name: str, what: str) -> Matrix:
        means: Matrix = self.values[name][what].mean(axis=1)
        return means

    def ratio(self, one: str, other: str) -> Ratio:
        ratios, drawn = self.sooner(one, other)
        worst = int(ratios.argmin())
        means = np.array([kind.mean for kind in self.kinds])
        return Ratio(
            heuristic=one,
            over=other,
            geometric=self._geometric(ratios, drawn),
            arithmetic=interval(float(ratios.mean()), drawn.mean(axis=0), self.samples),
            by_mean={
                int(mean): self._geometric(ratios[means == mean], drawn[means == mean])
                for mean in np.unique(means)
            },
            worst=interval(float(ratios[worst]), drawn[worst], self.samples),
            worst_kind=self.kinds[worst],
            slower=int((ratios < CLEARLY_SLOWER).sum()),
        )

    def profile(self, name: str) -> Profile:
        work, work_again = self._divided(name, "work", name, "held")
        small = np.array([kind.tasks * kind.mean < BIGGEST for kind in self.kinds])
        small = small if small.any() else ~small
        waits, works = (self._mean(name, what)[small].sum() for what in ("local_wait", "work"))
        waits_again, works_again = (
            self._again[name][what][small].sum(axis=0) for what in ("local_wait", "work")
        )
        decisions = self._mean(name, "decisions")
        counts = {
            what: float(self._mean(name, what).mean()) for what in ("requests", "withdrawn", "reshaped")
        }
        return Profile(
            heuristic=name,
            distance=self._geometric(*self._divided(name, "turnaround", name, "bound")),
            waste=interval(float((1 - work).mean()), (1 - work_again).mean(axis=0), self.samples),
            local_wait=interval(float(waits / works), waits_again / works_again, self.samples),
            decisions=float(decisions.mean()),
            decision_time=1e3 * float(self._mean(name, "planning").sum() / decisions.sum()),
            **counts,
        )

    def cell(self, row: int, name: str) -> Cell:
        over = {}
        for other in self.values:
            if other != name:
                ratios, drawn = self.sooner(name, other)
                over[other] = interval(float(ratios[row]), drawn[row], self.samples)
        means = {what: float(self._mean(name, what)[row]) for what in MEANS}
        return Cell(kind=self.kinds[row], heuristic=name, means=means, over=over)

    def _geometric(self, values: Matrix, drawn: Matrix) -> Interval:
        return interval(
            float(np.exp(np.log(values).mean())), np.exp(np.log(drawn).mean(axis=0)), self.samples
        )


def _matrices(rows: Runs[Outcome], shape: tuple[int, int]) -> dict[str, Matrix]:
    """By field: (cells, samples), both in their order."""
    ordered = Runs(
        sorted(rows, key=lambda row: (row.tasks, row.mean, row.heterogeneity, row.max_pending, row.sample))
    )
    return {what: ordered.values(what).reshape(shape) for what in MEANS}
