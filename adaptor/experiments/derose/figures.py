"""The figures of De Rose et al. 2008, §4.4, drawn from our results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from adaptor.experiments.derose.design import MEANS, TASKS
from adaptor.experiments.derose.summary import Cell, TraceSummary
from adaptor.figures.canvas import Drawing, sheet, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_COLOURS = dict(zip(TASKS, ("#0072b2", "#d55e00", "#009e73", "#7a5195"), strict=True))
"""Of the number of tasks; told apart by those who see red and green alike."""
_MARKERS = dict(zip(MEANS, "o^s", strict=True))
_LINES = {1: "-", 2: (0, (5, 2)), 4: (0, (1, 1.5))}
_HETEROGENEITY = {1: "homogeneous", 2: "heterogeneity 2x", 4: "heterogeneity 4x"}
_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_FINE_TICKS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 1.7, 2)


class Panel(msgspec.Struct, frozen=True):
    """One plot: speedup over max_pending_requests, a line for each kind of grid job."""

    title: str
    trace: str
    wanted: Callable[[Cell], bool]


class Figure(msgspec.Struct, frozen=True):
    name: str
    caption: str
    panels: tuple[Panel, ...]


def _of(heterogeneity: int) -> Callable[[Cell], bool]:
    return lambda cell: cell.heterogeneity == heterogeneity


FIGURES = (
    Figure(
        "figure-3",
        "Figure 3: speedup of adaptive over static, SDSC SP2",
        tuple(Panel(title, "sdsc-sp2", _of(kind)) for kind, title in _HETEROGENEITY.items()),
    ),
    Figure(
        "figure-4",
        "Figure 4: few tasks of long duration, SDSC SP2",
        (
            Panel(
                "100 or 1000 tasks of 10,000 s",
                "sdsc-sp2",
                lambda cell: cell.mean == 10_000 and cell.tasks <= 1000,
            ),
        ),
    ),
    Figure(
        "figure-5",
        "Figure 5: the biggest jobs, SDSC SP2",
        (
            Panel(
                "10,000 or 100,000 tasks of 1000 s or 10,000 s",
                "sdsc-sp2",
                lambda cell: cell.mean >= 1000 and cell.tasks >= 10_000,
            ),
        ),
    ),
    Figure(
        "figure-6",
        "Figure 6: speedup of adaptive over static, CTC SP2",
        (
            Panel("512 processors, as in the paper", "ctc-sp2-512", lambda _: True),
            Panel("338 processors, its batch partition", "ctc-sp2-338", lambda _: True),
        ),
    ),
)


def draw_figures(summaries: Sequence[TraceSummary], folder: Path) -> list[Drawing]:
    """Draw those for which there are cells, as PNG and SVG.

    Raises:
        ReplayError: the folder cannot be written.
    """
    cells = [cell for summary in summaries for cell in summary.cells]
    drawn = []
    for figure in FIGURES:
        panels = [(panel, [cell for cell in cells if _belongs(cell, panel)]) for panel in figure.panels]
        panels = [(panel, chosen) for panel, chosen in panels if chosen]
        if panels:
            drawn.append(_draw(figure, panels, folder))
    return drawn


def _belongs(cell: Cell, panel: Panel) -> bool:
    return cell.trace == panel.trace and panel.wanted(cell)


def _draw(figure: Figure, panels: list[tuple[Panel, list[Cell]]], folder: Path) -> Drawing:
    drawn = sheet(4.6 * len(panels) + 2.4, 4.8)
    plots = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (panel, chosen) in zip(plots, panels, strict=True):
        axes.set_yscale("log")
        _draw_lines(axes, chosen)
        _label(axes, panel.title)
    plots[0].set_ylabel("speedup: turnaround by static / by adaptive")
    shown = [cell for _, chosen in panels for cell in chosen]
    drawn.legend(handles=_legend(shown), loc="outside right center", fontsize="small", frameon=False)
    drawn.suptitle(figure.caption, size="large")
    return write(drawn, folder / f"{figure.name}.svg", figure.caption)


def _draw_lines(axes: Axes, cells: list[Cell]) -> None:
    lines: dict[tuple[int, int, int], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.tasks, cell.mean, cell.heterogeneity), []).append(cell)
    axes.axhline(1, color="black", linewidth=0.9)
    for place, ((tasks, mean, heterogeneity), points) in enumerate(sorted(lines.items())):
        values = [point.speedup for point in points]
        aside = 0.24 * ((place + 0.5) / len(lines) - 0.5)  # so that no bar hides another
        axes.errorbar(
            [point.max_pending + aside for point in points],
            [each.value for each in values],
            yerr=[[each.value - each.low for each in values], [each.high - each.value for each in values]],
            color=_COLOURS[tasks],
            marker=_MARKERS[mean],
            linestyle=_LINES[heterogeneity],
            markersize=4.5,
            linewidth=1.1,
            elinewidth=0.6,
        )


def _label(axes: Axes, title: str) -> None:
    low, high = axes.get_ylim()
    ticks = _FINE_TICKS if high < 3 * low else _TICKS
    axes.set_yticks([tick for tick in ticks if low < tick < high])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel("max_pending_requests")


def _legend(cells: Sequence[Cell]) -> list[Line2D]:
    """Colour, marker and line by themselves, as each says one thing; only what is drawn."""
    from matplotlib.lines import Line2D

    def entry(label: str, **look: Any) -> Line2D:
        return Line2D([], [], **{"color": "black", "linestyle": "none", **look}, label=label)

    tasks, means, kinds = (
        sorted({getattr(cell, name) for cell in cells}) for name in ("tasks", "mean", "heterogeneity")
    )
    return [
        *(entry(f"{count:,} tasks", color=_COLOURS[count], linestyle="-", linewidth=3) for count in tasks),
        *(entry(f"of {mean:,} s", marker=_MARKERS[mean]) for mean in means),
        *(entry(_HETEROGENEITY[kind], linestyle=_LINES[kind]) for kind in kinds),
        entry("bars: 95 % interval", marker="|", markersize=9),
        entry("below 1: static is faster"),
    ]
