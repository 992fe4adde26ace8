"""How heuristics compare on one trace, cell by cell and on the whole, with what chance leaves open."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from adaptor_experiments.bootstrap import Interval, Matrix, interval, weights
from adaptor_experiments.derose.design import Workload
from adaptor_experiments.derose.sample import Outcome

CLEARLY_SLOWER = 0.97
"""Cells with a smaller ratio are counted."""

BIGGEST = 10**8
"""Seconds of work from which on a bag is left out of `Profile.local_wait`: the 10,000 × 10,000 s of six of 54
cells are four fifths of all work."""

_SUMMED = (
    *("turnaround", "bound", "requests", "withdrawn", "reshaped", "held", "work", "local_wait"),
    *("decisions", "planning"),
)


class Kind(msgspec.Struct, frozen=True, order=True):
    """A cell: a kind of grid job under one limit."""

    tasks: int
    mean: int
    heterogeneity: int
    max_pending: int

    def __str__(self) -> str:
        return f"{self.tasks:,} × {self.mean:,} s, {self.heterogeneity}x, limit {self.max_pending}"


class CellOf(msgspec.Struct, frozen=True, kw_only=True):
    """One cell by one heuristic: means over the submission times; seconds and processor-seconds."""

    kind: Kind
    heuristic: str
    turnaround: float
    bound: float
    requests: float
    withdrawn: float
    reshaped: float
    held: float
    work: float
    local_wait: float
    decisions: float
    planning: float
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
    cells: list[CellOf]
    log_ratios: dict[str, Matrix]
    """`a/b`: the geometric mean's logarithm in each repetition of the bootstrap."""

    def ratio(self, heuristic: str, over: str) -> Ratio | None:
        """None: one of them was not run, or the two are one."""
        return next((each for each in self.ratios if (each.heuristic, each.over) == (heuristic, over)), None)


def compare(workload: Workload, outcomes: Sequence[Outcome], seed: int) -> Comparison:
    """The outcomes of one trace, whose samples all hold the same cells.

    What the bootstrap draws again are the submission times, for all cells and heuristics together; also for
    all machines of one trace, as they share them. Other traces have draws of their own, so that figures of
    several can be put together.
    """
    kinds, names, values = _matrices(outcomes)
    samples = next(iter(values.values())).shape[1]
    again = weights(samples, [seed, zlib.crc32(workload.file.encode())])
    figures = _Figures(kinds, names, values, again)
    pairs = [(one, other) for one in names for other in names if one != other]
    return Comparison(
        workload=workload,
        samples=samples,
        kinds=kinds,
        profiles={name: figures.profile(name) for name in names},
        ratios=[figures.ratio(*pair) for pair in pairs],
        cells=[figures.cell(row, name) for row in range(len(kinds)) for name in names],
        log_ratios={f"{one}/{other}": np.log(figures.drawn(one, other)).mean(axis=0) for one, other in pairs},
    )


def on_all(comparisons: Sequence[Comparison], heuristic: str, over: str) -> Interval | None:
    """The geometric mean over the cells of all traces; None: one of the two was not run."""
    found = [ratio for each in comparisons if (ratio := each.ratio(heuristic, over)) is not None]
    if not found:
        return None
    cells = np.array([len(each.kinds) for each in comparisons], np.float64)
    logs = np.array([np.log(each.geometric.value) for each in found])
    drawn = np.array([each.log_ratios[f"{heuristic}/{over}"] for each in comparisons])
    share = cells / cells.sum()
    value = float(np.exp(share @ logs))
    return interval(value, np.exp(share @ drawn), min(each.samples for each in comparisons))


class _Figures:
    """The matrices of a trace, (cells, samples), and what follows from them."""

    def __init__(
        self, kinds: list[Kind], names: list[str], values: Mapping[tuple[str, str], Matrix], again: Matrix
    ) -> None:
        self._kinds, self._names, self._again = kinds, names, again
        self._values = values
        self._samples = again.shape[0]
        self._again_by: dict[tuple[str, str], Matrix] = {}

    def drawn(self, one: str, other: str) -> Matrix:
        """The cells' ratios in each repetition."""
        return self._again_of(other, "turnaround") / self._again_of(one, "turnaround")

    def ratio(self, one: str, other: str) -> Ratio:
        ratios = self._mean(other, "turnaround") / self._mean(one, "turnaround")
        drawn = self.drawn(one, other)
        worst = int(ratios.argmin())
        means = np.array([kind.mean for kind in self._kinds])
        return Ratio(
            heuristic=one,
            over=other,
            geometric=self._geometric(ratios, drawn),
            arithmetic=interval(float(ratios.mean()), drawn.mean(axis=0), self._samples),
            by_mean={
                int(mean): self._geometric(ratios[means == mean], drawn[means == mean])
                for mean in np.unique(means)
            },
            worst=interval(float(ratios[worst]), drawn[worst], self._samples),
            worst_kind=self._kinds[worst],
            slower=int((ratios < CLEARLY_SLOWER).sum()),
        )

    def profile(self, name: str) -> Profile:
        held, work, wait = (self._mean(name, what) for what in ("held", "work", "local_wait"))
        held_again, work_again, wait_again = (
            self._again_of(name, what) for what in ("held", "work", "local_wait")
        )
        decisions = self._mean(name, "decisions")
        small = np.array([kind.tasks * kind.mean < BIGGEST for kind in self._kinds])
        small = small if small.any() else ~small
        return Profile(
            heuristic=name,
            distance=self._geometric(
                self._mean(name, "turnaround") / self._mean(name, "bound"),
                self._again_of(name, "turnaround") / self._again_of(name, "bound"),
            ),
            waste=self._plain(1 - work / held, 1 - work_again / held_again),
            local_wait=interval(
                float(wait[small].sum() / work[small].sum()),
                wait_again[small].sum(axis=0) / work_again[small].sum(axis=0),
                self._samples,
            ),
            requests=float(self._mean(name, "requests").mean()),
            withdrawn=float(self._mean(name, "withdrawn").mean()),
            reshaped=float(self._mean(name, "reshaped").mean()),
            decisions=float(decisions.mean()),
            decision_time=1e3 * float(self._mean(name, "planning").sum() / decisions.sum()),
        )

    def cell(self, row: int, name: str) -> CellOf:
        over = {
            other: interval(
                float(self._mean(other, "turnaround")[row] / self._mean(name, "turnaround")[row]),
                self.drawn(name, other)[row],
                self._samples,
            )
            for other in self._names
            if other != name
        }
        means = {what: float(self._mean(name, what)[row]) for what in _SUMMED}
        return CellOf(kind=self._kinds[row], heuristic=name, over=over, **means)

    def _geometric(self, values: Matrix, drawn: Matrix) -> Interval:
        return interval(
            float(np.exp(np.log(values).mean())), np.exp(np.log(drawn).mean(axis=0)), self._samples
        )

    def _plain(self, values: Matrix, drawn: Matrix) -> Interval:
        return interval(float(values.mean()), drawn.mean(axis=0), self._samples)

    def _mean(self, name: str, what: str) -> Matrix:
        means: Matrix = self._values[name, what].mean(axis=1)
        return means

    def _again_of(self, name: str, what: str) -> Matrix:
        if (name, what) not in self._again_by:
            self._again_by[name, what] = self._values[name, what] @ self._again
        return self._again_by[name, what]


def _matrices(outcomes: Sequence[Outcome]) -> tuple[list[Kind], list[str], dict[tuple[str, str], Matrix]]:
    """By heuristic and field: (cells, samples)."""
    found: dict[tuple[str, Kind], dict[int, Outcome]] = defaultdict(dict)
    for each in outcomes:
        kind = Kind(each.tasks, each.mean, each.heterogeneity, each.max_pending)
        found[each.heuristic, kind][each.sample] = each
    names = list(dict.fromkeys(each.heuristic for each in outcomes))
    kinds = sorted({kind for _, kind in found})
    samples = sorted({each.sample for each in outcomes})
    values = {
        (name, what): np.array(
            [[getattr(found[name, kind][sample], what) for sample in samples] for kind in kinds], np.float64
        )
        for name in names
        for what in _SUMMED
    }
    return kinds, names, values
