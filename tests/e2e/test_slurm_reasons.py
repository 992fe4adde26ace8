"""What a real Slurm says of our requests, or does not take, bounds them; what it gives them is charged."""

from __future__ import annotations

import getpass
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_accounting import available
from tests.clusters.slurm_conf import DEFAULT_PARTITIONS, ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.test_slurm_budget import PRICE, recount
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly]

USER = getpass.getuser()
ENFORCED = ("AccountingStorageEnforce=associations,limits,qos,safe",)
LAB = ("add account lab", f"add user {USER} account=lab DefaultAccount=lab")
TEN_MINUTES = """
function slurm_job_submit(job, partitions, uid)
  if job.time_limit ~= nil and job.time_limit < 100000 and job.time_limit > 10 then
    slurm.log_user("jobs of this lab last ten minutes")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
return slurm
"""
NAMES_AN_ACCOUNT = """
function slurm_job_submit(job, partitions, uid)
  if job.account == nil then
    slurm.log_user("every job must name an account (-A)")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
return slurm
"""
THREADS = "CPUs=4 Sockets=1 CoresPerSocket=2 ThreadsPerCore=2"
"""No node needs such hardware."""


def with_account(*limits: str) -> Any:
    """A cluster with these limits of our user's account."""
    words = f"modify user where name={USER} account=lab set {' '.join(limits)}"
    options = ClusterOptions(accounting=True, accounts=(*LAB, words), extra=ENFORCED)
    reason = available() or ""
    skipped = pytest.mark.skipif(bool(reason), reason=reason or "slurmdbd is here")
    return pytest.param(options, marks=skipped, id=" ".join(limits))


def sizes(lab: Lab, *states: str) -> Counter[tuple[int, int]]:
    """How often a request of each size was made that ended so."""
    return Counter((pilot["p"], pilot["tr"]) for pilot in lab.pilots() if pilot["state"] in states)


def told(lab: Lab) -> str:
    return lab.run("status").stdout


@pytest.mark.parametrize("own_slurm", [with_account("GrpTRES=cpu=4")], indirect=True)
def test_a_limit_of_the_account_bounds_each_request(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("slurm", (3, 16, "1h"), idle_timeout=3))
    lab.bag(["sleep 1"] * 12)
    lab.submit("tasks.bag")
    lab.wait()
    assert {pilot["p"] for pilot in lab.pilots()} == {4}
    assert not sizes(lab, "withdrawn")


@pytest.mark.parametrize("own_slurm", [with_account("GrpTRESMins=cpu=0")], indirect=True)
def test_a_used_up_allocation_is_a_state_of_the_site(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("slurm", (3, 4, "10m"), idle_timeout=3, initial_tr="1m", pad="10s"))
    lab.bag(["sleep 1"] * 4)
    lab.submit("tasks.bag")
    until(lambda: "AssocGrpCPUMinutesLimit" in told(lab), "the reason is in status")
    assert lab.status()["forecast"] is None or lab.status()["forecast"]["end"] is None
    assert "AssocGrpCPUMinutesLimit" in lab.run("when", "-p", "1", "-t", "5m", expect=1).stdout
    more = f"modify user where name={USER} account=lab set GrpTRESMins=cpu=-1"
    own_slurm.run(["sacctmgr", "-i", *more.split()])
    lab.wait()
    assert not sizes(lab, "withdrawn"), "none was sent before"


@pytest.mark.parametrize("own_slurm", [ClusterOptions(job_submit=TEN_MINUTES)], indirect=True, ids=["lua"])
def test_a_submit_plugin_that_refuses_long_jobs_gets_shorter_ones(
    own_slurm: ThrowawaySlurm, lab: Lab
) -> None:
    lab.configure(site("slurm", (3, 16, "4h"), idle_timeout=3, initial_tr="1h"))
    lab.bag(["sleep 1"] * 8)
    lab.submit("tasks.bag")
    lab.wait()
    refused = sizes(lab, "refused")
    assert refused
    assert max(refused.values()) == 1, "no size was tried twice"
    assert "jobs of this lab last ten minutes" in lab.run("why", "1").stdout
    assert max(pilot["tr"] for pilot in lab.pilots() if pilot["started"]) <= 600


@pytest.mark.parametrize(
    "own_slurm", [ClusterOptions(job_submit=NAMES_AN_ACCOUNT)], indirect=True, ids=["lua"]
)
def test_a_submit_plugin_that_wants_an_account_is_asked_once_and_named(
    own_slurm: ThrowawaySlurm, lab: Lab
) -> None:
    """No smaller request is of any use."""
    words = "every job must name an account (-A)"
    lab.configure(site("slurm", (3, 16, "4h"), idle_timeout=3, initial_tr="1h"))
    lab.bag(["sleep 1"] * 8)
    lab.submit("tasks.bag")
    until(lambda: words in " ".join(lab.run("why", "1").stdout.split()), "why has the words of the plugin")
    assert len({pilot["tr"] for pilot in lab.pilots() if pilot["state"] == "refused"}) == 1, "none is halved"
    lab.configure(site("slurm", (3, 16, "4h"), idle_timeout=3, initial_tr="1m", account="lab"))
    lab.run("daemon", "restart")
    lab.wait()
    exactly_one_result_each(lab, 1, 8)


def test_a_time_limit_of_the_partition_that_the_site_does_not_know(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(site("slurm", (3, 8, "2h"), idle_timeout=3, initial_tr="1h", partition="short"))
    lab.bag(["sleep 1"] * 8)
    lab.submit("tasks.bag")
    lab.wait()
    withdrawn = sizes(lab, "withdrawn")
    assert not withdrawn or max(withdrawn.values()) == 1, "no size was tried twice"


@pytest.mark.parametrize(
    "own_slurm",
    [
        ClusterOptions(
            nodes=2,
            select="CR_Core",
            node_settings={"n1": THREADS, "n2": THREADS},
            partitions=DEFAULT_PARTITIONS[:1],
        )
    ],
    indirect=True,
    ids=["threads"],
)
def test_what_slurm_rounds_up_to_whole_cores_is_charged(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(
        site("slurm", (2, 8, "10m"), idle_timeout=3, initial_tr="1m", pad="10s", price={"explicit": PRICE})
    )
    lab.bag(["sleep 2"] * 4)
    lab.submit("tasks.bag", "--max-running", "1", "--budget", "100")
    lab.wait()
    until(lambda: lab.ask("credits", "1")["bags"][0]["reserved"] == 0, "all pilots have ended")
    lab.run("daemon", "stop")
    (line,) = lab.ask("credits", "1")["bags"]
    ran = [pilot for pilot in lab.pilots() if pilot["started"]]
    assert {(pilot["p"], pilot["held"]) for pilot in ran} == {(2, 2)}
    assert line["used"] == pytest.approx(recount(own_slurm, lab, unit=1), abs=1e-6)
    paid = lab.ask("report", "1")["totals"]["paid"]
    assert paid == pytest.approx(line["used"] * 3600 / PRICE, abs=2 * len(ran))
    with closing(sqlite3.connect(lab.state / "journal.sqlite")) as journal:
        assert {held for (held,) in journal.execute("SELECT held FROM pilot WHERE started > 0")} == {2}
