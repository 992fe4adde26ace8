"""A bag while the daemon runs as a job that hands over and is killed: lost, doubled, time without a daemon.

Between hand-overs by themselves, one after another: `kill -9` of the daemon, of the scheduler's server (back
after 20 s), of the node on which the daemon runs. The scheduler takes a node for lost after 20 s.

    python -m lab.campaign.handovers --scheduler slurm --tasks 1000 --handovers 3
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from adaptor.daemon.jobs.record import DaemonJobs, read_jobs
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, site
from tests.living import until

AWAY = re.compile(r"no daemon ran for (\S+(?: \S+)?) \(since (\S+ \S+)\)")
LOST = 20  # seconds until the scheduler takes a node for lost
PATIENCE = 300.0


class SlurmScene:
    def __init__(self) -> None:
        self.cluster = ThrowawaySlurm(ClusterOptions(nodes=6, extra=(f"SlurmdTimeout={LOST}",)))
        self.cluster.start()
        os.environ.update(self.cluster.env)
        self.limits = ("slurm", (2, 6, "20m"))

    def node_of(self, job: str) -> str:
        return self.cluster.run(["squeue", "-h", "-j", job, "-o", "%N"]).strip()

    def lose_node(self, node: str) -> None:
        self.cluster.stop_node(node)

    def bring_back(self, node: str) -> None:
        self.cluster.start_node(node)

    def lose_server(self) -> None:
        self.cluster.stop_controller(kill=True)

    def start_server(self) -> None:
        self.cluster.start_controller()


class OpenPbsScene:
    def __init__(self) -> None:
        self.cluster = ThrowawayOpenPbs()
        self.cluster.start()
        os.environ.update(self.cluster.env)
        self.cluster.run(["qmgr", "-c", f"set server node_fail_requeue = {LOST}"])
        self.limits = ("pbs", (2, 4, "20m"))

    def node_of(self, job: str) -> str:
        held = self.cluster.run(["qstat", "-f", job])
        return next(name for name in self.cluster.nodes if f"{name}/" in held)

    def lose_node(self, node: str) -> None:
        self.cluster.stop_node(node)

    def bring_back(self, node: str) -> None:
        self.cluster.start_mom(node)

    def lose_server(self) -> None:
        self.cluster.stop_server()

    def start_server(self) -> None:
        self.cluster.start_server()


SCENES: dict[str, Callable[[], SlurmScene | OpenPbsScene]] = {"slurm": SlurmScene, "openpbs": OpenPbsScene}


class Campaign:
    def __init__(self, scene: SlurmScene | OpenPbsScene, lab: Lab, tasks: int) -> None:
        self.scene, self.lab, self.tasks = scene, lab, tasks
        backend, limits = scene.limits
        keys = {"initial_tr": "1m", "idle_timeout": 20, "command_timeout": 10}
        lab.configure(site(backend, limits, **keys, daemon={"worker_timeout": 15}))

    def jobs(self) -> DaemonJobs:
        jobs = read_jobs(self.lab.state)
        assert jobs is not None
        return jobs

    def after(self, what: str, number: int) -> None:
        """Until a later job runs the daemon, and that answers."""
        until(lambda: self.jobs().current > number, f"{what}: another job continues", timeout=PATIENCE)
        self.answers(what)

    def answers(self, what: str) -> None:
        until(lambda: self.lab.daemon_answers(), f"{what}: a daemon answers", timeout=PATIENCE)

    def run(self, handovers: int, walltime: str, seconds: float) -> None:
        self.lab.run("daemon", "submit", "-t", walltime)
        # The middle of a bag is met by all kills: its last tasks wait until the last of them.
        held = self.tasks // 10
        self.lab.bag(
            [f"sleep {seconds:g}; echo $ADAPTOR_TASK_ID >> {self.lab.work}/ran"] * (self.tasks - held)
            + [f"{self.lab.hold()}; echo $ADAPTOR_TASK_ID >> {self.lab.work}/ran"] * held
        )
        self.lab.submit("tasks.bag")
        for number, kill in zip(range(handovers), self.kills(), strict=False):
            self.after(f"hand-over {number + 1}", self.jobs().current)
            print(f"hand-over {number + 1} is done, {self.lab.status()['done']} tasks are done", flush=True)
            kill()
        self.lab.release()
        self.lab.wait(timeout=PATIENCE + seconds * self.tasks)

    def kills(self) -> Iterator[Callable[[], None]]:
        yield self.kill_daemon
        yield self.kill_server
        yield self.kill_node
        while True:
            yield lambda: None

    def kill_daemon(self) -> None:
        before = self.lab.daemon_pid()
        psutil.Process(before).send_signal(signal.SIGKILL)
        self.answers("kill -9 of the daemon")
        print("kill -9 of the daemon is done", flush=True)

    def kill_server(self) -> None:
        self.scene.lose_server()
        time.sleep(20)
        self.scene.start_server()
        print("the scheduler's server was away", flush=True)

    def kill_node(self) -> None:
        jobs = self.jobs()
        node = self.scene.node_of(jobs.current_job)
        self.scene.lose_node(node)
        self.after(f"loss of node {node}", jobs.current)
        self.scene.bring_back(node)
        print("the node of the daemon was lost", flush=True)

    def verdict(self) -> str:
        results = self.lab.results()
        lost = sum(task["state"] != "done" for task in results) + self.tasks - len(results)
        ran = Counter((self.lab.work / "ran").read_text().split())
        twice = sum(count > 1 for count in ran.values())
        found = AWAY.findall((self.lab.state / "daemon.log").read_text())
        lines = [
            f"{self.tasks} tasks: lost {lost}, results doubled {len(results) - self.tasks}, run twice {twice}"
        ]
        return "\n".join([*lines, *(f"no daemon for {away} since {since}" for away, since in found)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheduler", choices=SCENES, default="slurm")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a task")
    parser.add_argument("--handovers", type=int, default=3)
    parser.add_argument("--walltime", default="2m", help="of each job of the daemon")
    chosen = parser.parse_args()
    scene = SCENES[chosen.scheduler]()
    try:
        with tempfile.TemporaryDirectory(prefix="handovers-") as folder:
            lab = Lab(Path(folder))
            campaign = Campaign(scene, lab, chosen.tasks)
            try:
                campaign.run(chosen.handovers, chosen.walltime, chosen.seconds)
                print(campaign.verdict(), flush=True)
            finally:
                lab.close()
    finally:
        scene.cluster.stop()


if __name__ == "__main__":
    main()
