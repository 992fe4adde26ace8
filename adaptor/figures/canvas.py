"""Drawing without a window: an empty sheet, and a figure of plots side by side, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from adaptor.extras import require_extra
from adaptor.simulation.files import naming

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Drawing(msgspec.Struct, frozen=True):
    caption: str
    svg: Path


def sheet(width: float, height: float) -> Figure:
    """An empty figure of so many inches.

    Raises:
        AdaptorError: matplotlib is not installed.
    """
    require_extra("matplotlib")
    # Without pyplot nothing is kept for a window that nobody opens.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawn)
    return drawn


def save(path: Path, caption: str, plots: int, draw: Callable[[Sequence[Axes]], None]) -> Drawing:
    """Let `draw` fill so many plots; write `path` (SVG) and the PNG beside it.

    Raises:
        ReplayError: it cannot be written.
    """
    drawn = sheet(5.4 * max(plots, 1.4), 4.2)
    draw(drawn.subplots(1, plots, squeeze=False)[0])
    drawn.suptitle(caption, size=10)
    return write(drawn, path, caption)


def write(drawn: Figure, path: Path, caption: str) -> Drawing:
    """Write `path` (SVG) and the PNG beside it. Raises ReplayError: it cannot be written."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path)
        drawn.savefig(path.with_suffix(".png"), dpi=120)
    return Drawing(caption, path)
