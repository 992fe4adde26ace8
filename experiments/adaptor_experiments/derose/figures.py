"""The figures of De Rose et al. 2008, §4.4, from our results, and one of all cells that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptor_experiments.derose.claims import biggest, few_long
from adaptor_experiments.derose.comparison import REFERENCES, Cell, Comparison, Kind
from adaptor_experiments.derose.design import MEANS, TASKS
from adaptor_experiments.figures.canvas import Drawing, Panels, below, ratio_scale
from adaptor_experiments.tables import with_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_COLOURS = dict(zip(TASKS, ("#0072b2", "#d55e00", "#009e73", "#7a5195"), strict=True))
"""Colours of the numbers of tasks; told apart with red-green blindness too."""
_MARKERS = dict(zip(MEANS, "o^s", strict=True))
_LINES = {1: "-", 2: (0, (5, 2)), 4: (0, (1, 1.5))}
_HETEROGENEITY = {1: "homogeneous", 2: "heterogeneity 2x", 4: "heterogeneity 4x"}


Panel = tuple[str, str, Callable[[Kind], bool]]
"""One plot: its title, the trace, and the kinds of grid job that it shows."""


def _by_heterogeneity(trace: str) -> list[Panel]:
    return [
        (title, trace, lambda kind, wanted=wanted: kind.heterogeneity == wanted)  # type: ignore[misc]
        for wanted, title in _HETEROGENEITY.items()
    ]


FIGURES: dict[str, tuple[str, list[Panel]]] = {
    "figure-3": ("Figure 3: speedup of adaptive over static, SDSC SP2", _by_heterogeneity("sdsc-sp2")),
    "figure-blue": (
        "As figure 3, SDSC BlueHorizon (the paper has no such figure)",
        _by_heterogeneity("sdsc-blue"),
    ),
    "figure-4": (
        "Figure 4: few tasks of long duration, SDSC SP2",
        [("100 or 1000 tasks of 10,000 s", "sdsc-sp2", few_long)],
    ),
    "figure-5": (
        "Figure 5: the biggest jobs, SDSC SP2",
        [("10,000 or 100,000 tasks of 1000 s or 10,000 s", "sdsc-sp2", biggest)],
    ),
    "figure-6": (
        "Figure 6: speedup of adaptive over static, CTC SP2",
        [
            ("512 processors, as in the paper", "ctc-sp2-512", lambda _: True),
            ("338 processors, its batch partition", "ctc-sp2-338", lambda _: True),
        ],
    ),
}
"""By file: the caption, and the plots of speedup over max_pending_requests, a line for each kind of job."""


def draw_figures(comparisons: Sequence[Comparison], folder: Path) -> list[Drawing]:
    """Draw the paper's figures for which there are cells of adaptive and static, as PNG and SVG.

    Raises:
        ReplayError: the folder cannot be written.
    """
    cells = {found.workload.key: found.of("adaptive") for found in comparisons}
    drawn = []
    for name, (caption, panels) in FIGURES.items():
        shown = {
            title: some
            for title, trace, wanted in panels
            if (some := [cell for cell in cells.get(trace, []) if wanted(cell.kind)])
        }
        if shown:
            drawn.append(_draw(folder / f"{name}.svg", caption, shown))
    return drawn


def _draw(path: Path, caption: str, panels: dict[str, list[Cell]]) -> Drawing:
    drawn = Panels(len(panels), sharey=True)
    for axes, (title, cells) in zip(drawn.plots, panels.items(), strict=True):
        _draw_lines(axes, cells)
        ratio_scale(axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("max_pending_requests")
        axes.locator_params(axis="x", integer=True)
    for axes in drawn.left:
        axes.set_ylabel("speedup: static / adaptive")
    handles = _legend([cell for cells in panels.values() for cell in cells])
    below(drawn.sheet, handles, [str(handle.get_label()) for handle in handles])
    return drawn.save(path, caption)


def _draw_lines(axes: Axes, cells: list[Cell]) -> None:
    lines: dict[tuple[int, int, int], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.kind.tasks, cell.kind.mean, cell.kind.heterogeneity), []).append(cell)
    axes.axhline(1, color="black", linewidth=0.9)
    for place, ((tasks, mean, heterogeneity), points) in enumerate(sorted(lines.items())):
        aside = 0.24 * ((place + 0.5) / len(lines) - 0.5)  # so that no bar hides another
        with_bars(
            axes,
            [point.kind.max_pending + aside for point in points],
            [point.over["static"] for point in points],
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
    panels = Panels(len(comparisons), sharey=True)
    for axes, found in zip(panels.plots, comparisons, strict=True):
        _panel(axes, found.of(subject), over)
        axes.set_title(found.workload.title, fontsize="medium")
    for axes in panels.left:
        axes.set_ylabel(f"mean turnaround: {over} / {subject}")
    caption = f"{subject} over {over}, cell by cell: above 1 {subject} is faster (bars: 95 %)"
    return panels.save(path, caption, legend=True)


def _panel(axes: Axes, cells: Sequence[Cell], over: str) -> None:
    """The cells of each mean runtime side by side, ascending."""
    place = 0
    for colour, mean in zip(_COLOURS.values(), sorted({cell.kind.mean for cell in cells}), strict=False):
        chosen = sorted(
            (cell.over[over] for cell in cells if cell.kind.mean == mean), key=lambda ratio: ratio.value
        )
        with_bars(
            axes,
            range(place, place + len(chosen)),
            chosen,
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
