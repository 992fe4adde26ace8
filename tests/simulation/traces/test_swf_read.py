"""Reading traces, whole and damaged."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.swf import FIELDS, Field
from adaptor_simulation.traces.swf_read import parse_trace, read_trace
from tests.simulation.swf_text import line, trace_of

pytestmark = pytest.mark.compiles


def test_all_fields_are_read_as_they_stand():
    trace = trace_of("3 10 -1 4.5 2 0.25 1024 2 60 2048 0 5 6 7 8 9 2 30\n")
    assert trace.table.tolist() == [[3, 10, -1, 4.5, 2, 0.25, 1024, 2, 60, 2048, 0, 5, 6, 7, 8, 9, 2, 30]]
    assert trace.column(Field.THINK_TIME).tolist() == [30]


def test_layout_does_not_matter():
    tidy = line(1) + line(2)
    untidy = "  " + line(1).replace(" ", "\t \t").rstrip() + " \r\n\n \t\n; a comment\n" + line(2).rstrip()
    assert (trace_of(untidy).table == trace_of(tidy).table).all()


LIMITED = (Field.SUBMIT, Field.RUN, Field.ALLOCATED, Field.REQUESTED, Field.REQUESTED_TIME)
number_texts = st.one_of(
    st.integers(-1, 10**14).map(str),
    st.decimals(0, 10**6, places=3).map(str),
    st.floats(0, 1e14, allow_nan=False).map(repr),
    st.sampled_from(["+5", "-0", "7.", ".5", "1e3", "2.5E-2", "00012", "123456789012345678e-6"]),
)


modest_texts = number_texts.filter(lambda text: float(text) <= 10**8)
rows_of_numbers = st.tuples(*(modest_texts if field in LIMITED else number_texts for field in range(FIELDS)))


@given(st.lists(rows_of_numbers, max_size=4))
def test_numbers_are_read_as_python_reads_them(rows):
    trace = trace_of(*(" ".join(row) + "\n" for row in rows))
    expected = [[float(text) for text in row] for row in rows]
    assert np.allclose(trace.table, np.array(expected).reshape(-1, FIELDS), rtol=1e-15, atol=0)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
def test_compression_is_told_by_the_content(tmp_path, pack):
    path = tmp_path / "trace"
    path.write_bytes(pack(line().encode()))
    assert len(read_trace(path)) == 1


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_file_that_is_cut_short(tmp_path, pack):
    path = tmp_path / "trace.swf.gz"
    whole = pack("".join(line(number) for number in range(200)).encode())
    for size in range(7, len(whole) - 1, 13):
        path.write_bytes(whole[:size])
        with pytest.raises(TraceError, match=r"trace\.swf\.gz: .*cut short"):
            read_trace(path)


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        ("1 2 3\n", "18 numbers expected, 3 found"),
        (line().replace("60", "6O"), "field 4 is no number: '6O'"),
        (line().replace("60", "nan"), "field 4 is no number"),
        (line().replace("60", "inf"), "field 4 is no number"),
        (line().replace("60", "1e99"), "field 4 is too large: '1e99'"),
        (line().replace("60", "99999999999999999999"), "field 4 is too large: '99999999999999999999'"),
        (line(run=10**15 - 1), r"field 4 \(run time\) is too large: 999999999999999; 10,000,000,000 s"),
        (line(submit=10**11), r"field 2 \(submit time\) is too large"),
        (line(limit=10**11), r"field 9 \(requested time\) is too large"),
        (line(allocated=10**9), r"field 5 \(allocated processors\) is too large: 1000000000; 100,000,000"),
        (line(requested=10**9), r"field 8 \(requested processors\) is too large"),
        (line().replace("60", "1-2"), "field 4 is no number"),
        (line().replace("60", "-"), "field 4 is no number"),
        (line().replace("60", "6;0"), "field 4 is no number"),
        (line().replace("60", "1.2.3"), "field 4 is no number"),
        ("job,start\n", "field 1 is no number"),
    ],
)
def test_a_damaged_line_is_told_with_its_number_or_skipped(damaged, says):
    lines = (line(1), "; comment\n", damaged, line(2))
    with pytest.raises(TraceError, match=rf"some\.swf:4: {says}.*--lenient"):
        trace_of(*lines)
    trace = trace_of(*lines, lenient=True)
    assert trace.column(Field.NUMBER).tolist() == [1, 2]
    assert trace.skipped == 1


def test_fields_beyond_the_eighteenth_are_counted():
    trace = trace_of(line(1).rstrip() + " 99 a b\n", line(2))
    assert trace.table.shape == (2, FIELDS)
    assert trace.long_lines == 1


@given(st.binary(min_size=1, max_size=300))
def test_what_is_no_trace_is_refused_or_empty(content):
    try:
        trace = parse_trace(content, "x")
    except TraceError:
        with_leniency = True
    else:
        with_leniency = len(trace) > 0
        assert len(trace) == 0
    if with_leniency:
        with pytest.raises(TraceError, match="not a trace in SWF"):
            parse_trace(content, "x", lenient=True)


def test_files_without_jobs():
    assert len(parse_trace(b"", "x")) == 0
    empty = parse_trace(b"; MaxProcs: 8\n", "x")
    assert (len(empty), empty.header.number("MaxProcs")) == (0, 8)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        read_trace(tmp_path / "none.swf")
    with pytest.raises(TraceError, match="directory"):
        read_trace(tmp_path)


def test_the_header_ends_with_the_first_job():
    trace = trace_of(line(), "; MaxProcs: 99\n", header="\n; MaxProcs: 8\n")
    assert trace.header.all("MaxProcs") == ["8"]
