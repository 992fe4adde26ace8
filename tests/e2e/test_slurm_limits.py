"""A bag of twelve tasks of one processor, where cores are given, nodes bounded, accounts limited.

The configurations are those of `lab.campaign.allowances`, which prints what becomes of each.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterator

import pytest

from lab.campaign.allowances import CASES, TASKS, Case, options_of, run, why_not
from lab.campaign.schedulers.on_slurm import SlurmCluster
from tests.clusters import slurm_accounting
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly]


@pytest.fixture(scope="module")
def rig(request: pytest.FixtureRequest) -> Iterator[SlurmCluster]:
    """A cluster of one of RIGS, by its name."""
    if reason := available():
        pytest.skip(reason)
    with ThrowawaySlurm(options_of(request.param)) as slurm:
        yield SlurmCluster("hpc", slurm)


@pytest.fixture
def cluster(rig: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """That cluster, found by $SLURM_CONF; no pilot stays for the next test."""
    monkeypatch.setenv("SLURM_CONF", str(rig.slurm.conf))
    yield rig
    rig.slurm.clear()


@pytest.fixture
def accounts(cluster: SlurmCluster) -> ThrowawaySlurm:
    if reason := slurm_accounting.available():
        pytest.skip(reason)
    return cluster.slurm


with_accounts = pytest.mark.parametrize("rig", ["accounts"], indirect=True)


@pytest.mark.parametrize(
    ("rig", "case"),
    [pytest.param(case.rig, case, id=case.name) for case in CASES],
    indirect=["rig"],
)
def test_a_bag_runs_in_what_slurm_gives_by_few_requests(cluster: SlurmCluster, lab: Lab, case: Case) -> None:
    """And is charged what Slurm recorded."""
    if reason := why_not(cluster.slurm, case):
        pytest.skip(reason)
    ran = run(cluster, lab, case)
    started = [pilot for pilot in ran.pilots if pilot["started"]]
    assert max(pilot["held"] for pilot in started) <= case.most
    assert len(ran.pilots) <= 2 * TASKS, "none is made again and again"
    assert ran.wrong == []
    each = 2 if case.keys.get("extra_args") and case.rig.startswith("CR_Core") else 1  # of a core of two
    assert [pilot["held"] for pilot in started] == [pilot["p"] * each for pilot in started]


def limit(slurm: ThrowawaySlurm, *words: str) -> None:
    slurm.run(["sacctmgr", "-i", "modify", *words])


@with_accounts
@pytest.mark.parametrize(
    ("closed", "opened", "words"),
    [
        ("AllowQos=other", "AllowQos=ALL", "takes no jobs of QOS normal (AllowQos=other)"),
        ("DenyQos=normal", "DenyQos=", "takes no jobs of QOS normal (DenyQos)"),
        ("DenyAccounts=phys", "DenyAccounts=", "takes no jobs of account phys (DenyAccounts)"),
    ],
)
def test_a_partition_that_takes_no_such_jobs_gets_none_and_is_named(
    accounts: ThrowawaySlurm,
    lab: Lab,
    closed: str,
    opened: str,
    words: str,
) -> None:
    accounts.run(["sacctmgr", "-i", "add", "qos", "other"], check=False)
    accounts.run(["scontrol", "update", "partition=batch", closed])
    try:
        lab.configure(site("slurm", initial_tr="10s", idle_timeout=5))
        lab.bag(["sleep 1"] * TASKS)
        lab.submit("tasks.bag")
        assert words in lab.run("site", "check", expect=1).stdout
        until(lambda: words in flat(lab.run("why", "1").stdout), "why says it")
        assert not lab.pilots()
    finally:
        accounts.run(["scontrol", "update", "partition=batch", opened])
    lab.wait()
    exactly_one_result_each(lab, 1, TASKS)


@with_accounts
def test_minutes_that_are_used_up_are_named_everywhere(accounts: ThrowawaySlurm, lab: Lab) -> None:
    """And once there are more, the bag runs."""
    accounts.occupy(4, 2, "sleep 12")
    until(lambda: used_minutes(accounts) > 1, "Slurm counts the minutes")
    limit(accounts, "account", "lab", "set", "GrpTRESMins=cpu=1")
    try:
        lab.configure(site("slurm", initial_tr="10s", idle_timeout=5))
        words = "account lab has used up its 1 processor minutes (GrpTRESMins=cpu=1"
        assert words in lab.run("site", "check", expect=1).stdout
        assert words in flat(lab.run("when", "-p", "4", "-t", "5m", expect=1).stdout)
        lab.bag(["sleep 1"] * TASKS)
        lab.submit("tasks.bag")
        until(lambda: words in flat(lab.run("why", "1").stdout), "why says it")
        assert words in flat(lab.run("status").stdout)
        assert not accounts.run(["squeue", "-h"])
    finally:
        limit(accounts, "account", "lab", "set", "GrpTRESMins=cpu=-1")
    lab.wait()
    exactly_one_result_each(lab, 1, TASKS)


def used_minutes(slurm: ThrowawaySlurm) -> float:
    said = slurm.run(["scontrol", "-o", "show", "assoc_mgr", "accounts=lab", "flags=assoc"])
    return float(said.partition("GrpTRESMins=cpu=N(")[2].partition(")")[0] or 0)


def flat(text: str) -> str:
    return " ".join(text.split())


@with_accounts
def test_an_account_that_is_removed_midway_is_named_and_waited_for(
    cluster: SlurmCluster, accounts: ThrowawaySlurm, lab: Lab
) -> None:
    assert run(cluster, lab, Case("accounts")).pilots
    user = getpass.getuser()
    accounts.run(["sacctmgr", "-i", "delete", "user", user, "account=phys"])
    try:
        before = len(lab.pilots())
        lab.submit("tasks.bag")
        until(lambda: "Invalid account" in flat(lab.run("why", "2").stdout), "why has the words of Slurm")
        assert len(lab.pilots()) - before <= TASKS, "the same request is not made again and again"
        until(lambda: "bag 2: done" not in lab.run("status", "2").stdout, "no end is promised any more")
    finally:
        accounts.run(["sacctmgr", "-i", "add", "user", user, "account=phys", "DefaultAccount=phys"])
    lab.wait(2)
    exactly_one_result_each(lab, 2, TASKS)
