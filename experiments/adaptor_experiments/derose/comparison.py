"""Comparison of heuristics on one trace, cell by cell and on the whole; the goals of a heuristic."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor_experiments.bootstrap import Drawn, Interval, drawn_means, weights
from adaptor_experiments.derose.design import Workload
from adaptor_experiments.derose.sample import Outcome
from adaptor_experiments.tables import Runs
from adaptor_simulation.slowdown import Slowdowns

CLEARLY_SLOWER = 0.97  # cells with a smaller ratio are counted

BIGGEST = 10**8
"""Seconds of work from which on a bag is left out of `Profile.local_wait`: the 10,000 × 10,000 s of six of 54
cells are four fifths of all work."""

MEANS = (
    *("turnaround", "bound", "requests", "withdrawn", "reshaped", "held", "work", "local_wait"),
    *("decisions", "planning"),
    *Slowdowns.__struct_fields__,
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
    """Factor by which one heuristic finishes a bag sooner than another: of the ratios of the cells."""

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
    """Figures of a heuristic on the whole."""

    heuristic: str
    distance: Interval
    """Geometric mean of mean turnaround / mean lower bound."""
    waste: Interval
    """Share of the requests' time in which no task ran that finished there; mean of the cells."""
    local_wait: Interval
    """Hours that the local jobs wait longer in all for each processor-hour used, by all cells together but
    those of the biggest bags. In a single cell of small bags it is mostly chance."""
    slowdown: Interval
    """Geometric mean over the cells of the local jobs' mean bounded slowdown over that without the bag."""
    slowdown_per_processor: Interval
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
    sooner: dict[tuple[str, str], Drawn]
    """By two heuristics: how many times sooner the first is in each of the kinds."""

    def ratio(self, heuristic: str, over: str) -> Ratio | None:
        """Ratio of two heuristics; None: one of them was not run, or the two are one."""
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
    names = list(figures.means)
    return Comparison(
        workload=workload,
        samples=len({outcome.sample for outcome in outcomes}),
        kinds=figures.kinds,
        profiles={name: figures.profile(name) for name in names},
        ratios=[figures.ratio(*pair) for pair in figures.sooner],
        cells=[figures.cell(row, name) for row in range(len(figures.kinds)) for name in names],
        sooner=figures.sooner,
    )


def on_all(comparisons: Sequence[Comparison], heuristic: str, over: str) -> Interval | None:
    """The geometric mean over the cells of all traces; None: one of the two was not run."""
    ratios = [found.sooner[heuristic, over] for found in comparisons if (heuristic, over) in found.sooner]
    if not ratios:
        return None
    first, *others = ratios
    return first.through(lambda *every: np.concatenate(every), *others).geometric().interval


class _Figures:
    """Figures that follow from the outcomes of a trace."""

    def __init__(self, outcomes: Sequence[Outcome], seed: list[int]) -> None:
        every = Runs(
            sorted(
                outcomes,
                key=lambda row: (row.tasks, row.mean, row.heterogeneity, row.max_pending, row.sample),
            )
        )
        self.kinds = [Kind(*values) for values in every.by(*Kind.__struct_fields__)]
        shape = len(self.kinds), len(every.by("sample"))
        again = weights(shape[1], seed)
        self.means = {
            name: {what: drawn_means(rows.values(what).reshape(shape), again) for what in MEANS}
            for name, rows in every.by("heuristic").items()
        }
        turnarounds = {name: means["turnaround"] for name, means in self.means.items()}
        self.sooner = {
            (one, other): turnarounds[other] / turnarounds[one]
            for one, other in itertools.permutations(turnarounds, 2)
        }

    def ratio(self, one: str, other: str) -> Ratio:
        sooner = self.sooner[one, other]
        worst = int(sooner.value.argmin())
        means = np.array([kind.mean for kind in self.kinds])
        return Ratio(
            heuristic=one,
            over=other,
            geometric=sooner.geometric().interval,
            arithmetic=sooner.mean().interval,
            by_mean={int(mean): sooner[means == mean].geometric().interval for mean in np.unique(means)},
            worst=sooner[worst].interval,
            worst_kind=self.kinds[worst],
            slower=int((sooner.value < CLEARLY_SLOWER).sum()),
        )

    def profile(self, name: str) -> Profile:
        means = self.means[name]
        small = np.array([kind.tasks * kind.mean < BIGGEST for kind in self.kinds])
        small = small if small.any() else ~small
        decisions = means["decisions"].value
        waste = (means["work"] / means["held"]).through(lambda used: 1 - used)
        counts = {what: float(means[what].value.mean()) for what in ("requests", "withdrawn", "reshaped")}
        return Profile(
            heuristic=name,
            distance=(means["turnaround"] / means["bound"]).geometric().interval,
            waste=waste.mean().interval,
            local_wait=(means["local_wait"][small].sum() / means["work"][small].sum()).interval,
            slowdown=(means["slowdown"] / means["slowdown_without"]).geometric().interval,
            slowdown_per_processor=(
                (means["slowdown_per_processor"] / means["slowdown_per_processor_without"])
                .geometric()
                .interval
            ),
            decisions=float(decisions.mean()),
            decision_time=1e3 * float(means["planning"].value.sum() / decisions.sum()),
            **counts,
        )

    def cell(self, row: int, name: str) -> Cell:
        return Cell(
            kind=self.kinds[row],
            heuristic=name,
            means={what: float(drawn.value[row]) for what, drawn in self.means[name].items()},
            over={other: self.sooner[name, other][row].interval for other in self.means if other != name},
        )


REFERENCES = ("adaptive", "static")  # what other heuristics are measured by

_DISTANCES = {"sdsc-sp2": 2.2, "sdsc-blue": 2.2, "ctc-sp2-512": 1.4}
"""By trace; adaptive has 3.75, 3.90 and 2.21."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One goal on one trace."""

    trace: str
    measured: Interval
    allowed: float
    met: bool
    note: str = ""
    share: bool = False
    """Whether it is shown in per cent."""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        figure = self.measured.percent if self.share else str(self.measured)
        return f"{figure}{note}: {'met' if self.met else 'missed'}"


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table."""

    heuristic: str
    text: str
    verdicts: list[Verdict]
    """By trace on which the goal says something and what it needs was run."""
    met: bool
    """On each of these traces."""


class _Least(msgspec.Struct, frozen=True):
    """Least factor by which it finishes sooner: a figure of a `Ratio`."""

    text: str
    figure: str
    least: float
    over: str = "adaptive"
    mean: int = 0
    """Mean of the runtimes, for the figure `by_mean`."""

    def judge(self, found: Comparison, heuristic: str) -> Verdict | None:
        ratio = found.ratio(heuristic, self.over)
        if ratio is None:
            return None
        figure = getattr(ratio, self.figure)
        measured: Interval | None = figure.get(self.mean) if self.mean else figure
        if measured is None:
            return None
        note = str(ratio.worst_kind) if self.figure == "worst" else ""
        trace = found.workload.key
        met = measured.value >= self.least
        return Verdict(trace=trace, measured=measured, allowed=self.least, met=met, note=note)


class _AtMost(msgspec.Struct, frozen=True):
    """A figure of a `Profile`, at most adaptive's, or the distance to the bound, at most the trace's goal."""

    text: str
    figure: str

    def judge(self, found: Comparison, heuristic: str) -> Verdict | None:
        trace, share = found.workload.key, self.figure == "waste"
        if self.figure == "distance":
            most = _DISTANCES.get(trace)
            note = f"goal {most}"
        else:
            adaptive = found.profiles.get("adaptive")
            most = getattr(adaptive, self.figure).value if adaptive else None
            note = f"adaptive {most:{'.1%' if share else '.2f'}}" if adaptive else ""
        if most is None:
            return None
        measured: Interval = getattr(found.profiles[heuristic], self.figure)
        met = measured.value <= most
        return Verdict(trace=trace, measured=measured, allowed=most, met=met, note=note, share=share)


_GOALS: tuple[_Least | _AtMost, ...] = (
    _Least("times sooner than adaptive, geometric mean ≥ 1.7", "geometric", 1.7),
    *(
        _Least(f"  where tasks run {mean:,} s in the mean ≥ {least}", "by_mean", least, mean=mean)
        for mean, least in ((100, 2.0), (1000, 1.3), (10_000, 1.2))
    ),
    _Least("  arithmetic mean ≥ 2.1", "arithmetic", 2.1),
    *(
        _Least(f"worst cell against {name} ≥ {CLEARLY_SLOWER}", "worst", CLEARLY_SLOWER, over=name)
        for name in REFERENCES
    ),
    _AtMost("waste, at most adaptive's", "waste"),
    _AtMost("added wait of local jobs, at most adaptive's", "local_wait"),
    _AtMost("distance to the lower bound, at most the trace's goal", "distance"),
)


def goals(comparisons: Sequence[Comparison], heuristic: str) -> list[Goal]:
    """Goals of which these results say something."""
    found = []
    for goal in _GOALS:
        judged = [goal.judge(on_trace, heuristic) for on_trace in comparisons]
        verdicts = [verdict for verdict in judged if verdict is not None]
        if verdicts:
            met = all(verdict.met for verdict in verdicts)
            found.append(Goal(heuristic=heuristic, text=goal.text, verdicts=verdicts, met=met))
    return found
