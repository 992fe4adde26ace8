"""Two partitions of a real Slurm that share a node: each request goes where its hole is, and starts there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.config.loading import parse_config
from adaptor.config.schema import SiteConfig
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, SiteState, SubmitRequest
from adaptor.daemon.sites import limits_of, make_backend
from adaptor.model import Limits, QueueState
from adaptor.reports import JobState
from backends.base import Backend, PartitionClosed, PilotOrder
from backends.observed import backend as observed
from backends.registry import site_rules
from backends.slurm import questions
from backends.slurm.questions import read
from tests.clusters.slurm import ThrowawaySlurm
from tests.living import until
from tests.runtimes.known import known_runtimes

pytestmark = pytest.mark.slurm

CONFIG = """
sites:
  cluster:
    backend: slurm
    partitions:
      express: {}
      long: {limits: {max_tr: 2h}}
"""
SLEEP = ("/bin/sh", "-c", "sleep 300")


@pytest.fixture
def partitions(slurm: ThrowawaySlurm) -> Iterator[ThrowawaySlurm]:
    """`express` has the nodes n1 and n2 for ten minutes, `long` has n2, n3 and n4 for four hours."""
    terms = {"express": ["Nodes=n1,n2", "MaxTime=10"], "long": ["Nodes=n2,n3,n4", "MaxTime=4:00:00"]}
    for name, settings in terms.items():
        slurm.run(["scontrol", "create", f"PartitionName={name}", "State=UP", *settings])
    yield slurm
    slurm.clear()
    for name in terms:
        slurm.run(["scontrol", "delete", f"PartitionName={name}"])


def local_job(slurm: ThrowawaySlurm, minutes: int, *options: str) -> str:
    given = [f"-t{minutes}", "-o/dev/null", *options, "--wrap", "sleep 3600"]
    return slurm.run(["sbatch", "--parsable", "-p", "batch", *given]).strip()


def told(slurm: ThrowawaySlurm, field: str, *jobs: str) -> list[str]:
    text = slurm.run(["squeue", "-h", "-j", ",".join(jobs), "-o", field], env={"SLURM_TIME_FORMAT": "%s"})
    return text.split()


def config(text: str = CONFIG) -> SiteConfig:
    return parse_config(text, "site.yaml").sites["cluster"]


def view(
    backend: Backend, site: SiteConfig, queue: QueueState, heuristic: str, *demands: Demand
) -> SiteState:
    rules = site_rules(site, backend, limits_of(site, backend), float(site.pad))
    return SiteState(now=queue.now, queue=queue, rules=rules, heuristic=heuristic, demands=demands)


def tasks(count: int, runtime: float, bag: int) -> Demand:
    known = known_runtimes(finished=10, mean=runtime, longest=runtime)
    return Demand(waiting=count, runtime=runtime, bag=bag, times=known)


@pytest.mark.parametrize(
    ("heuristic", "told_of_express"), [("adaptive", "in express ("), ("completion", "in express now")]
)
def test_each_request_goes_to_the_partition_that_has_its_hole(
    partitions: ThrowawaySlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    heuristic: str,
    told_of_express: str,
) -> None:
    """n1 is idle until a job for n1 and n2 starts when n2 is; 2 processors of n3 are idle for long."""
    slurm = partitions
    running = [
        local_job(slurm, 8, "--exclusive", "--nodelist=n2"),
        local_job(slurm, 60, "--ntasks=2", "--nodelist=n3"),
        local_job(slurm, 60, "--exclusive", "--nodelist=n4"),
    ]
    until(lambda: told(slurm, "%t", *running) == ["R"] * 3, "all local jobs run")
    planned = local_job(slurm, 30, "--exclusive", "--nodes=2", "--nodelist=n1,n2")
    until(lambda: told(slurm, "%S", planned)[0].isdigit(), "the last job is planned")

    site = config(f"{CONFIG}    heuristic: {heuristic}\n")
    backend = make_backend("cluster", site, tmp_path)
    limits = limits_of(site, backend)
    assert limits.partitions["express"] == Limits(max_pending_requests=4, max_proc=8, max_tr=600)
    assert limits.partitions["long"] == Limits(max_pending_requests=4, max_proc=12, max_tr=7200)
    assert limits.max_tr == 7200

    readings = []
    monkeypatch.setattr(observed, "FRESH", math.inf)
    monkeypatch.setattr(questions, "read", lambda *asked, **more: readings.append(1) or read(*asked, **more))
    queue = backend.queue_state()
    assert len(readings) == 1, "for both partitions"
    assert {name: each.processors for name, each in queue.partitions.items()} == {"express": 8, "long": 12}
    seen = view(backend, site, queue, heuristic, tasks(4, 60.0, bag=1), tasks(2, 1200.0, bag=2))
    issued = [each for each in plan(seen) if isinstance(each, SubmitRequest)]
    found = {each.demand.bag: each.crafted for each in issued}
    assert len(issued) == len(found) == 2
    assert (found[1].partition, found[1].request.p) == ("express", 4)
    assert (found[2].partition, found[2].request.p) == ("long", 2)
    assert told_of_express in found[1].reason
    assert all(each.predicted_start == queue.now for each in found.values())

    jobs = {}
    for bag, each in found.items():
        folder = tmp_path / each.partition
        folder.mkdir(mode=0o700)
        order = PilotOrder(
            tag=f"{heuristic}.{bag}", request=each.request, task=issued[0].demand.task, directory=folder,
            worker=SLEEP, environment={}, partition=each.partition,
        )  # fmt: skip
        jobs[bag] = backend.submit(order)
    until(
        lambda: (
            {each.state for each in backend.jobs(list(jobs.values()), f"{heuristic}.")} == {JobState.RUNNING}
        ),
        "both requests run",
    )
    assert told(slurm, "%P %N", jobs[1]) == ["express", "n1"]
    assert told(slurm, "%P %N", jobs[2]) == ["long", "n3"]
    assert told(slurm, "%t", planned) == ["PD"]


def test_a_partition_that_is_down_closes_no_other(partitions: ThrowawaySlurm, tmp_path: Path) -> None:
    backend = make_backend("cluster", config(), tmp_path)
    partitions.run(["scontrol", "update", "PartitionName=express", "State=DOWN"])
    queue = backend.queue_state()
    assert list(queue.partitions) == ["long"]
    assert queue.closed == {"express": "partition express is down: it starts no jobs at the moment"}
    partitions.run(["scontrol", "update", "PartitionName=long", "State=DOWN"])
    with pytest.raises(PartitionClosed, match=r"express: .* is down.*long: .* is down"):
        backend.queue_state()


def test_what_one_entry_says_is_what_the_site_alone_would_say(
    partitions: ThrowawaySlurm, tmp_path: Path
) -> None:
    job = local_job(partitions, 60, "--ntasks=2", "--nodelist=n3")
    until(lambda: told(partitions, "%t", job) == ["R"], "the local job runs")
    listed, alone = (
        config(f"sites: {{cluster: {{backend: slurm, {where}}}}}")
        for where in ("partitions: {long: {}}", "partition: long")
    )
    both = [make_backend("cluster", site, tmp_path) for site in (listed, alone)]
    first, second = (backend.queue_state() for backend in both)
    assert msgspec.structs.replace(first.partitions["long"], now=0.0) == msgspec.structs.replace(
        second, now=0.0
    )
    limits = limits_of(listed, both[0])
    assert msgspec.structs.replace(limits, partitions={}) == limits_of(alone, both[1])
