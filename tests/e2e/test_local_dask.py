"""A cluster of Dask whose workers are tasks: scaled, adapted, renewed, lost, and left alone."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.lab import LONG, Lab
from tests.e2e.test_local_crashes import LOCAL, workers_of
from tests.e2e.test_local_executor import said
from tests.living import until

HEAD = """
import os, time
from pathlib import Path
from adaptor.dask import AdaptorCluster
from distributed import Client, get_worker

def square(n):
    time.sleep(0.02)
    return n * n, os.getpid()

def who_may_read_spilled_data(dask_worker):
    return Path(dask_worker.local_directory).parents[1].stat().st_mode & 0o77

def computed(client, *range_):
    results = client.gather(client.map(square, range(*range_)))
    return sum(value for value, _ in results), len({worker for _, worker in results})

"""


def test_a_cluster_computes_and_leaves_nothing_behind(lab: Lab) -> None:
    lab.configure(LOCAL)
    program = lab.program(
        HEAD
        + """
if __name__ == "__main__":
    with AdaptorCluster(2, mem="300M", lifetime="10m", name="mine") as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        print({worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()})
        print({*client.run(who_may_read_spilled_data).values()})
        print(computed(client, 100), cluster.scheduler_address.split(":")[0])
        cluster.scale(1)
        print(computed(client, 100, 150))
"""
    )
    assert said(program).splitlines() == ["{314572800}", "{0}", "(328350, 2) tls", "(785425, 1)"]
    (bag,) = lab.ask("status", "all")["bags"]
    assert (bag["name"], bag["state"], bag["failed"], bag["cancelled"]) == ("mine", "done", 0, 0)
    lab.run("watch", "1")


@pytest.mark.nightly  # workers live for ten seconds
def test_workers_are_renewed_and_come_back_after_a_kill(lab: Lab) -> None:
    lab.configure(LOCAL)
    program = lab.program(
        HEAD
        + """
if __name__ == "__main__":
    with AdaptorCluster(lifetime="10s") as cluster, Client(cluster) as client:
        cluster.adapt(minimum=1, maximum=2)
        client.wait_for_workers(1)
        first = client.submit(os.getpid).result()
        os.kill(first, 9)
        print(client.submit(os.getpid, pure=False).result() != first)
        lives = set()
        while len(lives) < 3:
            lives.add(client.submit(lambda: get_worker().id, pure=False).result())
            time.sleep(0.5)
        print(computed(client, 10)[0])
"""
    )
    assert said(program).split() == ["True", "285"]
    (bag,) = lab.ask("status", "all")["bags"]
    assert bag["done"] >= 1, "those that lived to their end are what is learned from"


@pytest.mark.nightly
def test_a_worker_that_fails_again_and_again_leaves_the_cluster(lab: Lab) -> None:
    lab.configure(LOCAL)
    program = lab.program(
        HEAD
        + """
if __name__ == "__main__":
    with AdaptorCluster(1, lifetime="5m", worker_options={"interface": "none9"}) as cluster:
        while cluster.worker_spec:
            time.sleep(0.2)
        cluster.scale(1)
        print(list(cluster.worker_spec))
"""
    )
    out, err = program.communicate(timeout=LONG)
    assert (program.returncode, out) == (0, "[0]\n"), err
    assert "worker 0 failed 4 times in a row and stays away" in err


@pytest.mark.nightly
def test_a_lifetime_that_no_pilot_has_is_refused(lab: Lab) -> None:
    lab.configure(LOCAL)
    program = lab.program(HEAD + 'if __name__ == "__main__":\n    AdaptorCluster(1, lifetime="300h")')
    assert "lifetime 300h, and a minute to leave: " in program.communicate(timeout=LONG)[1]


def test_a_lifetime_without_time_for_work_is_refused() -> None:
    from adaptor.dask import AdaptorCluster

    with pytest.raises(ValueError, match="lifetime 1s: a worker lives for 10 s at least"):
        AdaptorCluster(1, lifetime="1s")


@pytest.mark.nightly
def test_workers_end_with_the_program_that_was_killed(lab: Lab) -> None:
    lab.configure(LOCAL)
    program = lab.program(
        HEAD
        + """
if __name__ == "__main__":
    cluster = AdaptorCluster(2, lifetime="10m")
    client = Client(cluster)
    client.wait_for_workers(2)
    print("up", flush=True)
    time.sleep(3600)
"""
    )
    assert program.stdout is not None
    assert program.stderr is not None
    assert program.stdout.readline() == "up\n", program.stderr.read()
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    until(lambda: lab.ask("status", "all")["bags"][0]["running"] == 0, "the workers end")
    until(lambda: not workers_of(lab), "the pilots end")
