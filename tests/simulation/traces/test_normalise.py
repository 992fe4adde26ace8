"""Each rule of normalising, alone and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import check_jobs
from adaptor_simulation.traces.normalise import machine_size, normalise
from adaptor_simulation.traces.repairs import Choices, Rule
from adaptor_simulation.traces.swf_read import read_trace
from tests.simulation.swf_text import line, trace_of

SHARED = Path(__file__).parents[3] / ".." / "shared" / "traces"
GOOD = line(9)


def touched(repairs):
    return {rule: count for rule, count in repairs.jobs.items() if count}


def only_job(text, **choices):
    jobs, repairs = normalise(trace_of(text), 8, Choices(**choices))
    assert len(jobs) == 1
    return *jobs.table()[0].tolist(), touched(repairs)


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        (line(status=2), Rule.PART),
        (line(status=3), Rule.PART),
        (line(status=4), Rule.PART),
        (line(submit=-1), Rule.NO_SUBMIT),
        (line(status=5, run=-1), Rule.NEVER_STARTED),
        (line(status=5, run=0), Rule.NEVER_STARTED),
        (line(status=5, allocated=-1, requested=-1), Rule.NEVER_STARTED),
        (line(allocated=-1, requested=0), Rule.NO_PROCESSORS),
        (line(run=-1), Rule.NO_RUN_TIME),
        (line(run=0), Rule.ZERO_RUN_TIME),
        (line(run=0.4), Rule.ZERO_RUN_TIME),
        (line(limit=-1), Rule.NO_REQUEST),
        (line(limit=0), Rule.NO_REQUEST),
        (line(allocated=9), Rule.LARGER),
        (line(status=2, run=-1, allocated=99), Rule.PART),
    ],
)
def test_jobs_that_are_left_out_count_for_one_rule(bad, rule):
    jobs, repairs = normalise(trace_of(bad, GOOD), 8)
    assert jobs.number.tolist() == [9]
    assert touched(repairs) == {rule: 1}
    assert (repairs.rows, repairs.kept) == (2, 1)


def test_repairs_by_default():
    assert only_job(line(run=130)) == (0, 120, 120, 4, {Rule.OVERRUN: 1})
    assert only_job(line(allocated=-1, requested=3)) == (0, 60, 120, 3, {Rule.OTHER_PROCESSORS: 1})
    assert only_job(line(submit=0.5, run=59.5)) == (1, 60, 120, 4, {Rule.FRACTION: 1})
    assert only_job(line(status=5)) == (0, 60, 120, 4, {})
    assert only_job(line(status=0)) == (0, 60, 120, 4, {})


def test_repairs_by_choice():
    assert only_job(line(run=130), overrun="raise") == (0, 130, 130, 4, {Rule.OVERRUN: 1})
    assert only_job(line(run=0), zero_run="second") == (0, 1, 120, 4, {Rule.ZERO_RUN_TIME: 1})
    assert only_job(line(limit=-1), missing_request="run") == (0, 60, 60, 4, {Rule.NO_REQUEST: 1})
    assert only_job(line(allocated=9), larger="clamp") == (0, 60, 120, 8, {Rule.LARGER: 1})
    assert only_job(line(allocated=2, requested=5), processors="requested") == (0, 60, 120, 5, {})
    fallback = only_job(line(allocated=2, requested=-1), processors="requested")
    assert fallback == (0, 60, 120, 2, {Rule.OTHER_PROCESSORS: 1})


def test_the_longest_request_stands_in():
    choices = Choices(missing_request="longest")
    rows = (line(1, limit=-1), line(2, limit=500), line(3, limit=-1, run=900))
    assert normalise(trace_of(*rows), 8, choices)[0].estimate.tolist() == [500, 500, 900]
    trace = trace_of(*rows, header="; MaxRuntime: 700\n")
    assert normalise(trace, 8, choices)[0].estimate.tolist() == [700, 500, 900]


def test_a_larger_job_may_be_refused():
    with pytest.raises(TraceError, match=r"some\.swf: job 1 needs 9 of the machine's 8"):
        normalise(trace_of(line(allocated=9)), 8, Choices(larger="refuse"))


def test_order_is_mended_and_ties_keep_the_order_of_the_file():
    rows = (line(1, 50), line(2, 10), line(3, 50), line(4, 20), line(5, 50))
    jobs, repairs = normalise(trace_of(*rows), 8)
    assert jobs.number.tolist() == [2, 4, 1, 3, 5]
    assert touched(repairs) == {Rule.OUT_OF_ORDER: 2}


def test_two_swapped_lines_are_two_out_of_order():
    rows = [line(number, submit=10 * number) for number in range(200)]
    rows[3], rows[195] = rows[195], rows[3]
    jobs, repairs = normalise(trace_of(*rows), 8)
    assert jobs.number.tolist() == list(range(200))
    assert touched(repairs) == {Rule.OUT_OF_ORDER: 2}


@given(st.lists(st.integers(0, 9), max_size=9))
def test_so_many_lines_are_out_of_order_as_have_to_be_moved(times):
    _, repairs = normalise(trace_of(GOOD, *(line(submit=time) for time in times)), 8)
    subsequences = (
        [time for place, time in enumerate(times) if chosen >> place & 1] for chosen in range(1 << len(times))
    )
    longest = max(len(some) for some in subsequences if some == sorted(some))
    assert repairs.jobs[Rule.OUT_OF_ORDER] == len(times) - longest


def test_no_job_is_an_error():
    with pytest.raises(TraceError, match="no job to simulate"):
        normalise(trace_of(line(run=-1)), 8)
    with pytest.raises(TraceError, match=r"some\.swf: the trace is empty"):
        normalise(trace_of(), 8)


def test_without_any_requested_time_the_way_out_is_named():
    with pytest.raises(TraceError, match=r"no-requested-time 1\); --missing-request run"):
        normalise(trace_of(line(limit=-1)), 8)


rough = st.builds(
    line,
    number=st.integers(1, 9),
    submit=st.floats(-2, 100).map(lambda x: round(x, 2)),
    run=st.one_of(st.integers(-1, 5), st.floats(0, 300).map(lambda x: round(x, 2))),
    allocated=st.integers(-1, 10),
    requested=st.integers(-1, 10),
    limit=st.integers(-1, 200),
    status=st.integers(-1, 6),
)
any_choices = st.builds(
    Choices,
    processors=st.sampled_from(["allocated", "requested"]),
    missing_request=st.sampled_from(["drop", "run", "longest"]),
    zero_run=st.sampled_from(["drop", "second"]),
    larger=st.sampled_from(["drop", "clamp"]),
    overrun=st.sampled_from(["cut", "raise"]),
)
LEAVES_OUT = (Rule.PART, Rule.NO_SUBMIT, Rule.NEVER_STARTED, Rule.NO_PROCESSORS, Rule.NO_RUN_TIME)


@given(st.lists(rough, max_size=20), any_choices)
def test_what_is_kept_can_run_and_what_is_left_out_is_counted(rows, choices):
    try:
        jobs, repairs = normalise(trace_of(*rows, GOOD), 8, choices)
    except TraceError:
        raise AssertionError("the good job must stay") from None
    check_jobs(jobs, 8)
    by_choice = (
        (Rule.ZERO_RUN_TIME, choices.zero_run),
        (Rule.NO_REQUEST, choices.missing_request),
        (Rule.LARGER, choices.larger),
    )
    left_out = [*LEAVES_OUT, *(rule for rule, choice in by_choice if choice == "drop")]
    assert repairs.kept == len(jobs) == len(rows) + 1 - sum(repairs.jobs[rule] for rule in left_out)


def test_the_size_of_the_machine():
    rows = (line(allocated=3), line(allocated=-1, requested=6))
    assert machine_size(trace_of(*rows, header="; MaxNodes: 2\n; MaxProcs: 16\n"))[0] == 16
    assert machine_size(trace_of(*rows, header="; MaxNodes: 338 (of 512)\n"))[0] == 338
    assert machine_size(trace_of(*rows, header="; MaxProcs: -1\n"))[0] == 6
    with pytest.raises(TraceError, match="neither the header nor a job says how many processors"):
        machine_size(trace_of(line(allocated=-1, requested=-1), header=""))


@pytest.mark.parametrize("label", ["MaxProcs", "MaxNodes"])
@pytest.mark.parametrize("size", ["99999999999999999999", "9" * 5000, "100000001"])
def test_a_machine_beyond_all_measure_is_refused(label, size):
    with pytest.raises(TraceError, match=rf"some\.swf: the header's {label} .*--processors"):
        machine_size(trace_of(line(), header=f"; {label}: {size}\n"))


@pytest.mark.parametrize("longest", ["99999999999999999999", "9" * 5000])
def test_a_header_with_an_impossible_longest_time_is_refused_where_it_is_needed(longest):
    trace = trace_of(line(limit=-1), line(2), header=f"; MaxRuntime: {longest}\n")
    assert len(normalise(trace, 8)[0]) == 1
    with pytest.raises(TraceError, match=r"some\.swf: the header's MaxRuntime"):
        normalise(trace, 8, Choices(missing_request="longest"))


def test_the_archive_s_trace_becomes_the_normalised_one():
    raw, reference = SHARED / "SDSC-SP2-1998-4.2-cln.swf.gz", SHARED / "sdsc-sp2.swf.gz"
    if not raw.exists() or not reference.exists():
        pytest.skip(f"no real traces beside this repository ({raw.name})")
    jobs, repairs = normalise(read_trace(raw), 128)
    expected, nothing = normalise(read_trace(reference), 128)
    assert (jobs.table() == expected.table()).all()
    assert np.array_equal(jobs.number, expected.number)
    assert touched(repairs) == {Rule.NEVER_STARTED: 5681, Rule.NO_REQUEST: 35, Rule.OVERRUN: 4134}
    assert touched(nothing) == {}


def test_the_summary_names_what_was_done():
    trace = trace_of(line(1, run=130), "damaged\n", line(2).rstrip() + " 9\n", lenient=True)
    summary = normalise(trace, 8)[1].summary()
    assert summary == "2 lines, 2 jobs kept; run-above-request 1, damaged-line 1, more-than-18-fields 1"


def test_memory_for_each_processor_is_that_requested_or_else_used():
    def with_memory(number: int, used: float, requested: float) -> str:
        fields = line(number).split()
        fields[6], fields[9] = str(used), str(requested)
        return " ".join(fields) + "\n"

    rows = (with_memory(1, 100, 200), with_memory(2, 100.5, -1), with_memory(3, -1, 0))
    jobs, _ = normalise(trace_of(*rows), 8)
    assert jobs.memory is not None
    assert jobs.memory.tolist() == [200 * 1024, 100 * 1024 + 512, 0]
    absurd, _ = normalise(trace_of(with_memory(1, 9e14, -1)), 8)
    assert absurd.memory is not None
    assert absurd.memory.tolist() == [9 * 10**14 * 1024]
    silent, _ = normalise(trace_of(line()), 8)
    assert silent.memory is None


def test_the_users_of_jobs_are_those_of_the_trace():
    def of_user(number: int, user: int) -> str:
        fields = line(number).split()
        fields[11] = str(user)
        return " ".join(fields) + "\n"

    jobs, _ = normalise(trace_of(of_user(1, 7), of_user(2, -1), of_user(3, 0)), 8)
    assert jobs.user is not None
    assert jobs.user.tolist() == [7, -1, 0]
    silent, _ = normalise(trace_of(of_user(1, -1)), 8)
    assert silent.user is None
