"""Table 1, the workloads: the paper's numbers beside those of the traces that are replayed."""

from __future__ import annotations

from collections.abc import Mapping

from adaptor.figures.exhibits import Exhibit
from adaptor.simulation.jobs import Jobs
from adaptor_experiments.derose.design import Workload

_HEADINGS = (
    *("workload", "processors", "paper: requests", "ours: requests", "paper: load", "ours: load"),
    *("paper: period", "ours: days", "reason"),
)
_DAY = 86_400


def table_1(replayed: Mapping[Workload, Jobs]) -> Exhibit:
    """`replayed`: the jobs as they come in this run, at whatever load."""
    return Exhibit(
        name="table-1",
        title="Table 1: the workloads",
        headings=_HEADINGS,
        rows=[_row(workload, jobs) for workload, jobs in replayed.items()],
        remarks=("`adaptor trace info` shows more of a trace, and what is repaired when it is replayed.",),
    )


def _row(workload: Workload, jobs: Jobs) -> list[str]:
    return [
        workload.title,
        f"{workload.processors:,}",
        "-" if workload.requests is None else f"{workload.requests:,}",
        f"{len(jobs):,}",
        "-" if workload.load is None else f"{workload.load:.0%}",
        f"{jobs.offered_load(workload.processors):.1%}",
        workload.period or "-",
        f"{(jobs.submit[-1] - jobs.submit[0]) / _DAY:,.0f}",
        workload.reason,
    ]
