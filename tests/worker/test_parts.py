"""Tasks on several nodes: what the first is told, and how the others are kept and cleaned."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.protocol.messages import AttemptKey, BagContext, Ending, Lease, Result
from adaptor.resources import TaskSize
from adaptor.worker.parts import NODEFILE, NodeFiles, Parts
from adaptor.worker.tasks import WorkerTasks
from adaptor.worker.timers import Timers
from tests.living import PATIENCE, until
from tests.worker.attempts import turn
from tests.worker.fake_daemon import Harness

KEY = AttemptKey(1, 2, 1)


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    return NodeFiles(tmp_path)


@pytest.fixture
def stray(files: NodeFiles) -> Iterator[subprocess.Popen[bytes]]:
    """What an attempt has started on this node, as `srun` would: no child of its worker."""
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, NODEFILE: str(files.path(KEY))})
    until(lambda: files.processes(KEY), "it has its environment", pause=0.01)
    yield process
    process.kill()
    process.wait()


def test_a_node_file_has_a_host_a_line_and_is_private(files: NodeFiles) -> None:
    path = files.write(KEY, ["n1", "n2"])
    assert path.read_text() == "n1\nn2\n"
    assert path.stat().st_mode & 0o777 == 0o600
    files.remove(KEY)
    files.remove(KEY)
    assert not path.exists()


def test_what_an_attempt_left_on_a_node_is_asked_to_end(
    files: NodeFiles, stray: subprocess.Popen[bytes]
) -> None:
    timers, ended = Timers(), list[Result]()
    parts = Parts(files, timers, ended.append)
    parts.begin(KEY)
    parts.end([KEY], Ending.ABORTED, time.monotonic() + 100)
    assert stray.wait(PATIENCE) == -15

    def looked() -> list[Result]:
        timers.run(time.monotonic())
        return ended

    (result,) = until(looked, "nothing runs there", pause=0.01)
    assert (result.key, result.ending) == (KEY, Ending.ABORTED)
    assert KEY not in parts


def test_what_does_not_end_is_killed(files: NodeFiles) -> None:
    stubborn = subprocess.Popen(
        ["sh", "-c", "trap '' TERM; echo; while :; do sleep 0.05; done"],
        env={**os.environ, NODEFILE: str(files.path(KEY))},
        stdout=subprocess.PIPE,
    )
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    timers, ended = Timers(), list[Result]()
    parts = Parts(files, timers, ended.append)
    parts.begin(KEY)
    now = time.monotonic()
    parts.end([KEY], Ending.ENDED, now + 100)
    timers.run(now + 50)
    assert not ended
    timers.run(now + 101)
    (result,) = ended
    assert result.ending is Ending.ENDED
    assert stubborn.wait(PATIENCE) == -9
    stubborn.stdout.close()


def test_another_attempt_is_left_alone(files: NodeFiles, stray: subprocess.Popen[bytes]) -> None:
    timers, ended = Timers(), list[Result]()
    parts = Parts(files, timers, ended.append)
    other = AttemptKey(1, 2, 2)
    parts.begin(other)
    parts.end([other], Ending.ABORTED, time.monotonic())
    timers.run(time.monotonic())
    assert len(ended) == 1
    assert stray.poll() is None


def test_a_node_that_takes_part_runs_nothing_and_is_not_idle(tasks: WorkerTasks, bag: BagContext) -> None:
    tasks.know(BagContext(1, bag.cwd, bag.output, bag.environment, TaskSize(nodes=2)))
    tasks.accept(Lease(KEY, [], 0.0, nodes=["n1", "n2"], takes_part=True))
    tasks.start(time.monotonic())
    assert (tasks.holding, tasks.running, tasks.started) == ([KEY], [KEY], [KEY])
    assert (tasks.runner.loads(0.0), tasks.slots.free_processors, tasks.idle) == ([], 0, False)
    assert [key for key, _ in tasks.loads(time.monotonic())] == [KEY]
    tasks.abort([KEY], time.monotonic() + 5)
    turn(tasks)
    assert tasks.idle
    assert [result.ending for result in tasks.outbox.results()] == [Ending.ABORTED]


def test_the_first_node_runs_the_command_and_names_the_others(harness: Harness) -> None:
    harness.started()
    bag = harness.bag(task=TaskSize(nodes=2))
    lease = Lease(AttemptKey(1, 0, 1), "echo $ADAPTOR_NODES; cat $ADAPTOR_NODEFILE", 0.0, nodes=["n1", "n2"])
    harness.lease(lease, bags=[bag])
    harness.daemon.until(lambda: lease.key in harness.daemon.results)
    assert harness.daemon.results[lease.key].exit_code == 0
    assert (harness.output / "0.out").read_text() == "2\nn1\nn2\n"
    assert not list(harness.pilot.glob("nodes-*")), "the node file is removed"
