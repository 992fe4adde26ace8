"""The starts of a trace's jobs are forecast from what was known at their submission."""

from __future__ import annotations

from adaptor_experiments.forecasts.starts import Piece, Settings, bounds_of, run_piece, shapes_of
from adaptor_experiments.forecasts.trace_queues import TraceFile
from tests.experiments.forecasts.lived import history


def test_a_bound_is_given_from_waits_of_jobs_that_had_started_by_then() -> None:
    jobs = [(each, each + 100, 10, 60, 1) for each in range(200)]
    bounds = bounds_of(history(*jobs))
    assert bounds[157] == (None, None), "the 59th starts at 158, and is known from then on"
    assert bounds[158] == (100.0, 100.0)


def test_a_shape_is_forecast_from_its_own_waits_and_a_new_one_from_all() -> None:
    jobs = [(each, each + (100 if each % 2 else 10), 10, 60, 1 if each % 2 else 4) for each in range(300)]
    found = shapes_of(history(*jobs, (400, 400, 10, 36000, 2)))
    assert found[0] is None, "nothing had started"
    assert found[298:300] == [10.0, 100.0]
    assert found[300] == 10.0


def test_drawn_futures_know_that_jobs_end_before_their_limits(tmp_path) -> None:
    """Every job runs a tenth of its limit, so the plan by limits is far too late."""
    lines = [
        f"{each + 1} {each * 50} {each * 50} 100 4 -1 -1 4 1000 -1 1 1 1 1 1 1 -1 -1" for each in range(100)
    ]
    trace = tmp_path / "tenth.swf"
    trace.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    rows = run_piece(Piece(TraceFile(trace), "conservative", Settings(30, 1), 0, 1))
    late = [row for row in rows if row.ahead > 3]
    assert late
    for row in late:
        assert row.planned > 3 * row.wait
        assert abs(row.value - row.wait) < abs(row.planned - row.wait)
