"""A sample of the experiment by the compiled kernel is that by the scheduling core, field by field."""

from __future__ import annotations

import msgspec

from adaptor_experiments.derose.design import Settings, Workload
from adaptor_experiments.derose.sample import load, run_sample
from adaptor_simulation.tasks.broker_tasks import BrokerTasks
from adaptor_simulation.tasks.kernel_tasks import KernelTasks
from tests.experiments.conftest import SMALL

WORKLOAD = Workload(key="small", title="small", file="small", processors=64)
SETTINGS = Settings(
    tasks=(100, 300), means=(100, 10_000), heterogeneities=(1, 4), max_pending=(1, 3), max_tr=64_800
)


def test_on_the_small_trace() -> None:
    jobs = load(SMALL, WORKLOAD.processors)
    by_kernel, by_core = (
        [
            msgspec.structs.replace(outcome, planning=0.0)
            for outcome in run_sample(WORKLOAD, jobs, SETTINGS, 0, make)
        ]
        for make in (KernelTasks, BrokerTasks)
    )
    assert len(by_kernel) == SETTINGS.jobs_per_sample
    assert by_kernel == by_core
