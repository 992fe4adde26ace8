"""Table 1 has the traces as they are replayed beside the paper's."""

from __future__ import annotations

import msgspec
import numpy as np

from adaptor.simulation.jobs import Jobs
from adaptor_experiments.derose.design import WORKLOADS
from adaptor_experiments.derose.table_1 import table_1

HALF = Jobs(
    number=np.array([1, 2]), submit=np.array([0, 86_400]), run=np.array([43_200, 43_200]),
    estimate=np.array([50_000, 50_000]), processors=np.array([64, 64]),
)  # fmt: skip


def test_a_row_has_the_load_of_this_run() -> None:
    sp2 = WORKLOADS[0]
    exhibit = table_1({sp2: HALF, msgspec.structs.replace(sp2, key="fast"): HALF.stretched(0.5)})
    first, second = exhibit.rows
    assert len(exhibit.headings) == len(first)
    assert first[:8] == ["SDSC SP2", "128", "73,496", "2", "72%", "50.0%", "April 1998 to December 2000", "1"]
    assert "cleaned since" in first[8]
    assert second[5] == "100.0%"


def test_each_difference_from_the_paper_has_its_reason() -> None:
    assert all(workload.reason for workload in WORKLOADS)
