"""A bag of twelve tasks of one processor, where cores are given, nodes bounded, accounts limited."""

from __future__ import annotations

import getpass
from collections.abc import Iterator

import pytest

from tests.clusters import slurm_accounting
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import ACCOUNTS, CORES, ONE_TASK, ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.timeout(400)]

TASKS = 12


def started(options: ClusterOptions) -> Iterator[ThrowawaySlurm]:
    reason = available() or (slurm_accounting.available() if options.accounting else None)
    if reason:
        pytest.skip(reason)
    with ThrowawaySlurm(options) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def cores() -> Iterator[ThrowawaySlurm]:
    yield from started(CORES)


@pytest.fixture(scope="module")
def one_task() -> Iterator[ThrowawaySlurm]:
    yield from started(ONE_TASK)


@pytest.fixture(scope="module")
def accounts() -> Iterator[ThrowawaySlurm]:
    for slurm in started(ACCOUNTS):
        for account, above in (("lab", "root"), ("phys", "lab")):
            words = ["Description=x", "Organization=x", f"parent={above}"]
            slurm.run(["sacctmgr", "-i", "add", "account", account, *words])
        user = getpass.getuser()
        slurm.run(["sacctmgr", "-i", "add", "user", user, "account=phys", "DefaultAccount=phys"])
        yield slurm


@pytest.fixture(autouse=True)
def ended(request: pytest.FixtureRequest) -> Iterator[None]:
    """No pilot stays for the next test."""
    yield
    for name in {"cores", "one_task", "accounts"} & set(request.fixturenames):
        request.getfixturevalue(name).clear()


def pilots_of(slurm: ThrowawaySlurm) -> dict[str, tuple[int, int]]:
    """Processors and nodes of each pilot that ran, by its job, as Slurm says."""
    fields = "JobArrayID:0|,NumCPUs:0|,NumNodes:0|,NodeList:0|,Name:0"
    said = slurm.run(["squeue", "-h", "-a", "-r", "-t", "all", "-O", fields])
    rows = (line.split("|") for line in said.splitlines() if "adaptor-" in line)
    return {job: (int(cpus), int(nodes)) for job, cpus, nodes, where, _ in rows if where.strip()}


def run_bag(
    slurm: ThrowawaySlurm,
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
    partition: str,
    *options: str,
    **keys: object,
) -> list[tuple[int, int]]:
    """What a bag of twelve tasks ran on."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    before = pilots_of(slurm)
    lab.configure(site("slurm", partition=partition, initial_tr="10s", idle_timeout=5, **keys))
    assert "error" not in lab.run("site", "check").stdout
    lab.bag(["sleep 1"] * TASKS)
    lab.run("run", "tasks.bag", *options, timeout=120)
    exactly_one_result_each(lab, 1, TASKS)
    lab.run("daemon", "stop", "--pilots")
    return [ran for job, ran in pilots_of(slurm).items() if job not in before]


@pytest.mark.parametrize("rig", ["cores", "one_task"])
@pytest.mark.parametrize(
    ("partition", "options", "keys", "most"),
    [
        ("batch", (), {}, 16),
        ("batch", (), {"extra_args": ["--hint=nomultithread"]}, 16),
        ("memory", ("--mem", "500M"), {}, 16),  # three processors for the memory of each task, so two cores
        ("half", (), {}, 4),
        ("wide", (), {}, 16),
        ("whole", (), {"whole_nodes": True, "processors_per_node": 8}, 16),
    ],
)
def test_a_bag_runs_in_what_slurm_gives(
    rig: str,
    partition: str,
    options: tuple[str, ...],
    keys: dict[str, object],
    most: int,
    request: pytest.FixtureRequest,
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slurm = request.getfixturevalue(rig)
    ran = run_bag(slurm, lab, monkeypatch, partition, *options, **keys)
    started = [pilot for pilot in lab.pilots() if pilot["started"]]
    each = 2 if keys.get("extra_args") else 1  # a processor is a core of two
    assert [pilot["held"] for pilot in started] == [pilot["p"] * each for pilot in started]
    held = sorted(pilot["held"] for pilot in started)
    assert all(
        cpus <= most for cpus, most in zip(sorted(cpus for cpus, _ in ran), held, strict=True)
    )  # some give nodes back in the end
    assert held[-1] <= most
    assert partition != "wide" or max(nodes for _, nodes in ran) == 2


def limit(slurm: ThrowawaySlurm, *words: str) -> None:
    slurm.run(["sacctmgr", "-i", "modify", *words])


def test_a_bag_stays_within_what_an_account_may_hold(
    accounts: ThrowawaySlurm, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is of the account above that of the user."""
    limit(accounts, "account", "lab", "set", "GrpTRES=cpu=4")
    try:
        ran = run_bag(accounts, lab, monkeypatch, "batch")
    finally:
        limit(accounts, "account", "lab", "set", "GrpTRES=cpu=-1")
    assert max(cpus for cpus, _ in ran) == 4


def test_a_bag_stays_within_the_jobs_that_a_qos_lets_run(
    accounts: ThrowawaySlurm, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(accounts, "qos", "normal", "set", "MaxJobsPerUser=1")
    try:
        run_bag(accounts, lab, monkeypatch, "batch")
    finally:
        limit(accounts, "qos", "normal", "set", "MaxJobsPerUser=-1")


LIMITS = (
    ("account lab", "GrpTRES=node=1"),
    ("account lab", "GrpTRESRunMins=cpu=20"),
    ("account lab", "GrpTRESRunMins=billing=20"),
    ("account lab", "GrpTRESMins=billing=500"),
    ("account lab", "GrpWall=500"),
    ("account lab", "GrpSubmitJobs=1"),
    ("account lab", "MaxWallDurationPerJob=1"),
    ("account lab", "MaxTRESPerJob=cpu=2"),
    ("qos normal", "MinTRESPerJob=cpu=4"),
    ("qos normal", "MaxTRESPerNode=cpu=2"),
    ("qos normal", "MaxTRESPerUser=node=1"),
    ("qos normal", "MaxSubmitJobsPerAccount=1"),
    ("qos normal", "GrpTRES=cpu=5"),
    ("qos normal", "MaxTRESMinsPerJob=cpu=4"),
)


@pytest.mark.parametrize(("whose", "bound"), LIMITS, ids=[bound for _, bound in LIMITS])
def test_a_bag_runs_within_a_limit_by_few_requests(
    accounts: ThrowawaySlurm, lab: Lab, monkeypatch: pytest.MonkeyPatch, whose: str, bound: str
) -> None:
    limit(accounts, *whose.split(), "set", bound)
    try:
        assert run_bag(accounts, lab, monkeypatch, "batch")
    finally:
        limit(accounts, *whose.split(), "set", f"{bound.rpartition('=')[0]}=-1")
    assert len(lab.pilots()) <= 2 * TASKS, "none is made again and again"


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
    monkeypatch: pytest.MonkeyPatch,
    closed: str,
    opened: str,
    words: str,
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(accounts.conf))
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
    lab.wait(timeout=120)
    exactly_one_result_each(lab, 1, TASKS)


def test_minutes_that_are_used_up_are_named_everywhere(
    accounts: ThrowawaySlurm, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once there are more, the bag runs."""
    monkeypatch.setenv("SLURM_CONF", str(accounts.conf))
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
    lab.wait(timeout=120)
    exactly_one_result_each(lab, 1, TASKS)


def used_minutes(slurm: ThrowawaySlurm) -> float:
    said = slurm.run(["scontrol", "-o", "show", "assoc_mgr", "accounts=lab", "flags=assoc"])
    return float(said.partition("GrpTRESMins=cpu=N(")[2].partition(")")[0] or 0)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_an_account_that_is_removed_midway_is_named_and_waited_for(
    accounts: ThrowawaySlurm, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_bag(accounts, lab, monkeypatch, "batch")
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
    lab.wait(2, timeout=240)
    exactly_one_result_each(lab, 2, TASKS)
