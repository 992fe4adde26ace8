"""What is written reads the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.swf import FIELDS, Header, Trace, format_trace, write_trace
from adaptor_simulation.traces.swf_read import parse_trace, read_trace
from tests.simulation.swf_text import line, trace_of

numbers = st.one_of(st.integers(-1, 10**8).map(float), st.floats(-1, 1e8))


@given(st.lists(st.lists(numbers, min_size=FIELDS, max_size=FIELDS), max_size=4))
def test_numbers_come_back(rows):
    table = np.array(rows).reshape(-1, FIELDS)
    written = format_trace(Trace(name="x", header=Header((("Note", "a\nb"),)), table=table))
    again = parse_trace(written.encode(), "x")
    assert np.allclose(again.table, table, rtol=1e-15, atol=0)
    assert again.header.entries == (("Note", "a\nb"),)


@pytest.mark.parametrize("name", ["t.swf", "t.swf.gz", "t.swf.xz"])
def test_files_are_compressed_by_their_names(tmp_path, name):
    trace = trace_of(line(1, run=0.5), line(2))
    write_trace(trace, tmp_path / name)
    again = read_trace(tmp_path / name)
    assert (again.table == trace.table).all()
    assert ((tmp_path / name).read_bytes()[:1] == b";") == (name == "t.swf")


def test_whole_numbers_have_no_fraction():
    assert format_trace(trace_of(line(1, run=0.5), header="")) == line(1, run=0.5)


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        write_trace(trace_of(line()), tmp_path / "none" / "t.swf")
