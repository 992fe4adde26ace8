"""Drawing without a window: an empty sheet, and a figure of plots side by side, as SVG and PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from adaptor_simulation.files import naming

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDTH = 10.5  # inches: that of the page, on which a figure is shown in its own size
_HEIGHT = 4.0
_IN_A_ROW = 2
_LEGEND = 120  # characters of a line of a legend
_SIGN = 10  # characters that the sign of a label and the gap behind it take


_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_FINE_TICKS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.7, 2)


class Drawing(msgspec.Struct, frozen=True):
    caption: str
    svg: Path


def sheet(width: float, height: float) -> Figure:
    """An empty figure; sizes in inches."""
    # Without pyplot nothing is kept for a window that is never opened.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawn)
    return drawn


class Panels:
    """Plots on a sheet as wide as a page, two in a row: more would make their text too small."""

    def __init__(self, plots: int, *, sharey: bool = False) -> None:
        """`sharey`: one scale for all plots."""
        columns, rows = min(plots, _IN_A_ROW), math.ceil(plots / _IN_A_ROW)
        self.sheet = sheet(_WIDTH, 1 + _HEIGHT * rows)
        places = self.sheet.subplots(rows, columns, squeeze=False, sharey=sharey).ravel().tolist()
        for unused in places[plots:]:
            unused.set_axis_off()
        self.plots: list[Axes] = places[:plots]
        self.first = self.plots[0]
        self.left = self.plots[::_IN_A_ROW]
        """The plots at the left edge."""

    def save(self, path: Path, caption: str, *, legend: bool = False) -> Drawing:
        """Write `path` (SVG) and the PNG next to it.

        Args:
            legend: put one for all plots below them.

        Raises:
            ReplayError: it cannot be written.
        """
        if legend:
            below(self.sheet, *common_legend(self.plots))
        self.sheet.suptitle(caption, size=13)
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.sheet.savefig(path)
            self.sheet.savefig(path.with_suffix(".png"), dpi=120)
        return Drawing(caption, path)


def common_legend(plots: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """Entries of the legends of all plots, each once."""
    found: dict[str, Any] = {}
    for axes in plots:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def below(drawn: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """A legend below the plots."""
    longest = max(map(len, labels), default=0) + _SIGN
    columns = max(1, min(len(labels), _LEGEND // longest))
    drawn.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def ratio_scale(axes: Axes) -> None:
    """A logarithmic scale of ratios, whose marks are plain numbers. Call it when all is drawn."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = _FINE_TICKS if high < 3 * low else _TICKS
    axes.set_yticks([tick for tick in ticks if low < tick < high])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
