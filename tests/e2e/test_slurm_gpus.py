"""Tasks with whole GPUs and with halves of them, on a real Slurm with two GPUs on each node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        limits: {max_pending_requests: 3, max_proc: 8, max_tr: 20m}
        initial_tr: 1m
        idle_timeout: 3
        poll_interval: 2
"""
TASK = "echo $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES $ADAPTOR_GPUS; date +%s.%N; sleep 1; date +%s.%N"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawaySlurm]:
    reason = available()
    if reason:
        pytest.skip(reason)
    options = ClusterOptions(
        nodes=2,
        node_settings=dict.fromkeys(("n1", "n2"), "Gres=gpu:a100:2"),
        gres=("Name=gpu Type=a100 File=/dev/tty[1-2]",),
        extra=("GresTypes=gpu",),
    )
    with ThrowawaySlurm(options) as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


def test_tasks_of_one_gpu_are_on_all_that_their_pilot_has(cluster: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag([TASK] * 12)
    lab.wait(lab.submit("tasks.bag", "--gpus", "a100:1"))
    seen: dict[str, set[str]] = defaultdict(set)
    for task in lab.results():
        seen[task["node"]].add(Path(task["stdout"]).read_text().split()[1])
    assert set(map(len, seen.values())) == {2}


def test_no_gpu_is_held_by_more_tasks_than_may_share_it(cluster: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag([TASK] * 12)
    whole = lab.submit("tasks.bag", "--gpus", "a100:1")
    halves = lab.submit("tasks.bag", "--gpus", "0.5")
    both = lab.submit("tasks.bag", "--gpus", "2")
    plain = lab.submit("tasks.bag")
    held: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for bag, count, share in ((whole, 1, 1.0), (halves, 1, 0.5), (both, 2, 1.0), (plain, 0, 1.0)):
        lab.wait(bag)
        exactly_one_result_each(lab, bag, 12)
        for task in lab.results(bag):
            words, begun, ended = Path(task["stdout"]).read_text().splitlines()
            gpus = words.split()[1].split(",") if count else []
            assert len(gpus) == count
            assert len(words.split()) == 1 + 2 * bool(count), "as ADAPTOR_GPUS says, or none at all"
            for gpu in gpus:
                held[task["node"], gpu].append((float(begun), float(ended), share))
    assert {gpu for _, gpu in held} == {"0", "1"}
    for spans in held.values():
        assert most_at_once(spans) <= 1.0
    lab.run("submit", "tasks.bag", "--gpus", "3", expect=2)
    lab.run("submit", "tasks.bag", "--gpus", "h100:1", expect=2)


def most_at_once(spans: Iterable[tuple[float, float, float]]) -> float:
    """The largest sum of shares at any instant."""
    changes = sorted(change for begun, ended, share in spans for change in ((begun, share), (ended, -share)))
    held = most = 0.0
    for _, change in changes:
        held += change
        most = max(most, held)
    return most
