"""`kill -9` of the daemon, of a node's PBS and of the server in the middle of a bag on a real OpenPBS."""

from __future__ import annotations

import pytest

from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.pbs

TERMS = {"initial_tr": "30s", "idle_timeout": 10, "command_timeout": 10}
SITE = site("pbs", (3, 8, "20m"), **TERMS, daemon={"worker_timeout": 8})
TASKS = 80
FREE = 20
"""Tasks that run at once; the others wait until they are released."""


@pytest.fixture
def busy(openpbs: ThrowawayOpenPbs, lab: Lab) -> Lab:
    lab.begin(SITE, [f"{lab.hold_after(FREE)}; sleep 2; echo $ADAPTOR_TASK_ID"] * TASKS)
    return lab


def jobs(openpbs: ThrowawayOpenPbs) -> list[str]:
    return openpbs.run(["qselect"], check=False).split()


def test_daemon_mom_and_server_are_killed(openpbs: ThrowawayOpenPbs, busy: Lab) -> None:
    victim = next(pilot for pilot in busy.pilots() if pilot["state"] == "running")
    held = openpbs.run(["qstat", "-f", victim["job"]])
    node = next(name for name in openpbs.nodes if f"{name}/" in held)
    openpbs.stop_mom(node)
    openpbs.stop_server()
    busy.restart_daemon()
    before = busy.status()["done"]
    busy.release()
    until(lambda: busy.status()["done"] > before + 3, "tasks finish while the server is away")
    openpbs.start_server()
    openpbs.start_mom(node)
    busy.wait(timeout=300)
    exactly_one_result_each(busy, 1, TASKS)
    until(lambda: not jobs(openpbs), "no pilot is left in the queue", timeout=100)


@pytest.mark.nightly  # test_daemon_mom_and_server_are_killed is the usual one
def test_a_node_loses_its_power(openpbs: ThrowawayOpenPbs, busy: Lab) -> None:
    victim = next(pilot for pilot in busy.pilots() if pilot["state"] == "running")
    held = openpbs.run(["qstat", "-f", victim["job"]])
    node = next(name for name in openpbs.nodes if f"{name}/" in held)
    openpbs.stop_node(node)
    busy.release()
    busy.wait(timeout=300)
    exactly_one_result_each(busy, 1, TASKS)
    openpbs.start_mom(node)
    until(lambda: not jobs(openpbs), "no pilot is left in the queue", timeout=100)


@pytest.mark.parametrize("options", [("--mem", "2G"), ("--cpus", "3")], ids=["memory", "processors"])
def test_tasks_of_which_few_fit_on_a_node_run(
    openpbs: ThrowawayOpenPbs, lab: Lab, options: tuple[str, ...]
) -> None:
    """No request is for more of them than the empty nodes hold, so none waits for ever."""
    lab.configure(site("pbs", (3, 12, "20m"), **TERMS))
    lab.bag(["sleep 1"] * 12)
    lab.submit(*options, "tasks.bag")
    lab.wait()
    exactly_one_result_each(lab, 1, 12)
