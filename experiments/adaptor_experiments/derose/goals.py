"""Goals that a heuristic has to reach to be worth more than the paper's, and whether it does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.derose.comparison import CLEARLY_SLOWER, Comparison

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
