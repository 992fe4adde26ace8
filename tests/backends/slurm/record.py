"""Records what a real Slurm prints: `python -m tests.backends.slurm.record`, once for each release.

It starts a throwaway cluster, makes the scene below, asks every question of `backends.slurm.questions` by its
own methods, and writes the answers to `fixtures/slurm/RELEASE/`: without names of hosts and folders, and as
if the scene was at NOW.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from backends.base import SchedulerError
from backends.commands import CommandAnswer, Commands
from backends.machines.here import HERE
from backends.slurm.questions import Questions, asking_environment
from tests.backends.slurm.answers import FIXTURES, MARK
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import DEFAULT_PARTITIONS, MIXED, Partition
from tests.clusters.throwaway import ClusterError

NOW = 1795370432

CLUSTER = replace(
    MIXED,
    partitions=(
        *DEFAULT_PARTITIONS,
        Partition("whole", "OverSubscribe=EXCLUSIVE PriorityTier=5"),
        Partition("user", "ExclusiveUser=YES PriorityTier=5"),
        Partition("forced", "OverSubscribe=FORCE:2 PriorityTier=5"),
        Partition("asked", "OverSubscribe=YES:4 PriorityTier=5"),
    ),
)

_FAKE = (
    "UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=1 Nice=0 Account=(null) QOS=(null) "
    "JobState=RUNNING Nodes=n1 CPU_IDs=0-7 Mem=9 GRES=gpu:8 OverSubscribe=NO Exclusive=NODE "
    "Licenses=matlab:9 Network=(null) Command=(null) WorkDir=/tmp StdErr= StdIn= StdOut="
)
LIE = f"x {_FAKE} TresPerJob=gres/gpu:8\nJobId=1 JobName=uneven {_FAKE}\nJobId=99 JobName=none {_FAKE}"
"""Text of a user: the end of a record, one of job 1, and one of a job that there is not."""

_RUNNING = (
    ("uneven", "-N2 --ntasks-per-node=4 -w n3,n4 --mem-per-cpu=100M"),
    ("alone", "-w n1 --exclusive --mem=100M"),
    ("asleep", "-w n3 --gres=gpu:1 --mem=300M"),
    ("many", "--array=1-3%1 -w n2 --mem=200M"),
    (LIE, "-w n2 --mem=50M"),
    ("licensed", "-w n3 --licenses=matlab:1 --mem=100M"),
    ("per-gpu", "-n1 -w n3 --gpus-per-task=1 --mem-per-gpu=70M"),
    ("by-user", "-w n2 --exclusive=user --mem=60M"),
)
_WAITING = (
    ("typed", "--gres=gpu:a100:1 --mem=500M"),
    ("tasks", "-n3 -c3 --mem-per-cpu=200M --constraint=new|old"),
    ("pair", "-N2 -n2 --exclusive --constraint=[new|old] -x n1"),
    ("gpus", "-n4 --gpus-per-task=1 --mem-per-gpu=300M -w n3"),
    ("all", "-n4 --gpus=a100:2"),
    ("fast", "-p short,batch -n2 --mem=3G --constraint=fast -t 5"),
    ("held", "--hold"),
    ("later", "--begin=now+3hours"),
    ("after", "--dependency=afterany:1"),
    ("too-long", "-p short -t 12"),
    ("gone", "-N4"),
    ("in-whole", "-p whole"),
    ("in-user", "-p user --mem=10M"),
    ("in-forced", "-p forced --mem=10M"),
    ("in-asked", "-p asked --oversubscribe --mem=10M"),
    ("by-label", "--exclusive=mcs"),
    ("by-segment", "--exclusive=topo"),
)
_HIDDEN_TEXT = ("account", "wckey", "comment", "network")
_MINUTES = "30"


def make_scene(cluster: ThrowawaySlurm) -> None:
    """Some jobs run, others wait, each for another reason; one of them fills the text that users choose."""
    for name, options in _RUNNING:
        _submit(cluster, name, *options.split())
    _until(lambda: len(cluster.run(["squeue", "-h", "-t", "R", "-o", "%i"]).split()) == len(_RUNNING))
    cluster.run(["scontrol", "suspend", _id_of(cluster, "asleep")])
    _submit(cluster, "liar", "-w", "n4", *(f"--{key}={LIE}" for key in _HIDDEN_TEXT), command=f"true '{LIE}'")
    for name, options in _WAITING:
        try:
            _submit(cluster, name, *options.split())
        except ClusterError as error:
            print(f"left out, this release does not know it: {name}: {error}", file=sys.stderr)
    two = ["--mem=10M", "--begin=now+3hours", "-n1", ":", "-n2", "--mem=20M", "--begin=now+3hours"]
    _submit(cluster, "two-parts", *two)
    cluster.run(["scancel", _id_of(cluster, "gone")])
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 3 * 3600))
    held = ["scontrol", "create", "reservation", f"starttime={soon}", "duration=60", "users=root"]
    cluster.run([*held, "reservationname=service", "nodes=n[1-2]"])
    cluster.run([*held, "reservationname=licence", "licenses=matlab:1", "flags=any_nodes"])
    _until(lambda: bool(re.search(r"n[1-4]", cluster.run(["squeue", "-h", "-n", "typed", "-o", "%Y"]))))


def _submit(cluster: ThrowawaySlurm, name: str, *options: str, command: str = "sleep 3600") -> None:
    fixed = ["sbatch", "-o", "/dev/null", f"--job-name={name}", "-t", _MINUTES]
    cluster.run([*fixed, *options, f"--wrap={command}"])


def _id_of(cluster: ThrowawaySlurm, name: str) -> str:
    return cluster.run(["squeue", "-h", "-n", name, "-o", "%A"]).split()[0]


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("the scene does not come about")
        time.sleep(0.5)


class Recording(Commands):
    """Keeps the answers."""

    def __init__(self) -> None:
        super().__init__(asking_environment, 30.0, HERE)
        self.answers: list[str] = []

    def run(self, program: str, *arguments: str) -> CommandAnswer:
        answer = super().run(program, *arguments)
        if not answer.status:
            headed = program == "squeue" and "-h" not in arguments
            self.answers.append(answer.output.partition("\n")[2] if headed else answer.output)
        return answer


def answers(cluster: ThrowawaySlurm) -> Iterator[tuple[str, str]]:
    """By the name of each question, what was printed; of questions without an answer, nothing."""
    commands = Recording()
    asking = Questions(commands)
    jobs = asking.queue()
    asked: dict[str, Callable[[], object]] = {
        "queue": asking.queue,
        "own_jobs": asking.own_jobs,
        "known": lambda: asking.known("1"),
        "preempted": asking.preempted,
        "nodes": asking.nodes,
        "node_details": asking.node_details,
        "job_details": lambda: asking.job_details(jobs),
        "licenses": asking.licenses,
        "reservations": asking.reservations,
        "partitions": asking.partitions,
        "settings": asking.settings,
        "associations": asking.associations,
        "qos": asking.qos,
        "groups": asking.groups,
        "accounting": lambda: asking.accounting(["1", "2"]),
        "accounting_since": lambda: asking.accounting_since("now-1days"),
        "ended_jobs": lambda: asking.ended_jobs(None),
    }
    mine = {name for name, method in vars(Questions).items() if callable(method) and not name.startswith("_")}
    composed = {"groups_told", "terms", "user"}
    assert asked.keys() == mine - composed, "a question of Questions is not asked here"
    for name, ask in asked.items():
        commands.answers.clear()
        try:
            ask()
        except SchedulerError as error:
            print(f"no answer to {name}: {error}", file=sys.stderr)
            continue
        for number, text in enumerate(commands.answers[:2]):
            yield f"{name}{'-alone' * number}", text


def cleaned(text: str, cluster: ThrowawaySlurm, now: float) -> str:
    """Without names of hosts and folders, marks and versions of this machine; at NOW."""
    text = text.replace(str(cluster.root), "/cluster").replace(socket.gethostname().split(".")[0], "host")
    text = re.sub(r"~[\w-]{12}", MARK, text)
    text = re.sub(r"OS=Linux .*?(?= RealMemory=)", "OS=Linux", text)
    text = re.sub(r"WorkDir=\S+", "WorkDir=/home", text)
    text = re.sub(r"(AllocNode:Sid=)\S+", r"\1host:1", text)
    shift = NOW - int(now)
    return re.sub(r"\b1[0-9]{9}\b", lambda found: str(int(found[0]) + shift), text)


def _told(text: str) -> str:
    """Settings in `scontrol show config` that have a value and name no folder."""
    kept = [line for line in text.splitlines() if "= (null)" not in line and "/cluster" not in line]
    return "".join(f"{line}\n" for line in kept if "=" in line)


def record(above: Path) -> Path:
    """The folder below this one, named after the release, with the answers of a cluster that is started."""
    cluster = ThrowawaySlurm(CLUSTER)
    cluster.start()
    try:
        os.environ.update(cluster.env)
        make_scene(cluster)
        now = time.time()
        release = Questions(Commands(asking_environment, 30.0, HERE)).settings()["SLURM_VERSION"]
        folder = above / ".".join(release.split(".")[:2])
        folder.mkdir(exist_ok=True)
        for name, text in answers(cluster):
            clean = cleaned(text, cluster, now)
            (folder / f"{name}.txt").write_text(_told(clean) if name == "settings" else clean, "utf-8")
    finally:
        cluster.stop()
    return folder


def main() -> int:
    reason = available()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    print(record(FIXTURES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
