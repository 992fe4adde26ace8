"""What pilots are charged is what slurmdbd has in its records, also where slurmctld has forgotten them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.campaign.credits import check_credits
from lab.campaign.schedulers.on_slurm import SlurmCluster
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_accounting import available
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly]

SITE = site(
    "slurm",
    (3, 8, "20m"),
    initial_tr="3m",
    idle_timeout=5,
    price={"explicit": 10},
    charging_unit="10s",
    daemon={"worker_timeout": 8},
)
TASKS = 40


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    if reason := available():
        pytest.skip(reason)
    with ThrowawaySlurm(ClusterOptions(accounting=True, min_job_age=2)) as slurm:
        monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
        yield SlurmCluster("hpc", slurm)


def ends(cluster: SlurmCluster) -> dict[str, float]:
    """Seconds of the pilots that have ended, by their tags."""
    return {held.tag: held.seconds for held in cluster.records()}


def test_a_pilot_that_ended_while_no_daemon_ran_is_charged_by_the_accounting(
    cluster: SlurmCluster, lab: Lab
) -> None:
    lab.begin(SITE, [f"{lab.hold_after(8)}; sleep 1"] * TASKS, done=4)
    victim = next(pilot for pilot in lab.pilots() if pilot["state"] == "running")
    lab.kill_daemon()
    cluster.cancel(victim["job"])
    until(lambda: len(ends(cluster)) == 1, "slurmdbd has its end")
    until(
        lambda: victim["job"] not in cluster.slurm.run(["squeue", "-h", "-t", "all", "-o", "%i"]).split(),
        "Slurm forgets it",
    )
    lab.run("daemon", "start")
    lab.release()
    lab.wait()
    until(lambda: not cluster.queue(), "all pilots have left")
    until(
        lambda: all(pilot["state"] not in ("queued", "running") for pilot in lab.pilots()),
        "their ends are known",
    )
    lab.run("daemon", "stop")
    (first,) = [pilot for pilot in lab.pilots() if pilot["id"] == victim["id"]]
    assert first["state"] == "cancelled"
    assert check_credits(lab.state / "journal.sqlite", cluster.records()) == []
