"""Numbers of jobs that a real Slurm gives out twice: the user's jobs live, and the pilots are made again."""

from __future__ import annotations

import shutil

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly]

SITE = site(
    "slurm", (3, 4, "20m"), initial_tr="3m", idle_timeout=10, command_timeout=10, daemon={"worker_timeout": 8}
)
TASKS = 30
NO_MEMORY = ClusterOptions(min_job_age=2)
LAST = 40
WRAPPING = ClusterOptions(min_job_age=2, extra=("FirstJobId=1", f"MaxJobId={LAST}"))


def mine(slurm: ThrowawaySlurm, lost: set[str], *, keep_others: bool = True) -> set[str]:
    """Jobs of the user's own that wait, until they have these numbers; arrays where these are of arrays.

    Args:
        keep_others: also those that came before, with other numbers.
    """
    elements = max((int(id.partition("_")[2]) + 1 for id in lost if "_" in id), default=0)
    options = ["-p", "short", "-J", "mine", "--hold", "-o", "/dev/null", "--wrap", "sleep 60"]
    array = [f"--array=0-{elements - 1}"] if elements else []
    own: set[str] = set()
    while not lost <= own:
        number = slurm.run(["sbatch", "--parsable", *array, *options]).strip()
        new = {f"{number}_{index}" for index in range(elements)} or {number}
        if keep_others or new & lost:
            own |= new
        else:
            slurm.run(["scancel", number])
    return own


def names(slurm: ThrowawaySlurm) -> dict[str, str]:
    """Of all jobs in the system, by their numbers."""
    rows = slurm.run(["squeue", "-h", "-r", "-t", "PD,R,CG", "-o", "%i %j"]).splitlines()
    return dict(row.split(" ", 1) for row in rows)


def goes_on(lab: Lab, slurm: ThrowawaySlurm, own: set[str], lost: set[str]) -> None:
    """The pilots are lost and made again, and no job of the user's own is touched."""

    def ended() -> set[str]:
        return {pilot["job"] for pilot in lab.pilots() if pilot["job"] in lost and pilot["ended"]}

    until(lambda: ended() == lost, "the pilots are given up for lost")
    assert {pilot["state"] for pilot in lab.pilots() if pilot["job"] in lost} <= {"vanished", "cancelled"}
    lab.release()
    lab.wait()
    assert {task["state"] for task in lab.results()} == {"done"}
    assert {id for id, name in names(slurm).items() if name == "mine"} == own
    assert "cancelled job" not in lab.run("why", "1").stdout


@pytest.mark.parametrize("own_slurm", [NO_MEMORY], indirect=True)
@pytest.mark.parametrize("kept", [True, False], ids=["from a backup", "with empty state"])
def test_a_controller_that_has_forgotten_our_pilots(own_slurm: ThrowawaySlurm, lab: Lab, kept: bool) -> None:
    slurm, state = own_slurm, own_slurm.root / "state"
    slurm.stop_controller()
    if kept:
        shutil.copytree(state, slurm.root / "backup")
    slurm.start_controller()
    lab.begin(SITE, ["true"] * 5 + [lab.hold()] * (TASKS - 5))
    until(lambda: len(lab.jobs_in_system()) >= 1 and all(lab.jobs_in_system()), "the pilots have numbers")
    lost = lab.jobs_in_system()
    slurm.stop_controller()
    shutil.rmtree(state)
    if kept:
        shutil.copytree(slurm.root / "backup", state)
    else:
        state.mkdir()
    slurm.start_controller()
    own = mine(slurm, lost)
    assert {id for id, name in names(slurm).items() if name == "mine"} == own
    goes_on(lab, slurm, own, lost)


@pytest.mark.parametrize("own_slurm", [WRAPPING], indirect=True)
def test_numbers_that_begin_again_while_no_daemon_looks(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    slurm = own_slurm
    lab.begin(SITE, ["true"] * 5 + [lab.hold()] * (TASKS - 5))
    until(lambda: len(lab.jobs_in_system()) >= 1 and all(lab.jobs_in_system()), "the pilots have numbers")
    lost = lab.jobs_in_system()
    lab.kill_daemon()
    slurm.run(["scancel", *lost])
    until(lambda: not names(slurm), "the pilots have ended")
    slurm.stop_controller()
    slurm.start_controller()  # without the jobs that have ended
    own = mine(slurm, lost, keep_others=False)
    if others := own - lost:
        slurm.run(["scancel", *others])
    slurm.stop_controller()
    slurm.start_controller()
    lab.run("daemon", "start")
    goes_on(lab, slurm, lost, lost)
