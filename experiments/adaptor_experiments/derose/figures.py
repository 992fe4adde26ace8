"""The figures of De Rose et al. 2008, §4.4, drawn from our results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from adaptor.figures.canvas import Drawing, below, grid, ratio_scale, write
from adaptor_experiments.derose.design import MEANS, TASKS
from adaptor_experiments.derose.summary import Cell, TraceSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_COLOURS = dict(zip(TASKS, ("#0072b2", "#d55e00", "#009e73", "#7a5195"), strict=True))
"""Of the number of tasks; told apart by those who see red and green alike."""
_MARKERS = dict(zip(MEANS, "o^s", strict=True))
_LINES = {1: "-", 2: (0, (5, 2)), 4: (0, (1, 1.5))}
_HETEROGENEITY = {1: "homogeneous", 2: "heterogeneity 2x", 4: "heterogeneity 4x"}


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
        "figure-blue",
        "As figure 3, SDSC BlueHorizon (the paper has no such figure)",
        tuple(Panel(title, "sdsc-blue", _of(kind)) for kind, title in _HETEROGENEITY.items()),
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
    drawn, plots = grid(len(panels), sharey=True)
    for axes, (panel, chosen) in zip(plots, panels, strict=True):
        _draw_lines(axes, chosen)
        _label(axes, panel.title)
    for axes in plots[::2]:
        axes.set_ylabel("speedup: static / adaptive")
    handles = _legend([cell for _, chosen in panels for cell in chosen])
    below(drawn, handles, [str(handle.get_label()) for handle in handles])
    drawn.suptitle(figure.caption, size=13)
    return write(drawn, folder / f"{figure.name}.svg", figure.caption)


def _draw_lines(axes: Axes, cells: list[Cell]) -> None:
    lines: dict[tuple[int, int, int], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.tasks, cell.mean, cell.heterogeneity), []).append(cell)
    axes.axhline(1, color="black", linewidth=0.9)
    for place, ((tasks, mean, heterogeneity), points) in enumerate(sorted(lines.items())):
        values = [point.speedup for point in points]
        bars = [value.bars for value in values]
        aside = 0.24 * ((place + 0.5) / len(lines) - 0.5)  # so that no bar hides another
        axes.errorbar(
            [point.max_pending + aside for point in points],
            [each.value for each in values],
            yerr=[[low for low, _ in bars], [high for _, high in bars]],
            color=_COLOURS[tasks],
            marker=_MARKERS[mean],
            linestyle=_LINES[heterogeneity],
            markersize=4.5,
            linewidth=1.1,
            elinewidth=0.6,
        )


def _label(axes: Axes, title: str) -> None:
    ratio_scale(axes)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel("max_pending_requests")
    axes.locator_params(axis="x", integer=True)


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
