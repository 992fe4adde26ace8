"""What is left of a job that gives nodes back."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from adaptor.reports import JobState
from backends.base import SchedulerError
from backends.slurm.rows import QueueRow
from backends.slurm.states import job_state


def remaining_nodes(rows: Iterable[QueueRow], id: str, leaving: Collection[str]) -> list[str]:
    """The nodes that a running job keeps; always the first one, where its script runs.

    Raises:
        SchedulerError: the job does not run, or has none of these nodes to give back.
    """
    row = next((row for row in rows if row.id == id), None)
    if row is None or job_state(row.state) is not JobState.RUNNING:
        raise SchedulerError(f"job {id} does not run: it has no nodes to give back")
    kept = [node for node in row.nodes if node not in leaving or node == row.nodes[0]]
    if len(kept) == len(row.nodes):
        raise SchedulerError(f"job {id} can give back none of {', '.join(sorted(leaving))}")
    return kept
