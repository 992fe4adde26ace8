"""What is told of a trace."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from adaptor_simulation.traces.describe import describe
from adaptor_simulation.traces.swf_read import read_trace
from tests.simulation.swf_text import line, trace_of

SMALL = Path(__file__).parents[3] / "fixtures" / "traces" / "small.swf"


def test_the_invented_trace():
    info = describe(read_trace(SMALL))
    assert (info.rows, info.usable_jobs, info.processors) == (400, 388, 64)
    assert (info.computer, info.begin, info.time_zone) == ("invented", "2025-01-01T00:00:00+00:00", "UTC")
    assert info.statuses == {"completed": 384, "failed": 6, "cancelled": 10}
    assert info.repairs["run-above-request"] == 6
    assert info.repairs["out-of-order"] == 1
    assert info.users == 12
    assert len(info.notes) == 3
    spread = info.spreads["processors"]
    assert (spread.least, spread.most) == (1, 64)


def test_figures_by_hand():
    rows = (
        line(1, 0, run=100, allocated=8),
        line(1, 100, run=50, allocated=4, status=9),
        line(2, 250, run=1),
    )
    info = describe(trace_of(*rows))
    assert (info.period, info.largest_gap, info.repeated_numbers) == (250, 150, 1)
    assert info.offered_load == pytest.approx((800 + 200 + 4) / (8 * 250))
    assert info.statuses == {"completed": 2, "status 9": 1}
    assert info.spreads["run time"].median == 50


@pytest.mark.parametrize("rows", [(), (line(run=-1),)])
def test_a_trace_without_usable_jobs_is_described(rows):
    info = describe(trace_of(*rows, header=""))
    assert (info.rows, info.usable_jobs, info.offered_load) == (len(rows), 0, None)


def test_it_says_why_no_job_is_usable():
    info = describe(trace_of(line(limit=-1), line(run=-1)))
    assert (info.repairs["no-requested-time"], info.repairs["no-run-time"]) == (1, 1)


def test_a_single_job_has_no_load():
    assert describe(trace_of(line())).offered_load is None


@pytest.mark.parametrize(
    ("header", "begin"),
    [
        ("; UnixStartTime: 0\n", None),
        ("; UnixStartTime: 893466664\n; TimeZoneString: US/Pacific\n", "1998-04-24T18:11:04-07:00"),
        ("; UnixStartTime: 893466664\n; TimeZoneString: ../../x\n", "1998-04-25T01:11:04+00:00"),
        ("; UnixStartTime: 99999999999999999\n", None),
    ],
)
def test_the_begin(header, begin):
    assert describe(trace_of(line(), header=header)).begin == begin


def test_a_zone_that_is_not_known_is_not_that_of_the_begin():
    """The begin is then in UTC, and says so."""
    known = describe(trace_of(line(), header="; UnixStartTime: 893466664\n; TimeZoneString: US/Pacific\n"))
    assert known.time_zone == "US/Pacific"
    other = describe(trace_of(line(), header="; UnixStartTime: 893466664\n; TimeZoneString: Mars/North\n"))
    assert other.time_zone == "UTC (the zone Mars/North is not known)"
    assert describe(trace_of(line())).time_zone is None


def test_the_invented_trace_is_what_its_script_writes(tmp_path):
    script = tmp_path / "make_small.py"
    script.write_text(SMALL.with_name("make_small.py").read_text())
    runpy.run_path(str(script), run_name="__main__")
    assert (tmp_path / "small.swf").read_text() == SMALL.read_text()
