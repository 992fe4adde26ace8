"""Tasks longer than the first tr: the walltime meets the first pilot, tr grows, nothing is charged."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.timeout(400)]


def test_tr_grows_by_the_factor_until_the_tasks_finish(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure("""
        sites:
          hpc:
            backend: slurm
            partition: batch
            limits: {max_pending_requests: 1, max_proc: 4, max_tr: 10m}
            heuristic: adaptive
            initial_tr: 30s
            growth_factor: 2
            pad: 30s
            poll_interval: 2
    """)
    lab.bag(['[ "$ADAPTOR_ATTEMPT" -gt 1 ] || sleep 70'] * 4)  # longer than the minute, in the first one
    lab.run("run", "tasks.bag", timeout=350)
    exactly_one_result_each(lab, 1, 4)
    requests = lab.ask("report", "1")["requests"]
    # Cut after 55 s of its minute, or a few less where the worker starts slowly; twice that and the pad are
    # more than two minutes.
    assert [request["tr"] for request in requests] == [60, 180]
    assert [task["attempts"] for task in lab.results(1)] == [2] * 4
