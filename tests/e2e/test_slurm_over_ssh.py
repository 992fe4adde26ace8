"""A bag on a Slurm that is reached over ssh, while the connection breaks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backends.arrays import tag_of
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.sshd import BREAK_CONNECTION, ThrowawaySshd
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.ssh]


SBATCH = f"""\
#!/bin/bash
# The first request goes through, but its answer does not.
{BREAK_CONNECTION}
/usr/bin/sbatch "$@"
status=$?
if mkdir "$0.broken" 2>/dev/null; then break_connection; sleep 2; fi
exit $status
"""


@pytest.fixture
def cluster(slurm_cluster: ThrowawaySlurm) -> ThrowawaySlurm:
    """With an empty queue; not to be found by the variables here."""
    slurm_cluster.clear()
    return slurm_cluster


def configure(lab: Lab, cluster: ThrowawaySlurm, sshd: ThrowawaySshd, **keys: str) -> None:
    programs = lab.root / "programs"
    programs.mkdir()
    variables = {"SLURM_CONF": str(cluster.conf), "PATH": f"{programs}:/usr/bin:/bin"}
    ssh = {**sshd.site(), "directory": str(lab.root / "over there")}
    reached = {"python": sys.executable, "ssh": ssh, "environment": variables, **keys}
    lab.configure(site("slurm", (2, 8, "30m"), name="far", initial_tr="20s", idle_timeout=10, **reached))


def names_in_slurm(cluster: ThrowawaySlurm, instance_folder: Path) -> list[str]:
    """Of the pilots that one daemon has ever submitted."""
    prefix = f"adaptor-{instance_folder.name}."
    rows = [
        line.split() for line in cluster.run(["squeue", "-h", "-r", "-t", "all", "-o", "%j %K"]).splitlines()
    ]
    tags = (tag_of(name, int(index)) if index.isdecimal() else name for name, index in rows)
    return sorted(tag for tag in tags if tag.startswith(prefix))


def test_the_connection_is_cut_in_a_submit_and_in_the_middle_of_a_bag(
    cluster: ThrowawaySlurm, sshd: ThrowawaySshd, lab: Lab
) -> None:
    configure(lab, cluster, sshd)
    sbatch = lab.root / "programs" / "sbatch"
    sbatch.write_text(SBATCH)
    sbatch.chmod(0o755)
    lab.bag("sleep 2; echo $ADAPTOR_TASK_ID" for _ in range(40))
    bag = lab.submit("tasks.bag")
    until(lambda: lab.status(bag)["done"] >= 4, "the first results")
    sshd.cut()
    until(lambda: lab.status(bag)["done"] >= 20, "results after the connection was cut")
    lab.restart_daemon()
    lab.wait(bag)
    exactly_one_result_each(lab, bag, 40)
    pilots = lab.pilots()
    assert "was lost before it had answered" in lab.run("why", "1", "--limit", "100").stdout
    (folder,) = (lab.root / "over there").iterdir()
    assert names_in_slurm(cluster, folder) == sorted(f"adaptor-{folder.name}.{each['id']}" for each in pilots)
    assert {each["state"] for each in pilots} <= {"running", "completed", "cancelled", "withdrawn"}


def test_workers_leave_worker_files_where_no_tunnel_can_be(
    cluster: ThrowawaySlurm, sshd: ThrowawaySshd, lab: Lab
) -> None:
    configure(lab, cluster, sshd, spool=str(lab.root / "mail"))
    lab.bag("echo $ADAPTOR_TASK_ID" for _ in range(20))
    bag = lab.submit("tasks.bag")
    lab.wait(bag)
    exactly_one_result_each(lab, bag, 20)
