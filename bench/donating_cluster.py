"""A real Slurm of four nodes whose idle nodes a real daemon uses, for measurements."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import msgspec

from bench.private_daemon import PrivateDaemon, private_place
from tests.clusters.slurm import ThrowawaySlurm

NODES = 4
TASKS = 16
"""One for each processor."""
PATIENCE = 60.0
"""Seconds after which something that should have come about is given up."""


class DonatingCluster:
    def __init__(self, slurm: ThrowawaySlurm, place: PrivateDaemon) -> None:
        self.slurm = slurm
        self.place = place
        self._bag = place.folder / "long.bag"
        self._bag.write_text("#ADAPTOR allocation=transparent\n" + "sleep 1000\n" * TASKS)

    def use_all(self) -> int:
        """Have tasks run on all processors of all nodes; their bag."""
        bag = int(msgspec.json.decode(self.place.adaptor("submit", str(self._bag), "--json"))["bag"])
        self.wait_for_tasks(bag)
        return bag

    def wait_for_tasks(self, bag: int) -> None:
        """Wait until all of its tasks run."""
        until(lambda: self._running(bag) == TASKS, "tasks run on all nodes")

    def _running(self, bag: int) -> int:
        (found,) = msgspec.json.decode(self.place.adaptor("status", str(bag), "--json"))["bags"]
        return int(found["running"])


@contextlib.contextmanager
def donating_cluster(donation: str) -> Iterator[DonatingCluster]:
    """`donation`: that part of the site's configuration; `{folder}` stands for a folder that is removed."""
    with ThrowawaySlurm() as slurm:
        told = donation.replace("{folder}", str(slurm.root))
        site = f"{{backend: slurm, partition: batch, poll_interval: 2, donation: {told}}}"
        with private_place(f"sites: {{hpc: {site}}}\n", slurm.env) as place:
            place.adaptor("daemon", "start")
            yield DonatingCluster(slurm, place)


def until(condition: Callable[[], bool], what: str) -> None:
    """Raises RuntimeError: it does not come about."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > give_up:
            raise RuntimeError(f"waited {PATIENCE:g} s in vain: {what}")
        time.sleep(0.1)
