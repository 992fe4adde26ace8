"""A sample of the experiment by the compiled kernel is that by the scheduling core, field by field."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor_experiments.derose.design import WORKLOADS, Settings, Workload
from adaptor_experiments.derose.sample import load, run_sample
from adaptor_simulation.tasks.broker_tasks import BrokerTasks
from adaptor_simulation.tasks.kernel_tasks import KernelTasks

ROOT = Path(__file__).parents[3]
SHARED = ROOT / ".." / "shared" / "traces"
SMALL = Workload(key="small", title="small", file="small", processors=64)
SETTINGS = Settings(
    tasks=(100, 1000), means=(100, 10_000), heterogeneities=(1, 4), max_pending=(1, 3), max_tr=64_800
)


def same(workload: Workload, path: Path, sample: int) -> None:
    jobs = load(path, workload.processors)
    by_kernel, by_core = (
        [
            msgspec.structs.replace(each, planning=0.0)
            for each in run_sample(workload, jobs, SETTINGS, sample, make)
        ]
        for make in (KernelTasks, BrokerTasks)
    )
    assert len(by_kernel) == SETTINGS.jobs_per_sample
    assert by_kernel == by_core


def test_on_the_small_trace():
    same(SMALL, ROOT / "fixtures" / "traces" / "small.swf", 0)


def test_on_a_real_trace():
    workload = WORKLOADS[0]
    path = SHARED / f"{workload.file}.swf.gz"
    if not path.is_file():
        pytest.skip(f"no trace {path}")
    same(workload, path, 0)
