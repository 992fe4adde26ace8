"""A small history of a machine."""

from __future__ import annotations

import numpy as np

from adaptor_experiments.forecasts.history import History
from adaptor_simulation.jobs import Jobs


def history(*jobs: tuple[int, int, int, int, int]) -> History:
    """Jobs as submission, start, runtime, limit and processors, on 4 processors."""
    submit, start, run, limit, width = (np.array(column, np.int64) for column in zip(*jobs, strict=True))
    made = Jobs(number=np.arange(len(jobs)), submit=submit, run=run, estimate=limit, processors=width)
    return History(made, 4, start, start + run, ["user"] * len(jobs), submit * 0, submit < 0)
