"""The choices of a quote, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.budget.provisioning.menu import Line
from adaptor.errors import AdaptorError
from adaptor.figures.canvas import sheet


def draw_menu(lines: Sequence[Line], path: str) -> None:
    """Cost against time, with the ranges of both, as PNG.

    Raises:
        AdaptorError: matplotlib is not installed, or the file cannot be written.
    """
    drawn = sheet(8, 5)
    axes = drawn.subplots()
    for number, line in enumerate(lines, 1):
        seconds, cost = line.configuration.seconds, line.configuration.cost
        axes.errorbar(
            seconds / 60,
            cost,
            xerr=[[max(0.0, seconds - line.seconds.low) / 60], [max(0.0, line.seconds.high - seconds) / 60]],
            yerr=[[max(0.0, cost - line.cost.low)], [max(0.0, line.cost.high - cost)]],
            fmt="o",
            capsize=3,
            label=f"{number}: {line.name}",
        )
    axes.set(
        xlabel="minutes from now", ylabel="credits", title="What the rest of the bag costs (ranges of 90 %)"
    )
    axes.legend()
    try:
        drawn.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be written: {error.strerror}") from error
