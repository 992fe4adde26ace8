"""The clusters on which `lab.campaign.shim_clients` compares: empty, busy, and busy with limits on jobs."""

from __future__ import annotations

import contextlib
import getpass
import os
import threading
from collections.abc import Iterator
from typing import NamedTuple

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions

OTHER = "nobody"
"""The user whose jobs are in the way: the limits of ours do not bind them."""
MAX_JOBS, MAX_SUBMIT = 4, 10
LIMITS = ClusterOptions(
    accounting=True,
    accounts=(
        "add account lab",
        *(f"add user {user} account=lab DefaultAccount=lab" for user in (getpass.getuser(), OTHER)),
        f"modify user where name={getpass.getuser()} account=lab set"
        f" MaxJobs={MAX_JOBS} MaxSubmitJobs={MAX_SUBMIT}",
    ),
    extra=(
        "AccountingStorageEnforce=associations,limits,qos",
        "PriorityType=priority/multifactor",
        "PriorityWeightAge=100000",
        "PriorityMaxAge=00:30:00",
        "PriorityCalcPeriod=1",
    ),
)


class Scene(NamedTuple):
    """A cluster, and the jobs of others on it."""

    options: ClusterOptions = ClusterOptions()
    waiting: int = 0
    """Jobs of others that always wait, each for a whole node."""
    seconds: int = 10
    """Runtime of each of them, on average; they ask for several times that, as people do."""
    at_once: int | None = None
    """Jobs that a client without shims may have in the system; None: any number."""


SCENES = {
    "empty": Scene(),
    "busy": Scene(waiting=8),
    "limits": Scene(LIMITS, waiting=12, seconds=20, at_once=MAX_SUBMIT),
    "limits, short": Scene(LIMITS, waiting=6, seconds=10, at_once=MAX_SUBMIT),
}
"""By name. The time that a job waits is about waiting / nodes × seconds."""


class Others:
    """The jobs of others. `submitted`: how many there were."""

    def __init__(self, cluster: ThrowawaySlurm, scene: Scene) -> None:
        self.cluster, self.scene = cluster, scene
        self.submitted = 0
        self._ends = threading.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[Others]:
        """Fill the queue, and keep it full, until the end."""
        thread = threading.Thread(target=self._keep)
        if self.scene.waiting:
            self._fill(self.scene.waiting + self.cluster.options.nodes)
            thread.start()
        try:
            yield self
        finally:
            self._ends.set()
            if self.scene.waiting:
                thread.join()
                self.cluster.run(["scancel", "--name=others"])

    def _keep(self) -> None:
        while not self._ends.wait(1.0):
            waiting = self.cluster.run(["squeue", "-h", "-t", "PD", "-n", "others", "-o", "%i"]).split()
            self._fill(self.scene.waiting - len(waiting))

    def _fill(self, jobs: int) -> None:
        of_other = [f"--uid={OTHER}", "--account=lab"] if self.scene.options.accounting else []
        if of_other and os.getuid():
            raise SystemExit("this scene has jobs of another user: run it as root")
        for number in range(jobs):
            # Half as long to half as long again: nodes become free one by one.
            seconds = self.scene.seconds * (1 + ((self.submitted + number) % 5 - 2) / 4)
            minutes = 1 if self.scene.seconds <= 10 else 2
            size = [f"--time={minutes}", "-N1", "--exclusive", "--output=/dev/null", "--job-name=others"]
            self.cluster.run(["sbatch", *of_other, *size, "--wrap", f"sleep {seconds}"])
        self.submitted += max(0, jobs)
