"""Drawing without a window: a figure of plots side by side, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from adaptor.replay.errors import ReplayError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Drawing(msgspec.Struct, frozen=True):
    caption: str
    svg: Path


def save(path: Path, caption: str, plots: int, draw: Callable[[Sequence[Axes]], None]) -> Drawing:
    """Let `draw` fill so many plots; write `path` (SVG) and the PNG beside it.

    Raises:
        ReplayError: it cannot be written.
    """
    # Without pyplot nothing is kept for a window that nobody opens.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(5.4 * max(plots, 1.4), 4.2), layout="constrained")
    FigureCanvasAgg(canvas)
    draw(canvas.subplots(1, plots, squeeze=False)[0])
    canvas.suptitle(caption, size=10)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path)
        canvas.savefig(path.with_suffix(".png"), dpi=120)
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror or error}") from error
    return Drawing(caption, path)
