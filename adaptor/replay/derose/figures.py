"""The figures of De Rose et al. 2008, §4.4, drawn from our results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from adaptor.replay.derose.design import MEANS, TASKS
from adaptor.replay.derose.summary import Cell, TraceSummary
from adaptor.replay.errors import ReplayError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_MARKERS = "osD^vP*X<>hd"
_LINES = {1: "-", 2: "--", 4: ":"}
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


def draw_figures(summaries: Sequence[TraceSummary], folder: Path) -> list[tuple[Figure, Path]]:
    """Draw those for which there are cells, as PNG and SVG; returns the SVGs.

    Raises:
        ReplayError: the folder cannot be written.
    """
    cells = [cell for summary in summaries for cell in summary.cells]
    drawn = []
    for figure in FIGURES:
        panels = [(panel, [cell for cell in cells if _belongs(cell, panel)]) for panel in figure.panels]
        panels = [(panel, chosen) for panel, chosen in panels if chosen]
        if panels:
            drawn.append((figure, _draw(figure, panels, folder)))
    return drawn


def _belongs(cell: Cell, panel: Panel) -> bool:
    return cell.trace == panel.trace and panel.wanted(cell)


def _draw(figure: Figure, panels: list[tuple[Panel, list[Cell]]], folder: Path) -> Path:
    # Without pyplot nothing is kept for a window that nobody opens.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(5.2 * len(panels) + 1.6, 4.6), layout="constrained")
    FigureCanvasAgg(canvas)
    plots = canvas.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (panel, chosen) in zip(plots, panels, strict=True):
        _draw_panel(axes, panel.title, chosen)
    plots[0].set_ylabel("speedup (static / adaptive)")
    handles: dict[str, Artist] = {}
    for axes in plots:
        drawn, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, drawn, strict=True))
    canvas.legend(list(handles.values()), list(handles), loc="outside right center", fontsize="small")
    canvas.suptitle(f"{figure.caption}\nsolid: homogeneous, dashed: 2x, dotted: 4x; bars: 95 %", size=10)
    path = folder / f"{figure.name}.svg"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path)
        canvas.savefig(path.with_suffix(".png"), dpi=120)
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror or error}") from error
    return path


def _draw_panel(axes: Axes, title: str, cells: list[Cell]) -> None:
    lines: dict[tuple[int, int, int], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.tasks, cell.mean, cell.heterogeneity), []).append(cell)
    for (tasks, mean, heterogeneity), points in sorted(lines.items()):
        place = TASKS.index(tasks) * len(MEANS) + MEANS.index(mean)
        values = [point.speedup for point in points]
        axes.errorbar(
            [point.max_pending for point in points],
            [each.value for each in values],
            yerr=[[each.value - each.low for each in values], [each.high - each.value for each in values]],
            color=f"C{place % 10}",
            marker=_MARKERS[place],
            linestyle=_LINES[heterogeneity],
            markersize=4,
            linewidth=1,
            elinewidth=0.4,
            label=f"{tasks:,} × {mean:,} s",
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel("max_pending_requests")
