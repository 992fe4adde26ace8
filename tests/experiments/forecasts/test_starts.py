"""The starts of a trace's jobs are forecast from what was known at their submission."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from adaptor_experiments.forecasts.starts import (
    History,
    Piece,
    Settings,
    Start,
    auc,
    bounds_of,
    cover_table,
    near_table,
    queue_at,
    run_piece,
    sample_of,
)
from adaptor_simulation.jobs import Jobs

ROW = Start(
    trace="a", scheduler="easy", job=0, submitted=0, processors=1, limit=60, ahead=0, wait=0.0, planned=0.0,
    low=0.0, value=0.0, high=0.0, bound=None, middle=None,
)  # fmt: skip


def history(*jobs: tuple[int, int, int, int, int]) -> History:
    """Jobs as submission, start, runtime, limit and processors, on 4 processors."""
    submit, start, run, limit, width = (np.array(column, np.int64) for column in zip(*jobs, strict=True))
    made = Jobs(number=np.arange(len(jobs)), submit=submit, run=run, estimate=limit, processors=width)
    return History(made, 4, start, start + run, ["user"] * len(jobs))


def test_the_queue_is_that_of_the_submission() -> None:
    """One job has ended, one runs, one waits, the asked one comes last; a later one is not known."""
    lived = history(
        (0, 0, 10, 60, 4), (5, 10, 500, 600, 3), (20, 900, 10, 60, 2), (30, 950, 10, 60, 1), (31, 31, 1, 1, 1)
    )
    queue, since = queue_at(lived, 3)
    assert queue.now == 30.0
    assert [(job.id, job.end) for job in queue.running] == [("1", 610.0)]
    assert [job.id for job in queue.pending] == ["2", "3"]
    assert since == {"1": 10.0}
    assert queue.limits == {"1": 600.0}
    assert set(queue.owners) == {"1", "2"}


def test_a_bound_is_given_from_waits_of_jobs_that_had_started_by_then() -> None:
    jobs = [(each, each + 100, 10, 60, 1) for each in range(200)]
    bounds = bounds_of(history(*jobs))
    assert bounds[157] == (None, None), "the 59th starts at 158, and is known from then on"
    assert bounds[158] == (100.0, 100.0)


def test_a_sample_is_of_the_later_jobs_and_always_the_same() -> None:
    lived = history(*((each, each, 1, 1, 1) for each in range(100)))
    assert sample_of(lived, 20, 7) == sample_of(lived, 20, 7)
    assert min(sample_of(lived, 90, 7)) == 10


def test_drawn_futures_know_that_jobs_end_before_their_limits(tmp_path) -> None:
    """Every job runs a tenth of its limit, so the plan by limits is far too late."""
    lines = [
        f"{each + 1} {each * 50} {each * 50} 100 4 -1 -1 4 1000 -1 1 1 1 1 1 1 -1 -1" for each in range(100)
    ]
    trace = tmp_path / "tenth.swf"
    trace.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    rows = run_piece(Piece(trace, "conservative", Settings(30, 1), 0, 1))
    late = [row for row in rows if row.ahead > 3]
    assert late
    for row in late:
        assert row.planned > 3 * row.wait
        assert abs(row.value - row.wait) < abs(row.planned - row.wait)


def test_auc_is_the_chance_that_a_quick_start_is_ranked_first() -> None:
    assert auc([1, 2, 3, 4], [True, True, False, False]) == 1.0
    assert auc([4, 3, 2, 1], [True, True, False, False]) == 0.0
    assert auc([1, 1, 1, 1], [True, False, True, False]) == 0.5
    assert auc([math.nan, 1.0], [False, True]) == 1.0
    assert math.isnan(auc([1.0], [True]))


def test_the_tables_say_how_near_and_how_often() -> None:
    rows = [
        msgspec.structs.replace(
            ROW, job=each, submitted=1000 * each, wait=wait, planned=wait + 700, bound=500.0, middle=9.0
        )
        for each, wait in enumerate([0.0, 30.0, 500.0, 4000.0] * 30)
    ]
    near = {line[2]: line[3:] for line in near_table(rows)}
    assert near["drawn"][:4] == ("120", "50%", "75%", "75%")
    assert near["planned"][:4] == ("120", "0%", "0%", "100%")
    cover = {line[2]: line for line in cover_table(rows)}
    assert cover["binomial bound"][5] == "75.0%"
    assert float(cover["by the site's past"][3].rstrip("%")) > float(cover["drawn"][3].rstrip("%"))
