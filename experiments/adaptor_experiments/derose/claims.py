"""Findings of De Rose et al. 2008, §4.4, sentence by sentence, compared with every row of ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from adaptor_experiments.bootstrap import Drawn, Interval, Matrix
from adaptor_experiments.claims import VERDICTS, Bounds, Of, Verdict, example, settled, tally
from adaptor_experiments.derose.comparison import Cell, Comparison, Kind
from adaptor_experiments.figures.exhibits import Exhibit
from adaptor_experiments.tables import texts

SP2, BLUE, CTC, LOADED = "sdsc-sp2", "sdsc-blue", "ctc-sp2-512", "ctc-sp2-512 × 0.7"
Cases = Mapping[str, Comparison]  # what was run, by these
Rows = Iterator[tuple[str, Interval]]  # what a row is, and its figure
_ALIKE = 0.8  # two figures are alike of which neither is less than this share of the other
_SOME_MORE = 1.5  # times as many requests
_ERROR = 0.05  # footnote 1: with a confidence of 95 %


def _of_cells(
    *keys: str, where: Callable[[Kind], bool] = lambda _: True, figure: Callable[[Comparison, Cell], Interval]
) -> Callable[[Cases], Rows]:
    """A figure of each cell of adaptive."""

    def rows(cases: Cases) -> Rows:
        for found in (cases[key] for key in keys if key in cases):
            for cell in filter(lambda cell: where(cell.kind), found.of("adaptive")):
                yield f"{found.workload.title}, {cell.kind}", figure(found, cell)

    return rows


def _of_speedups(*keys: str, where: Callable[[Kind], bool] = lambda _: True) -> Callable[[Cases], Rows]:
    return _of_cells(*keys, where=where, figure=lambda _, cell: cell.over["static"])


def _one_over_other(
    one: str,
    other: str,
    where: Callable[[Kind], bool] = lambda _: True,
    as_kind: Callable[[Kind], Kind] = lambda kind: kind,
) -> Callable[[Cases], Rows]:
    """The speedup of a kind in one case over that of a kind in another."""

    def rows(cases: Cases) -> Rows:
        if one not in cases or other not in cases:
            return
        kinds = cases[other].kinds
        for row, kind in enumerate(cases[one].kinds):
            if where(kind) and as_kind(kind) in kinds:
                ratio = _speedups(cases[one])[row] / _speedups(cases[other])[kinds.index(as_kind(kind))]
                yield f"{cases[one].workload.title}, {kind}", ratio.interval

    return rows


def _over_equal_tasks(cases: Cases) -> Rows:
    for key in (SP2, CTC):
        yield from _one_over_other(
            key,
            key,
            lambda kind: kind.heterogeneity > 1,
            lambda kind: msgspec.structs.replace(kind, heterogeneity=1),
        )(cases)


def _workloads_over_parameters(cases: Cases) -> Rows:
    """By how much mean speedups differ between workloads, over that between the values of a parameter."""
    every = [cases[key] for key in (SP2, BLUE, CTC) if key in cases]
    if len(every) < 3:
        return
    workloads = _range([_speedups(found).mean() for found in every])
    for name in Kind.__struct_fields__:
        values = np.array([getattr(kind, name) for kind in every[0].kinds])
        means = [[_speedups(found)[values == value].mean() for found in every] for value in np.unique(values)]
        of_values = _range([_together(lambda *some: np.mean(some, axis=0), some) for some in means])
        yield f"workloads against {name}", (workloads / of_values).interval


def _mean_when_loaded(cases: Cases) -> Rows:
    if LOADED in cases:
        yield cases[LOADED].workload.title, _speedups(cases[LOADED]).mean().interval


def _speedups(found: Comparison) -> Drawn:
    return found.sooner["adaptive", "static"]


def _together(function: Callable[..., Matrix], drawn: Sequence[Drawn]) -> Drawn:
    return drawn[0].through(function, *drawn[1:])


def _range(drawn: Sequence[Drawn]) -> Drawn:
    """The largest over the smallest."""
    return _together(lambda *some: np.max(some, axis=0) / np.min(some, axis=0), drawn)


def _over_static(figure: Callable[[dict[str, float]], float]) -> Callable[[Comparison, Cell], Interval]:
    """A figure of the means of a cell, over that by static."""

    def over(found: Comparison, cell: Cell) -> Interval:
        static = next(each for each in found.of("static") if each.kind == cell.kind)
        return Interval.exactly(figure(cell.means) / figure(static.means))

    return over


def _first_request(found: Comparison, cell: Cell) -> Interval:
    """Processors of the first static request (Algorithm 1), as a share of the machine."""
    return Interval.exactly(
        min(1.0, math.ceil(cell.kind.tasks / cell.kind.max_pending) / found.workload.processors)
    )


def _own_error(_: Comparison, cell: Cell) -> Interval:
    return Interval.exactly(cell.over["static"].relative_error)


def few_long(kind: Kind) -> bool:
    return kind.mean == 10_000 and kind.tasks <= 1000


def biggest(kind: Kind) -> bool:
    return kind.mean >= 1000 and kind.tasks >= 10_000


def _holds_the_papers(found: Interval) -> Verdict:
    """Whether the interval holds the paper's mean."""
    if not found.known:
        return "open"
    return "confirms" if found.holds(texts("derose").numbers[f"{LOADED} speedup"].value) else "contradicts"


_sooner, _later, _alike = Bounds(low=1.0).judge, Bounds(high=1.0).judge, Bounds(_ALIKE, 1 / _ALIKE).judge


class Claim(msgspec.Struct, frozen=True):
    rows: Callable[[Cases], Rows]
    judge: Callable[[Interval], Verdict]
    of: Of = "most"
    whole: bool = False
    """Whether it is about a mean of all kinds of grid job."""


CLAIMS: dict[str, Claim] = {
    "A": Claim(_of_speedups(SP2, BLUE, CTC), _sooner),
    "B": Claim(_workloads_over_parameters, _sooner, "each", whole=True),
    "C": Claim(_of_speedups(SP2), _sooner),
    "D": Claim(_over_equal_tasks, _alike),
    "E": Claim(_one_over_other(BLUE, SP2), _alike),
    "F": Claim(_of_speedups(SP2, BLUE, where=few_long), _later),
    "G": Claim(
        _of_cells(SP2, BLUE, where=few_long, figure=_over_static(lambda mean: mean["requests"])),
        Bounds(low=_SOME_MORE).judge,
    ),
    "H": Claim(_of_speedups(SP2, BLUE, where=biggest), _alike),
    "I": Claim(
        _of_cells(
            SP2, BLUE, where=biggest, figure=_over_static(lambda mean: mean["held"] / mean["requests"])
        ),
        _alike,
    ),
    "J": Claim(_of_speedups(CTC), _sooner, "each"),
    "K": Claim(_one_over_other(CTC, SP2), _sooner),
    "L": Claim(_of_cells(CTC, figure=_first_request), _sooner, "each"),
    "M": Claim(_one_over_other(SP2, CTC, few_long), _later),
    "N": Claim(_mean_when_loaded, _holds_the_papers, "each", whole=True),
    "O": Claim(_of_cells(SP2, BLUE, CTC, figure=_own_error), Bounds(high=_ERROR).judge, "each"),
}
"""By the key of a sentence, whose words are in `page.yaml`."""


def judged(cases: Cases, whole: bool) -> tuple[Exhibit, dict[str, Verdict]]:
    """A line for each sentence, and what our results say of those on which they say something.

    Args:
        whole: whether all kinds of grid job were run.
    """
    page = texts("derose")
    lines, verdicts = [], {}
    for row in page.tables["claims"].rows:
        claim = CLAIMS[row[0]]
        rows = claim.rows(cases) if whole or not claim.whole else ()
        found = tally(rows, lambda named, claim=claim: claim.judge(named[1]))  # type: ignore[misc]
        shown, told = example(found), ["-", "not in this run"]
        if shown is not None:
            verdicts[row[0]] = settled(found, claim.of)
            told = [verdicts[row[0]], f"{shown[0]}: {shown[1]}"]
        lines.append([*row, claim.of, *(str(len(found[verdict])) for verdict in VERDICTS), *told])
    return page.exhibit("claims", lines), verdicts
