"""What our own jobs ask for now, by squeue."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from backends.slurm.jobs import OwnSlurmJobs
from backends.slurm.rows import AccountingRow, QueueRow
from tests.backends.slurm.slurm_rows import job


class Rows:
    """Questions whose answers are rows."""

    def __init__(self, *rows: QueueRow) -> None:
        self._rows = list(rows)

    def own_jobs(self) -> list[QueueRow]:
        return self._rows

    def accounting(self, ids: Collection[str]) -> list[AccountingRow]:
        return []

    def accounting_since(self, start: str) -> list[AccountingRow]:
        return []


@pytest.mark.parametrize(
    ("row", "whole_nodes", "told"),
    [
        (job("7", 6, node_count=2), False, (6, 600.0)),
        (job("7", 1), False, (1, 600.0)),
        (job("7", 3, node_count=3), False, (None, 600.0)),
        (job("7", 12, nodes=("n1", "n2", "n3")), False, (12, 600.0)),
        (job("7", 1), True, (None, 600.0)),
    ],
    ids=["tasks", "one processor", "three whole nodes", "running", "a site of whole nodes"],
)
def test_what_a_job_asks_for_now(row: QueueRow, whole_nodes: bool, told: tuple[int | None, float]) -> None:
    (report,) = OwnSlurmJobs(Rows(row), whole_nodes=whole_nodes).reports(["7"], "none")  # type: ignore[arg-type]
    assert (report.processors, report.limit) == told
