"""Small traces as text."""

from __future__ import annotations

from adaptor_simulation.traces.swf import Trace
from adaptor_simulation.traces.swf_read import parse_trace


def line(
    number: int = 1,
    submit: float = 0,
    run: float = 60,
    allocated: int = 4,
    requested: int = 4,
    limit: float = 120,
    status: int = 1,
) -> str:
    return (
        f"{number} {submit} -1 {run} {allocated} -1 -1 {requested} {limit} -1 {status} 7 -1 -1 1 -1 -1 -1\n"
    )


def trace_of(*lines: str, header: str = "; MaxProcs: 8\n", lenient: bool = False) -> Trace:
    return parse_trace((header + "".join(lines)).encode("latin-1"), "some.swf", lenient=lenient)
