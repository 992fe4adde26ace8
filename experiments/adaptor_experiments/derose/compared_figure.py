"""Every cell of a comparison in one picture for each trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.figures.canvas import Drawing, ratio_scale, save
from adaptor_experiments.derose.compared_tables import judged
from adaptor_experiments.derose.comparison import CellOf, Comparison
from adaptor_experiments.derose.goals import REFERENCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7a5195")


def draw_comparison(comparisons: Sequence[Comparison], folder: Path) -> list[Drawing]:
    """The cells of the heuristic of which the page speaks, by how it compares with each of the others.

    Raises:
        ReplayError: the folder cannot be written.
    """
    names = list(comparisons[0].profiles)
    subject = judged(names)
    return [
        _draw(comparisons, subject, over, folder / f"{subject}-over-{over}.svg")
        for over in dict.fromkeys((*REFERENCES, *names))
        if over in names and over != subject and subject not in REFERENCES
    ]


def _draw(comparisons: Sequence[Comparison], subject: str, over: str, path: Path) -> Drawing:
    def draw(plots: Sequence[Axes]) -> None:
        for axes, each in zip(plots, comparisons, strict=True):
            _panel(axes, [cell for cell in each.cells if cell.heuristic == subject], over)
            axes.set_title(each.workload.title, fontsize="medium")
        for axes in plots[::2]:
            axes.set_ylabel(f"mean turnaround: {over} / {subject}")

    caption = f"{subject} over {over}, cell by cell: above 1 {subject} is faster (bars: 95 %)"
    return save(path, caption, len(comparisons), draw, legend=True, sharey=True)


def _panel(axes: Axes, cells: Sequence[CellOf], over: str) -> None:
    """The cells of each mean runtime side by side, ascending."""
    place = 0
    for colour, mean in zip(_COLOURS, sorted({cell.kind.mean for cell in cells}), strict=False):
        chosen = sorted(
            (cell.over[over] for cell in cells if cell.kind.mean == mean), key=lambda each: each.value
        )
        bars = [each.bars for each in chosen]
        axes.errorbar(
            range(place, place + len(chosen)),
            [each.value for each in chosen],
            yerr=[[low for low, _ in bars], [high for _, high in bars]],
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
