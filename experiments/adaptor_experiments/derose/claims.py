"""What De Rose et al. 2008, §4.4, says it has found, sentence by sentence, against every row of ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.bootstrap import Drawn, Interval
from adaptor_experiments.claims import (
    VERDICTS,
    Of,
    Verdict,
    at_least,
    between,
    example,
    less,
    settled,
    tally,
)
from adaptor_experiments.derose.comparison import Cell, Comparison, Kind
from adaptor_experiments.tables import texts

SP2, BLUE, CTC, LOADED = "sdsc-sp2", "sdsc-blue", "ctc-sp2-512", "ctc-sp2-512 × 0.7"
_CASES = (SP2, BLUE, CTC)
_ALIKE = 0.8
"""Two figures are alike of which neither is less than this share of the other."""
_ERROR = 0.05
"""Footnote 1: with a confidence of 95 %."""
_SOME_MORE = 1.5
"""Times as many requests."""
_PARAMETERS = ("tasks", "mean", "heterogeneity", "max_pending")

Rows = Iterator[tuple[str, Interval]]
"""What a row is, and its figure."""


class Results(msgspec.Struct, frozen=True):
    """What was run, by the paper's case."""

    cases: Mapping[str, Comparison]

    def of(self, *keys: str) -> list[Comparison]:
        return [self.cases[key] for key in keys if key in self.cases]

    def speedups(self, *keys: str, where: Callable[[Kind], bool] = lambda _: True) -> Rows:
        for found, cell in self._cells(keys, where):
            yield _named(found, cell.kind), cell.over["static"]

    def figures(
        self, *keys: str, where: Callable[[Kind], bool], figure: Callable[[dict[str, float]], float]
    ) -> Rows:
        """A figure of the means of a cell, by adaptive over that by static."""
        for found, cell in self._cells(keys, where):
            static = next(each for each in found.of("static") if each.kind == cell.kind)
            yield _named(found, cell.kind), _exactly(figure(cell.means) / figure(static.means))

    def one_over_other(self, one: str, other: str, where: Callable[[Kind], bool] = lambda _: True) -> Rows:
        """The speedup in one case over that in another, kind by kind."""
        if one in self.cases and other in self.cases:
            found = self.cases[one]
            ratios = _speedups(found) / _speedups(self.cases[other])
            for row, kind in enumerate(found.kinds):
                if where(kind):
                    yield _named(found, kind), ratios[row].interval

    def by_heterogeneity(self, *keys: str) -> Rows:
        """The speedup of a kind over that of the same kind with equal tasks."""
        for found in self.of(*keys):
            speedups = _speedups(found)
            for row, kind in enumerate(found.kinds):
                equal = msgspec.structs.replace(kind, heterogeneity=1)
                if kind != equal and equal in found.kinds:
                    yield _named(found, kind), (speedups[row] / speedups[found.kinds.index(equal)]).interval

    def workloads_over_parameters(self) -> Rows:
        """By how much mean speedups differ between workloads, over that between values of a parameter."""
        every = self.of(*_CASES)
        if len(every) < len(_CASES):
            return
        workloads = _range([_speedups(found).mean() for found in every])
        for name in _PARAMETERS:
            levels = sorted({getattr(kind, name) for kind in every[0].kinds})
            means = [
                _mean([_speedups(found)[_where(found, name, level)].mean() for found in every])
                for level in levels
            ]
            yield f"workloads against {name}", (workloads / _range(means)).interval

    def mean(self, key: str) -> Rows:
        for found in self.of(key):
            yield found.workload.title, _speedups(found).mean().interval

    def errors(self) -> Rows:
        """Half the width of the interval of a speedup, as a share of it."""
        for name, speedup in self.speedups(*_CASES):
            yield name, _exactly(relative_error(speedup))

    def widest_requests(self, *keys: str) -> Rows:
        """Processors of the first static request (Algorithm 1), as a share of the machine."""
        for found, cell in self._cells(keys, lambda _: True):
            processors = math.ceil(cell.kind.tasks / cell.kind.max_pending)
            yield _named(found, cell.kind), _exactly(min(1.0, processors / found.workload.processors))

    def _cells(self, keys: Sequence[str], where: Callable[[Kind], bool]) -> Iterator[tuple[Comparison, Cell]]:
        for found in self.of(*keys):
            yield from ((found, cell) for cell in found.of("adaptive") if where(cell.kind))


def relative_error(found: Interval) -> float:
    return max(found.bars) / found.value if found.known else math.inf


def _named(found: Comparison, kind: Kind) -> str:
    return f"{found.workload.title}, {kind}"


def _exactly(value: float) -> Interval:
    return Interval(value, value, value)


def _speedups(found: Comparison) -> Drawn:
    return found.sooner["adaptive", "static"]


def _where(found: Comparison, name: str, level: int) -> np.typing.NDArray[np.bool_]:
    return np.array([getattr(kind, name) == level for kind in found.kinds])


def _mean(drawn: Sequence[Drawn]) -> Drawn:
    return drawn[0].through(lambda *every: np.mean(every, axis=0), *drawn[1:])


def _range(drawn: Sequence[Drawn]) -> Drawn:
    """The largest over the smallest."""
    return drawn[0].through(lambda *every: np.max(every, axis=0) / np.min(every, axis=0), *drawn[1:])


def _few_long(kind: Kind) -> bool:
    return kind.mean == 10_000 and kind.tasks <= 1000


def _biggest(kind: Kind) -> bool:
    return kind.mean >= 1000 and kind.tasks >= 10_000


def _sooner(found: Interval) -> Verdict:
    return at_least(found, 1.0)


def _later(found: Interval) -> Verdict:
    return less(found, 1.0)


def _alike(found: Interval) -> Verdict:
    return between(found, _ALIKE, 1 / _ALIKE)


def _as_loaded(found: Interval) -> Verdict:
    """Whether the interval holds the paper's mean."""
    if not found.known:
        return "open"
    printed = texts("derose").numbers[f"{LOADED} speedup"].value
    return "confirms" if found.low <= printed <= found.high else "contradicts"


class Claim(msgspec.Struct, frozen=True):
    rows: Callable[[Results], Rows]
    judge: Callable[[Interval], Verdict]
    of: Of = "most"
    whole: bool = False
    """Whether it is about a mean of all kinds of grid job."""


CLAIMS: dict[str, Claim] = {
    "A": Claim(lambda results: results.speedups(*_CASES), _sooner),
    "B": Claim(Results.workloads_over_parameters, _sooner, "each", whole=True),
    "C": Claim(lambda results: results.speedups(SP2), _sooner),
    "D": Claim(lambda results: results.by_heterogeneity(SP2, CTC), _alike),
    "E": Claim(lambda results: results.one_over_other(BLUE, SP2), _alike),
    "F": Claim(lambda results: results.speedups(SP2, BLUE, where=_few_long), _later),
    "G": Claim(
        lambda results: results.figures(SP2, BLUE, where=_few_long, figure=lambda mean: mean["requests"]),
        lambda found: at_least(found, _SOME_MORE),
    ),
    "H": Claim(lambda results: results.speedups(SP2, BLUE, where=_biggest), _alike),
    "I": Claim(
        lambda results: results.figures(
            SP2, BLUE, where=_biggest, figure=lambda mean: mean["held"] / mean["requests"]
        ),
        _alike,
    ),
    "J": Claim(lambda results: results.speedups(CTC), _sooner, "each"),
    "K": Claim(lambda results: results.one_over_other(CTC, SP2), _sooner),
    "L": Claim(lambda results: results.widest_requests(CTC), _sooner, "each"),
    "M": Claim(lambda results: results.one_over_other(SP2, CTC, where=_few_long), _later),
    "N": Claim(lambda results: results.mean(LOADED), _as_loaded, "each", whole=True),
    "O": Claim(Results.errors, lambda found: less(found, _ERROR), "each"),
}
"""By the key of a sentence, whose words are in `page.yaml`."""


def judged(cases: Mapping[str, Comparison], whole: bool) -> tuple[Exhibit, dict[str, Verdict]]:
    """A line for each sentence, and what our results say of those on which they say something.

    Args:
        cases: by the paper's case, such as `LOADED`.
        whole: whether all kinds of grid job were run.
    """
    page = texts("derose")
    lines, verdicts = [], {}
    for row in page.tables["claims"].rows:
        claim = CLAIMS[row[0]]
        rows = list(claim.rows(Results(cases))) if whole or not claim.whole else []
        found = tally(rows, lambda named, claim=claim: claim.judge(named[1]))  # type: ignore[misc]
        shown = example(found)
        counts = [str(len(found[verdict])) for verdict in VERDICTS]
        if shown is None:
            lines.append([*row, claim.of, *counts, "-", "not in this run"])
            continue
        verdicts[row[0]] = settled(found, claim.of)
        lines.append([*row, claim.of, *counts, verdicts[row[0]], f"{shown[0]}: {shown[1]}"])
    return page.exhibit("claims", lines), verdicts
