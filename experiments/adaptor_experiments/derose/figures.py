"""The figures of De Rose et al. 2008, §4.4, from our results, and one of all cells that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from adaptor_experiments.derose.comparison import Cell, Comparison, Kind
from adaptor_experiments.derose.design import MEANS, TASKS
from adaptor_experiments.derose.goals import REFERENCES
from adaptor_experiments.figures.canvas import Drawing, below, grid, ratio_scale, save, write

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
    wanted: Callable[[Kind], bool]


class Figure(msgspec.Struct, frozen=True):
    name: str
    caption: str
    panels: tuple[Panel, ...]


def _by_heterogeneity(name: str, caption: str, trace: str) -> Figure:
    panels = (
        Panel(title, trace, lambda kind, wanted=wanted: kind.heterogeneity == wanted)  # type: ignore[misc]
        for wanted, title in _HETEROGENEITY.items()
    )
    return Figure(name, caption, tuple(panels))


_FEW_LONG = Panel(
    "100 or 1000 tasks of 10,000 s", "sdsc-sp2", lambda kind: kind.mean == 10_000 and kind.tasks <= 1000
)
_BIGGEST = Panel(
    "10,000 or 100,000 tasks of 1000 s or 10,000 s",
    "sdsc-sp2",
    lambda kind: kind.mean >= 1000 and kind.tasks >= 10_000,
)
_CTC = (
    Panel("512 processors, as in the paper", "ctc-sp2-512", lambda _: True),
    Panel("338 processors, its batch partition", "ctc-sp2-338", lambda _: True),
)
FIGURES = (
    _by_heterogeneity("figure-3", "Figure 3: speedup of adaptive over static, SDSC SP2", "sdsc-sp2"),
    _by_heterogeneity(
        "figure-blue", "As figure 3, SDSC BlueHorizon (the paper has no such figure)", "sdsc-blue"
    ),
    Figure("figure-4", "Figure 4: few tasks of long duration, SDSC SP2", (_FEW_LONG,)),
    Figure("figure-5", "Figure 5: the biggest jobs, SDSC SP2", (_BIGGEST,)),
    Figure("figure-6", "Figure 6: speedup of adaptive over static, CTC SP2", _CTC),
)


def draw_figures(comparisons: Sequence[Comparison], folder: Path) -> list[Drawing]:
    """Draw the paper's figures for which there are cells of adaptive and static, as PNG and SVG.

    Raises:
        ReplayError: the folder cannot be written.
    """
    cells = {found.workload.key: found.of("adaptive") for found in comparisons}
    drawn = []
    for figure in FIGURES:
        panels = [
            (panel, [cell for cell in cells.get(panel.trace, []) if panel.wanted(cell.kind)])
            for panel in figure.panels
        ]
        panels = [(panel, chosen) for panel, chosen in panels if chosen]
        if panels:
            drawn.append(_draw(figure, panels, folder))
    return drawn


def _draw(figure: Figure, panels: list[tuple[Panel, list[Cell]]], folder: Path) -> Drawing:
    drawn, plots = grid(len(panels), sharey=True)
    for axes, (panel, chosen) in zip(plots, panels, strict=True):
        _draw_lines(axes, chosen)
        ratio_scale(axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(panel.title, fontsize="medium")
        axes.set_xlabel("max_pending_requests")
        axes.locator_params(axis="x", integer=True)
    for axes in plots[::2]:
        axes.set_ylabel("speedup: static / adaptive")
    handles = _legend([cell for _, chosen in panels for cell in chosen])
    below(drawn, handles, [str(handle.get_label()) for handle in handles])
    drawn.suptitle(figure.caption, size=13)
    return write(drawn, folder / f"{figure.name}.svg", figure.caption)


def _draw_lines(axes: Axes, cells: list[Cell]) -> None:
    lines: dict[tuple[int, int, int], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.kind.tasks, cell.kind.mean, cell.kind.heterogeneity), []).append(cell)
    axes.axhline(1, color="black", linewidth=0.9)
    for place, ((tasks, mean, heterogeneity), points) in enumerate(sorted(lines.items())):
        ratios = [point.over["static"] for point in points]
        aside = 0.24 * ((place + 0.5) / len(lines) - 0.5)  # so that no bar hides another
        axes.errorbar(
            [point.kind.max_pending + aside for point in points],
            [ratio.value for ratio in ratios],
            yerr=[*zip(*(ratio.bars for ratio in ratios), strict=True)],
            color=_COLOURS[tasks],
            marker=_MARKERS[mean],
            linestyle=_LINES[heterogeneity],
            markersize=4.5,
            linewidth=1.1,
            elinewidth=0.6,
        )


def _legend(cells: Sequence[Cell]) -> list[Line2D]:
    """Colour, marker and line by themselves, as each says one thing; only what is drawn."""
    from matplotlib.lines import Line2D

    def entry(label: str, **look: Any) -> Line2D:
        return Line2D([], [], **{"color": "black", "linestyle": "none", **look}, label=label)

    tasks, means, kinds = (
        sorted({getattr(cell.kind, name) for cell in cells}) for name in ("tasks", "mean", "heterogeneity")
    )
    return [
        *(entry(f"{count:,} tasks", color=_COLOURS[count], linestyle="-", linewidth=3) for count in tasks),
        *(entry(f"of {mean:,} s", marker=_MARKERS[mean]) for mean in means),
        *(entry(_HETEROGENEITY[kind], linestyle=_LINES[kind]) for kind in kinds),
        entry("bars: 95 % interval", marker="|", markersize=9),
        entry("below 1: static is faster"),
    ]


def draw_comparison(comparisons: Sequence[Comparison], subject: str, folder: Path) -> list[Drawing]:
    """Draw the cells of a heuristic, by how it compares with each of the others.

    Raises:
        ReplayError: the folder cannot be written.
    """
    names = comparisons[0].profiles
    return [
        _draw_compared(comparisons, subject, over, folder / f"{subject}-over-{over}.svg")
        for over in dict.fromkeys((*REFERENCES, *names))
        if over in names and over != subject and subject not in REFERENCES
    ]


def _draw_compared(comparisons: Sequence[Comparison], subject: str, over: str, path: Path) -> Drawing:
    def draw(plots: Sequence[Axes]) -> None:
        for axes, found in zip(plots, comparisons, strict=True):
            _panel(axes, found.of(subject), over)
            axes.set_title(found.workload.title, fontsize="medium")
        for axes in plots[::2]:
            axes.set_ylabel(f"mean turnaround: {over} / {subject}")

    caption = f"{subject} over {over}, cell by cell: above 1 {subject} is faster (bars: 95 %)"
    return save(path, caption, len(comparisons), draw, legend=True, sharey=True)


def _panel(axes: Axes, cells: Sequence[Cell], over: str) -> None:
    """The cells of each mean runtime side by side, ascending."""
    place = 0
    for colour, mean in zip(_COLOURS.values(), sorted({cell.kind.mean for cell in cells}), strict=False):
        chosen = sorted(
            (cell.over[over] for cell in cells if cell.kind.mean == mean), key=lambda ratio: ratio.value
        )
        axes.errorbar(
            range(place, place + len(chosen)),
            [ratio.value for ratio in chosen],
            yerr=[*zip(*(ratio.bars for ratio in chosen), strict=True)],
            fmt="o",
            markersize=3,
            elinewidth=0.6,
            color=colour,
            label=f"tasks of {mean:,} s",
        )
        place += len(chosen) + 2
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks([])
    axes.set_xlabel("cells, by mean runtime and ratio")
    ratio_scale(axes)
