"""Small random traces, dense in ties and in queues."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from adaptor_simulation.jobs import Jobs

PROCESSORS = 8


def jobs_from(rows: list[tuple[int, int, int, int]]) -> Jobs:
    """Rows (submit, processors, estimate, run), in any order of submission."""
    rows = sorted(rows, key=lambda row: row[0])
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Jobs(
        number=np.arange(1, len(rows) + 1),
        submit=columns[0],
        run=columns[3],
        estimate=columns[2],
        processors=columns[1],
    )


@st.composite
def job_rows(draw: st.DrawFn, latest: int = 60) -> tuple[int, int, int, int]:
    estimate = draw(st.integers(1, 30))
    run = draw(st.one_of(st.just(estimate), st.integers(1, estimate)))
    return draw(st.integers(0, latest)), draw(st.integers(1, PROCESSORS)), estimate, run


def traces(most: int = 40) -> st.SearchStrategy[Jobs]:
    return st.lists(job_rows(), max_size=most).map(jobs_from)


policies = st.sampled_from(["conservative", "easy"])
