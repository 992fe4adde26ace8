"""What a paper says in words, held against the rows of a result: the verdict of each row, and of all.

The papers give no figures for "acceptable", "similar" or "worse": the bounds are ours, on the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, ParamSpec, TypeVar, get_args

from adaptor_experiments.bootstrap import Interval

Verdict = Literal["confirms", "contradicts", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Of = Literal["each", "most"]
"""Of which rows a sentence speaks."""
Row = TypeVar("Row")
P = ParamSpec("P")
_OPPOSITE: dict[Verdict, Verdict] = {"confirms": "contradicts", "contradicts": "confirms", "open": "open"}


def at_least(found: Interval, bound: float) -> Verdict:
    """Open where the interval of the figure reaches to the other side, or is not known."""
    if not found.known or found.low < bound <= found.high:
        return "open"
    return "confirms" if found.value >= bound else "contradicts"


def less(found: Interval, bound: float) -> Verdict:
    """Open as in `at_least`."""
    return _OPPOSITE[at_least(found, bound)]


def between(found: Interval, low: float, high: float) -> Verdict:
    """Whether a figure lies between two; open as in `at_least`."""
    if low <= found.value <= high:
        return "confirms" if found.low >= low and found.high <= high else "open"
    return "open" if found.low <= high and found.high >= low else "contradicts"


def above(bound: float, figure: Callable[P, Interval]) -> Callable[P, Verdict]:
    """The judge of a row whose figure has to be at least this."""

    def judge(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        return at_least(figure(*args, **kwargs), bound)

    return judge


def below(bound: float, figure: Callable[P, Interval]) -> Callable[P, Verdict]:
    """The judge of a row whose figure has to be less than this."""

    def judge(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        return less(figure(*args, **kwargs), bound)

    return judge


def tally(rows: Iterable[Row], judge: Callable[[Row], Verdict]) -> dict[Verdict, list[Row]]:
    """The rows by what each says."""
    found: dict[Verdict, list[Row]] = {verdict: [] for verdict in VERDICTS}
    for row in rows:
        found[judge(row)].append(row)
    return found


def example(found: Mapping[Verdict, Sequence[Row]]) -> Row | None:
    """A row of the rarest verdict, as it tells most; None: there is no row."""
    rarest = min(filter(None, found.values()), key=len, default=None)
    return rarest[0] if rarest else None


def settled(found: Mapping[Verdict, Sequence[Row]], of: Of) -> Verdict:
    """What all rows together say of a sentence on each, or on most of them."""
    confirm, contradict, undecided = (len(found[verdict]) for verdict in VERDICTS)
    if of == "most":
        half = (confirm + contradict + undecided) / 2
        return "confirms" if confirm > half else "contradicts" if contradict > half else "open"
    if contradict:
        return "contradicts"
    return "confirms" if confirm and not undecided else "open"
