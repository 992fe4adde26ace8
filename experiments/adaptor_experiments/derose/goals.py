"""What a heuristic has to reach to be worth more than the paper's, and whether it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.derose.comparison import CLEARLY_SLOWER, Comparison, Ratio

REFERENCES = ("adaptive", "static")
"""What other heuristics are measured by."""

_OVERALL = 1.7
_BY_MEAN = {100: 2.0, 1000: 1.3, 10_000: 1.2}
"""By the mean runtime in seconds."""
_ARITHMETIC = 2.1
_DISTANCES = {"sdsc-sp2": 2.2, "sdsc-blue": 2.2, "ctc-sp2-512": 1.4}
"""By trace; adaptive has 3.75, 3.90 and 2.21."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One goal on one trace."""

    trace: str
    measured: Interval
    allowed: float
    at_least: bool
    """Whether `allowed` is the least or the most."""
    note: str = ""
    share: bool = False
    """Whether it is shown in per cent."""

    @property
    def met(self) -> bool:
        value = self.measured.value
        return value >= self.allowed if self.at_least else value <= self.allowed

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

    @property
    def met(self) -> bool:
        """On each of these traces."""
        return all(each.met for each in self.verdicts)


def goals(comparisons: Sequence[Comparison], heuristic: str) -> list[Goal]:
    """Those of which these results say something."""
    found = [
        _goal(comparisons, heuristic, f"times sooner than adaptive, geometric mean ≥ {_OVERALL}", _overall),
        *(
            _goal(
                comparisons,
                heuristic,
                f"  where tasks run {mean:,} s in the mean ≥ {least}",
                _of_mean(mean, least),
            )
            for mean, least in _BY_MEAN.items()
        ),
        _goal(comparisons, heuristic, f"  arithmetic mean ≥ {_ARITHMETIC}", _arithmetic),
        *(
            _goal(comparisons, heuristic, f"worst cell against {name} ≥ {CLEARLY_SLOWER}", _worst(name))
            for name in REFERENCES
        ),
        _goal(comparisons, heuristic, "waste, at most adaptive's", _waste),
        _goal(comparisons, heuristic, "added wait of local jobs, at most adaptive's", _local_wait),
        _goal(comparisons, heuristic, "distance to the lower bound, at most the trace's goal", _distance),
    ]
    return [goal for goal in found if goal.verdicts]


_Judge = Callable[[Comparison, str], Verdict | None]


def _goal(comparisons: Sequence[Comparison], heuristic: str, text: str, judge: _Judge) -> Goal:
    verdicts = [verdict for each in comparisons if (verdict := judge(each, heuristic)) is not None]
    return Goal(heuristic=heuristic, text=text, verdicts=verdicts)


def _at_least(trace: str, measured: Interval, least: float, note: str = "") -> Verdict:
    return Verdict(trace=trace, measured=measured, allowed=least, at_least=True, note=note)


def _at_most(trace: str, measured: Interval, most: float, note: str, *, share: bool = False) -> Verdict:
    return Verdict(trace=trace, measured=measured, allowed=most, at_least=False, note=note, share=share)


def _of_ratio(judged: Callable[[str, Ratio], Verdict | None], over: str = "adaptive") -> _Judge:
    def judge(each: Comparison, heuristic: str) -> Verdict | None:
        ratio = each.ratio(heuristic, over)
        return None if ratio is None else judged(each.workload.key, ratio)

    return judge


def _of_mean(mean: int, least: float) -> _Judge:
    return _of_ratio(
        lambda trace, ratio: _at_least(trace, ratio.by_mean[mean], least) if mean in ratio.by_mean else None
    )


def _worst(over: str) -> _Judge:
    return _of_ratio(
        lambda trace, ratio: _at_least(trace, ratio.worst, CLEARLY_SLOWER, str(ratio.worst_kind)), over
    )


_overall = _of_ratio(lambda trace, ratio: _at_least(trace, ratio.geometric, _OVERALL))
_arithmetic = _of_ratio(lambda trace, ratio: _at_least(trace, ratio.arithmetic, _ARITHMETIC))


def _waste(each: Comparison, heuristic: str) -> Verdict | None:
    return _not_above_adaptive(each, heuristic, lambda name: each.profiles[name].waste, share=True)


def _local_wait(each: Comparison, heuristic: str) -> Verdict | None:
    return _not_above_adaptive(each, heuristic, lambda name: each.profiles[name].local_wait)


def _not_above_adaptive(
    each: Comparison, heuristic: str, figure: Callable[[str], Interval], *, share: bool = False
) -> Verdict | None:
    if "adaptive" not in each.profiles or heuristic == "adaptive":
        return None
    adaptive = figure("adaptive")
    theirs = f"{adaptive.value:.1%}" if share else f"{adaptive.value:.2f}"
    return _at_most(each.workload.key, figure(heuristic), adaptive.value, f"adaptive {theirs}", share=share)


def _distance(each: Comparison, heuristic: str) -> Verdict | None:
    most = _DISTANCES.get(each.workload.key)
    if most is None:
        return None
    return _at_most(each.workload.key, each.profiles[heuristic].distance, most, f"goal {most}")
