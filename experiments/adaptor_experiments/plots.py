"""What the figures of several experiments draw alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptor_experiments.tables import Mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def grouped_bars(
    axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[Mean]], width: float, **look: Any
) -> None:
    """A group of bars for each label, in each a bar for each name of the series, with its deviation."""
    for place, (name, means) in enumerate(series.items()):
        axes.bar(
            np.arange(len(groups)) + (place - (len(series) - 1) / 2) * width,
            [mean.value for mean in means],
            width,
            yerr=[mean.deviation for mean in means],
            label=name,
            color=f"C{place}",
            **look,
        )
    axes.set_xticks(range(len(groups)), groups)
