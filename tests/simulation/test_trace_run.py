"""Whole traces, against the reference schedules of pyss where they lie beside the repository."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from adaptor_simulation.files import TraceError
from adaptor_simulation.trace_run import measure, replay, run_trace, write_schedule
from adaptor_simulation.traces.normalise import normalise
from adaptor_simulation.traces.swf import write_trace
from tests.simulation.swf_text import line, trace_of

ROOT = Path(__file__).parents[2]
SHARED = ROOT / ".." / "shared"
SMALL = ROOT / "fixtures" / "traces" / "small.swf"


@pytest.mark.parametrize("policy", ["conservative", "easy"])
@pytest.mark.parametrize(("name", "processors"), [("lublin_256_est", 256), ("sdsc-sp2", 128)])
def test_every_start_equals_the_reference(name, processors, policy):
    trace = SHARED / "traces" / f"{name}.swf.gz"
    reference = SHARED / "reference" / f"starts-{policy}-{name}.csv.gz"
    if not trace.exists() or not reference.exists():
        pytest.skip(f"no reference schedules beside this repository ({reference.name})")
    run = run_trace(trace, policy)
    expected = np.loadtxt(reference, delimiter=",", skiprows=1, dtype=np.int64)
    assert run.processors == processors
    assert np.array_equal(run.jobs.number, expected[:, 0])
    assert np.array_equal(run.starts, expected[:, 1])


def test_metrics_of_the_reference():
    """Against figures computed elsewhere for the same schedule."""
    trace = SHARED / "traces" / "lublin_256_est.swf.gz"
    if not trace.exists():
        pytest.skip(f"no real traces beside this repository ({trace.name})")
    metrics = run_trace(trace, "conservative").metrics
    assert metrics.mean_wait == pytest.approx(74_017, abs=1)
    assert metrics.mean_turnaround == pytest.approx(78_880, abs=1)
    assert metrics.mean_bounded_slowdown == pytest.approx(457.70, abs=0.01)
    assert metrics.mean_bounded_slowdown_per_processor == pytest.approx(148.00, abs=0.01)
    assert metrics.utilisation == pytest.approx(0.8876, abs=0.0001)
    assert metrics.utilisation_while_submitting == pytest.approx(0.8829, abs=0.0001)


def test_metrics_by_hand():
    jobs, _ = normalise(trace_of(line(1, 0, run=100, allocated=8), line(2, 50, run=5, allocated=2)), 8)
    metrics = measure(jobs, np.array([0, 100]), 8)
    assert (metrics.mean_wait, metrics.longest_wait, metrics.waited) == (25, 50, 1)
    assert metrics.mean_turnaround == (100 + 55) / 2
    assert metrics.mean_bounded_slowdown == (1 + 5.5) / 2
    assert metrics.mean_bounded_slowdown_per_processor == (1 + 2.75) / 2
    assert metrics.utilisation == (800 + 10) / (8 * 105)
    assert metrics.utilisation_while_submitting == 1


@pytest.mark.parametrize("policy", ["conservative", "easy"])
def test_the_invented_trace(policy):
    run = run_trace(SMALL, policy)
    assert (run.processors, len(run.jobs)) == (64, 388)
    assert run.metrics.waited > 0
    for instant in run.starts:
        busy = (run.starts <= instant) & (instant < run.starts + run.jobs.run)
        assert run.jobs.processors[busy].sum() <= 64


def test_the_processors_asked_for_override_the_header():
    run = run_trace(SMALL, "easy", processors=32)
    assert run.processors == 32
    assert run.jobs.processors.max() <= 32
    with pytest.raises(TraceError, match="0 processors"):
        run_trace(SMALL, "easy", processors=0)


def test_time_only_shifts():
    jobs, _ = normalise(trace_of(*(line(n, 10 * n, run=37, allocated=n % 8 + 1) for n in range(60))), 8)
    later, _ = normalise(
        trace_of(*(line(n, 10 * n + 999, run=37, allocated=n % 8 + 1) for n in range(60))), 8
    )
    assert (replay(later, 8, "conservative") == replay(jobs, 8, "conservative") + 999).all()


def test_the_schedule_as_csv(tmp_path):
    write_trace(trace_of(line(7, 5, run=100, allocated=8), line(3, 6, run=10)), tmp_path / "t.swf")
    run = run_trace(tmp_path / "t.swf", "conservative")
    write_schedule(run.jobs, run.starts, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"job": "7", "submit": "5", "start": "5", "end": "105", "processors": "8"},
        {"job": "3", "submit": "6", "start": "105", "end": "115", "processors": "4"},
    ]
    with pytest.raises(TraceError, match="No such file"):
        write_schedule(run.jobs, run.starts, tmp_path / "none" / "out.csv")
