"""Whatever stands in a trace: jobs, or an error that names the line."""

from __future__ import annotations

import functools
import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_simulation.traces.sacct import from_sacct
from adaptor_simulation.traces.swf_read import parse_trace, read_trace
from tests.fuzzing import FIXTURES, damaged, fuzz, survives

HEADER = "; Version: 2.2\n; MaxProcs: 128 (all)\n; UnixStartTime: 1795250485\n; Note: a\n;   b: c\n"
SMALL = (FIXTURES / "traces" / "small.swf").read_text().split("\n")
TRACES = [
    HEADER + "\n".join(SMALL[-40:]),
    "\n".join(SMALL[:40]),
    "1 0 -1 4.5 2 0 0 2 60 0 1 5 6 7 8 9 -1 -1\n",
]
SACCT = [
    "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|ReqCPUS|State|User|Group|Partition|QOS\n"
    "1|2026-11-21T08:00:00|2026-11-21T08:04:00|2026-11-21T09:04:00|3600|60|4|4|COMPLETED|a|g|batch|normal\n"
    "2|1795250485|1795250490|1795250495|5|UNLIMITED|1|1|CANCELLED by 7|b|g|batch|\n"
    "2.batch|1795250485|1795250490|1795250495|5||1|1|COMPLETED|||\n",
    "JobID|Submit|Start|Elapsed|Timelimit|NCPUS|State\n7|2026-11-21T08:00:00+01:00|Unknown|0|1-02:00:00|1|FAILED\n",
]


@fuzz
@given(damaged(TRACES), st.booleans())
def test_any_trace_is_jobs_or_a_clear_error(text: str, lenient: bool) -> None:
    content = text.encode(errors="surrogatepass")
    survives(functools.partial(parse_trace, lenient=lenient), content, "t.swf")


@fuzz
@given(damaged(SACCT))
def test_any_history_is_a_trace_or_a_clear_error(text: str) -> None:
    survives(from_sacct, text)


@fuzz
@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@given(cut=st.floats(0, 1), flip=st.integers(0, 255))
def test_a_damaged_archive_is_jobs_or_a_clear_error(tmp_path_factory, compress, cut, flip) -> None:
    data = bytearray(compress(TRACES[0].encode()))
    place = int(cut * (len(data) - 1))
    data[place] ^= flip
    path: Path = tmp_path_factory.getbasetemp() / "damaged.swf"
    path.write_bytes(data if flip % 2 else data[:place])
    survives(read_trace, path)
