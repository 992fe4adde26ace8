"""What a heuristic has to reach to be worth more than the paper's, and whether it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.derose.comparison import CLEARLY_SLOWER, Comparison, Profile, Ratio

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
        return all(verdict.met for verdict in self.verdicts)


def goals(comparisons: Sequence[Comparison], heuristic: str) -> list[Goal]:
    """Those of which these results say something."""
    found = [
        Goal(
            heuristic=heuristic,
            text=text,
            verdicts=[made for on_trace in comparisons if (made := judge(on_trace, heuristic)) is not None],
        )
        for text, judge in _JUDGES.items()
    ]
    return [goal for goal in found if goal.verdicts]


_Judge = Callable[[Comparison, str], Verdict | None]


def _sooner(figure: Callable[[Ratio], Interval | None], least: float) -> _Judge:
    def judge(found: Comparison, heuristic: str) -> Verdict | None:
        ratio = found.ratio(heuristic, "adaptive")
        measured = figure(ratio) if ratio else None
        return (
            None
            if measured is None
            else Verdict(trace=found.workload.key, measured=measured, allowed=least, at_least=True)
        )

    return judge


def _of_mean(mean: int) -> Callable[[Ratio], Interval | None]:
    return lambda ratio: ratio.by_mean.get(mean)


def _worst(over: str) -> _Judge:
    def judge(found: Comparison, heuristic: str) -> Verdict | None:
        ratio = found.ratio(heuristic, over)
        return (
            None
            if ratio is None
            else Verdict(
                trace=found.workload.key,
                measured=ratio.worst,
                allowed=CLEARLY_SLOWER,
                at_least=True,
                note=str(ratio.worst_kind),
            )
        )

    return judge


def _not_above_adaptive(figure: Callable[[Profile], Interval], *, share: bool = False) -> _Judge:
    def judge(found: Comparison, heuristic: str) -> Verdict | None:
        adaptive = found.profiles.get("adaptive")
        return (
            None
            if adaptive is None
            else Verdict(
                trace=found.workload.key,
                measured=figure(found.profiles[heuristic]),
                allowed=figure(adaptive).value,
                at_least=False,
                note=f"adaptive {figure(adaptive).value:{'.1%' if share else '.2f'}}",
                share=share,
            )
        )

    return judge


def _distance(found: Comparison, heuristic: str) -> Verdict | None:
    most = _DISTANCES.get(found.workload.key)
    if most is None:
        return None
    return Verdict(
        trace=found.workload.key,
        measured=found.profiles[heuristic].distance,
        allowed=most,
        at_least=False,
        note=f"goal {most}",
    )


_JUDGES: dict[str, _Judge] = {
    f"times sooner than adaptive, geometric mean ≥ {_OVERALL}": _sooner(
        lambda ratio: ratio.geometric, _OVERALL
    ),
    **{
        f"  where tasks run {mean:,} s in the mean ≥ {least}": _sooner(_of_mean(mean), least)
        for mean, least in _BY_MEAN.items()
    },
    f"  arithmetic mean ≥ {_ARITHMETIC}": _sooner(lambda ratio: ratio.arithmetic, _ARITHMETIC),
    **{f"worst cell against {name} ≥ {CLEARLY_SLOWER}": _worst(name) for name in REFERENCES},
    "waste, at most adaptive's": _not_above_adaptive(lambda profile: profile.waste, share=True),
    "added wait of local jobs, at most adaptive's": _not_above_adaptive(lambda profile: profile.local_wait),
    "distance to the lower bound, at most the trace's goal": _distance,
}
