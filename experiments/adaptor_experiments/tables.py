"""Comparison tables: runs in groups, the means of a group, and the texts and printed numbers with them.

The texts of an experiment are in the `page.yaml` of its folder, so that a sentence is no part of the code.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
import numpy as np

from adaptor_experiments.bootstrap import Interval, Matrix
from adaptor_experiments.figures.canvas import Drawing
from adaptor_experiments.figures.exhibits import Exhibit, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Row = TypeVar("Row", bound=msgspec.Struct)
Figure: TypeAlias = str | Callable[[Any], float]
"""Measure of a run: a field or property by its name, or a function of the run."""


class Mean(msgspec.Struct, frozen=True):
    """A mean with the standard deviation of the runs."""

    value: float
    deviation: float

    def shown(self, digits: int = 1, unit: str = "") -> str:
        """`23.1 ± 2.0`."""
        return f"{self.value:,.{digits}f} ± {self.deviation:,.{digits}f}{unit}"


class Runs(tuple[Row, ...]):
    """Runs of an experiment: structs of one type, of which groups and means are asked."""

    __slots__ = ()

    def where(self, **fields: object) -> Runs[Row]:
        """The runs whose fields have these values."""
        names, wanted = [*fields], [*fields.values()]
        return Runs(row for row in self if [getattr(row, name) for name in names] == wanted)

    def by(self, *fields: str) -> dict[Any, Runs[Row]]:
        """The runs by the values of these fields, groups in the order in which they come."""
        key = operator.attrgetter(*fields)
        found: dict[Any, list[Row]] = {}
        for row in self:
            found.setdefault(key(row), []).append(row)
        return {value: Runs(rows) for value, rows in found.items()}

    def values(self, figure: Figure) -> Matrix:
        of = operator.attrgetter(figure) if isinstance(figure, str) else figure
        return np.array([of(row) for row in self], np.float64)

    def mean(self, figure: Figure) -> float:
        return float(self.values(figure).mean())

    def geometric(self, figure: Figure) -> float:
        """The geometric mean; NaN: there are no runs."""
        return float(np.exp(np.log(self.values(figure)).mean())) if self else math.nan

    def spread(self, figure: Figure) -> Mean:
        values = self.values(figure)
        return Mean(float(values.mean()), float(values.std()))


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of a table; its rows, where they are texts alone."""

    title: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number or a statement that a paper prints, and what is known without a run."""

    where: str
    what: str
    paper: str
    ours: str = "-"
    reason: str = ""
    """Why ours differs."""
    shown_by: str = ""
    """A test, or a table of the page."""

    @property
    def value(self) -> float:
        """Value of `19` or `179 ± 2.9`."""
        return float(self.paper.partition(" ± ")[0])

    @property
    def deviation(self) -> float:
        return float(self.paper.partition(" ± ")[2] or 0)


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reason in full, and the test that holds it."""

    text: str
    test: str


class Texts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts of a page. A `{name}` in a text is replaced by a value of the run."""

    title: str
    setting: str
    tables: dict[str, Table]
    sentences: dict[str, str] = {}
    numbers: dict[str, Number] = {}
    reasons: dict[str, Reason] = {}
    """By `Number.reason`."""
    remarks: tuple[Reason, ...] = ()
    """On all of the page."""
    terms: dict[str, str] = {}
    """Names of what makes the whole experiment: by the fields of its settings, and by `whole`."""
    whole: dict[str, int] = {}
    """Least numbers that make the whole experiment, by the names of the values of `report`."""

    def exhibit(
        self,
        key: str,
        rows: Iterable[Sequence[str]] | None = None,
        headings: Iterable[str] = (),
        *,
        name: str | None = None,
        **values: object,
    ) -> Exhibit:
        """A table of the page.

        Args:
            rows: None: those of the texts.
            headings: those behind the headings of the texts.
            name: of its file; None: the key.
        """
        table = self.tables[key]
        return Exhibit(
            name=name or key,
            title=table.title.format(**values),
            headings=(*(heading.format(**values) for heading in table.headings), *headings),
            rows=[list(row) for row in (table.rows if rows is None else rows)],
            remarks=tuple(remark.format(**values) for remark in table.remarks),
        )

    def say(self, key: str, **values: object) -> str:
        return self.sentences[key].format(**values)

    def compared(self, ours: Mapping[str, str], agree: Collection[str] = ()) -> list[list[str]]:
        """Rows of where, what, paper, ours, reason and what shows it.

        Args:
            ours: by the key of a number, if it is measured.
            agree: keys of the numbers that agree with the paper though the texts are not the same.
        """
        rows = []
        for key, number in self.numbers.items():
            value = ours.get(key, number.ours)
            same = key in agree or value == number.paper
            reason = "agrees" if same else number.reason or "differs"
            rows.append([number.where, number.what, number.paper, value, reason, number.shown_by or "-"])
        return rows

    def explained(self, exhibit: Exhibit, reasons: Iterable[str]) -> Exhibit:
        """With a remark for each of these reasons that has one in full."""
        remarks = (
            f"{short}: {self.reasons[short].text} ({self.reasons[short].test})"
            for short in dict.fromkeys(reasons)
            if short in self.reasons
        )
        return msgspec.structs.replace(exhibit, remarks=(*exhibit.remarks, *remarks))

    def departures(
        self, settings: msgspec.Struct, whole: msgspec.Struct | None = None, **values: object
    ) -> list[str]:
        """In what a run is not the whole experiment, in words. Of a number, only less is a departure.

        Args:
            whole: the settings of the whole experiment; None: the defaults.
            values: those of `report`.
        """
        fields = [field for field in self.terms if field in settings.__struct_fields__]
        pairs: dict[str, tuple[Any, Any]] = {
            field: (getattr(settings, field), getattr(whole or type(settings)(), field)) for field in fields
        }
        pairs |= {name: (values[name], most) for name, most in self.whole.items() if name in values}
        return [
            f"{self.terms[name]}: {listed(value)} (whole: {listed(most)})"
            for name, (value, most) in pairs.items()
            if (value < most if type(most) is int else value != most)
        ]

    def report(
        self,
        conclusion: Iterable[str],
        drawings: Sequence[Drawing],
        exhibits: Sequence[Exhibit],
        *,
        settings: msgspec.Struct,
        whole: msgspec.Struct | None = None,
        remarks: bool = True,
        **values: object,
    ) -> Report:
        """The page, which begins with what is missing where the run is not the whole experiment.

        Args:
            remarks: whether those on all of the page are shown.
        """
        missing = self.departures(settings, whole, **values)
        part = [self.say("part", missing="; ".join(missing))] if missing else []
        return Report(
            title=self.title.format(**values),
            conclusion=(*part, *conclusion),
            drawings=drawings,
            setting=self.setting.format(settings=settings, **values),
            exhibits=exhibits,
            remarks=tuple(f"{remark.text} ({remark.test})" for remark in self.remarks if remarks),
        )


def listed(value: object) -> str:
    """A setting as text: `100, 1,000`."""
    if isinstance(value, tuple):
        return ", ".join(map(listed, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:,g}" if isinstance(value, float) else str(value)
    )


@cache
def texts(experiment: str) -> Texts:
    """The texts of a folder of this package, such as `bats`."""
    content = (files("adaptor_experiments") / experiment / "page.yaml").read_bytes()
    return msgspec.yaml.decode(content, type=Texts)


def with_bars(
    axes: Axes, places: Sequence[float], figures: Sequence[Interval], *, bars: bool = True, **look: Any
) -> None:
    """A line through figures, each with its 95 % interval."""
    reach = [*zip(*(figure.bars for figure in figures), strict=True)] if bars else None
    axes.errorbar(places, [figure.value for figure in figures], yerr=reach, **look)


def grouped_bars(
    axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[Mean]], width: float, **look: Any
) -> None:
    """A group of bars for each label, in each a bar for each name of the series, with any deviation."""
    for place, (name, means) in enumerate(series.items()):
        axes.bar(
            np.arange(len(groups)) + (place - (len(series) - 1) / 2) * width,
            [mean.value for mean in means],
            width,
            yerr=[mean.deviation for mean in means] if any(mean.deviation for mean in means) else None,
            label=name,
            color=f"C{place}",
            **look,
        )
    axes.set_xticks(range(len(groups)), groups)
