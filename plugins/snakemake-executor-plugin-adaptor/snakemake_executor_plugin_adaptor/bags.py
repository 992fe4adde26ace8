"""Which bag a job belongs to, and what its tasks need. Pure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

from adaptor.bag_spec import BagSpec
from adaptor.resources import TaskGpus

_MIB = 2**20
_OURS = ("mem_mb", "runtime", "gpu", "gpus", "gpu_model")


class BagKey(NamedTuple):
    """Jobs with the same key run in the same bag."""

    rule: str
    threads: int
    resources: tuple[tuple[str, Any], ...]
    """Of those that the bag takes into account, sorted."""


def key_of(job: JobExecutorInterface) -> BagKey:
    """The bag of a job: of its rule, or of its group, and of what it needs."""
    known = ((name, job.resources.get(name)) for name in _OURS)
    resources = tuple(sorted((name, value) for name, value in known if _is_given(value)))
    return BagKey(job.name, max(1, job.threads), resources)


def spec_of(key: BagKey, common: BagSpec) -> BagSpec:
    """The bag of such jobs; `common`: what all bags of a workflow share.

    Raises:
        ValueError: the resources are none that a task can have.
    """
    resources = dict(key.resources)
    # `gpu` as Snakemake's own plugins name it, or `gpus`.
    count = resources.get("gpu") or resources.get("gpus")
    return msgspec.structs.replace(
        common,
        name=f"{common.name}: {key.rule}",
        cpus=key.threads,
        memory=math.ceil(resources["mem_mb"] * _MIB) if resources.get("mem_mb") else None,
        gpus=(TaskGpus(count, str(resources.get("gpu_model", ""))) if count else None),
        time=60.0 * resources["runtime"] if resources.get("runtime") else None,
    )


def _is_given(value: object) -> bool:
    """False for what is not there, and for what Snakemake does not know yet, which is a text."""
    return (isinstance(value, (int, float)) and value > 0) or (
        isinstance(value, str) and bool(value) and not value.startswith("<")
    )
