"""A bag on a real Grid Engine, through `kill -9` of the daemon and of the qmaster, and a deleted pilot."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.clusters.grid_engine import ThrowawayGridEngine
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.many_pilots import PILOTS, dying_at, narrow
from tests.living import until

pytestmark = pytest.mark.gridengine

TERMS = {"partition": "all.q", "initial_tr": "30s", "idle_timeout": 10, "command_timeout": 10}
SITE = site("gridengine", (3, 8, "20m"), **TERMS, daemon={"worker_timeout": 8})
TASKS = 40
FREE = 12
"""Tasks that run at once; the others wait until they are released."""


@pytest.fixture
def busy(gridengine: ThrowawayGridEngine, lab: Lab) -> Lab:
    lab.begin(SITE, [f"{lab.hold_after(FREE)}; sleep 1; echo $ADAPTOR_TASK_ID"] * TASKS)
    return lab


def jobs(gridengine: ThrowawayGridEngine) -> str:
    return gridengine.run(["qstat", "-u", "*"], check=False).strip()


def running(lab: Lab) -> list[str]:
    return [pilot["job"] for pilot in lab.pilots() if pilot["state"] == "running"]


def test_daemon_and_qmaster_are_killed_and_a_pilot_is_deleted(
    gridengine: ThrowawayGridEngine, busy: Lab
) -> None:
    victim = until(lambda: running(busy), "a pilot runs")[0]
    gridengine.run(["qdel", victim])
    gridengine.stop_master()
    busy.restart_daemon()
    before = busy.status()["done"]
    busy.release()
    gridengine.start_master()
    until(lambda: busy.status()["done"] > before + 3, "tasks finish")
    busy.wait(timeout=300)
    exactly_one_result_each(busy, 1, TASKS)

    def end() -> str:
        """The bag may be done before the scheduler shows the end of the pilot."""
        (state,) = {pilot["state"] for pilot in busy.pilots() if pilot["job"] == victim} - {"running"} or {""}
        return state

    assert until(end, "the pilot that was deleted has ended", timeout=100) == "cancelled"
    until(lambda: not jobs(gridengine), "no pilot is left in the queue", timeout=100)


def test_forty_pilots_are_one_array_also_where_the_daemon_dies_before_it_knows(
    gridengine: ThrowawayGridEngine, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = 1000
    monkeypatch.setenv("PATH", dying_at("qsub", '*" -t "*', tmp_path / "dying"))
    lab.configure(narrow("gridengine", partition="all.q"))
    lab.run("daemon", "start")
    (tmp_path / "dying" / "pid").write_text(str(lab.daemon_pid()))
    daemon = psutil.Process(lab.daemon_pid())
    lab.bag(["sleep 0.2; echo $ADAPTOR_TASK_ID"] * tasks)
    lab.submit("tasks.bag")
    daemon.wait(60)
    numbers = {line.split()[0] for line in jobs(gridengine).splitlines()[2:]}
    assert len(numbers) == 1
    lab.run("daemon", "start")
    until(lambda: lab.status()["done"] > 20, "tasks are done in the pilots of the array")
    assert {pilot["job"] for pilot in lab.pilots()} == {f"{min(numbers)}.{n}" for n in range(1, PILOTS + 1)}
    waits = until(lambda: [each for each in lab.pilots() if each["state"] == "queued"], "some wait")[-1]
    gridengine.run(["qdel", running(lab)[0], waits["job"]])

    def ended() -> bool:
        states = {pilot["id"]: pilot["state"] for pilot in lab.pilots()}
        return "cancelled" in states.values() and states[waits["id"]] in ("cancelled", "withdrawn")

    until(ended, "the ends of one that ran and of one that waited are seen")
    lab.wait(timeout=400)
    exactly_one_result_each(lab, 1, tasks)
    until(lambda: not jobs(gridengine), "no pilot is left in the queue", timeout=100)


def test_pilots_go_over_several_hosts(gridengine: ThrowawayGridEngine, lab: Lab) -> None:
    def is_wide() -> bool:
        shown = gridengine.run(["qstat", "-xml", "-f"])
        return any(shown.count(f"<JB_job_number>{job}<") > 1 for job in running(lab))

    one = site("gridengine", (1, 8, "20m"), **TERMS, heuristic="static", daemon={"worker_timeout": 8})
    lab.begin(one, [f"{lab.hold_after(FREE)}; sleep 1; echo $ADAPTOR_TASK_ID"] * TASKS)
    until(is_wide, "a pilot has slots of several hosts")
    lab.release()
    lab.wait(timeout=300)
    exactly_one_result_each(lab, 1, TASKS)
    assert list(lab.state.rglob("gridengine-pbs*.out")), "workers on other hosts were started by qrsh"


@pytest.mark.parametrize("options", [("--mem", "2G"), ("--cpus", "3")], ids=["memory", "processors"])
def test_tasks_of_which_few_fit_on_a_host_run(
    gridengine: ThrowawayGridEngine, lab: Lab, options: tuple[str, ...]
) -> None:
    """Slots are of one host where a task needs several, and each has as much `h_vmem` as its task needs."""
    lab.configure(site("gridengine", (3, 4, "20m"), **TERMS))
    lab.bag(["sleep 1"] * 12)
    lab.submit(*options, "tasks.bag")
    lab.wait()
    exactly_one_result_each(lab, 1, 12)


def test_a_script_of_grid_engine_runs_as_a_bag(gridengine: ThrowawayGridEngine, lab: Lab) -> None:
    lab.configure(SITE)
    lines = (
        "#!/bin/bash",
        "#$ -N sim -cwd -j y -t 2-6:2 -q all.q -l h_vmem=512M",
        "echo $JOB_NAME $SGE_TASK_ID",
    )
    lab.bag(lines, "job.sh")
    lab.submit("job.sh")
    lab.wait()
    found = {path.name: path.read_text() for path in lab.work.glob("sim.o*")}
    assert found == {f"sim.o1.{index}": f"sim {index}\n" for index in (2, 4, 6)}
