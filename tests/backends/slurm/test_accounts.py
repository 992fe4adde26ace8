"""What accounts and QOS let jobs hold together, and what of it is used."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.model import SharedBound
from backends.base import SchedulerError
from backends.slurm import parse
from backends.slurm.accounts import (
    Group,
    GroupLimits,
    SlurmTerms,
    Used,
    below,
    concerning,
    is_enforced,
    parse_groups,
    shared_bounds,
    used_up,
)
from backends.slurm.limits import bounded_groups, ceilings, look_for, node_bound, why_closed
from backends.slurm.nodes import PartitionNodes, find_site
from backends.slurm.parse import Association, QosAllowance
from backends.slurm.placing.job_details import JobDetail
from tests.backends.slurm.slurm_rows import NOW, job

MIB = 2**20

Recorded = Callable[[str], str]


@pytest.fixture
def groups(recorded: Recorded) -> list[GroupLimits]:
    """As slurmctld 22.05 prints them: `nobody` in `phys`, below `lab`."""
    return parse_groups(recorded("22.05/groups.txt"), "nobody")


@pytest.fixture
def nodes(recorded: Recorded) -> PartitionNodes:
    return find_site(parse.parse_nodes(recorded("plain/nodes.txt").encode()), "batch")


def terms(recorded: Recorded, groups: list[GroupLimits], **qos: object) -> SlurmTerms:
    partitions = parse.parse_partitions(recorded("plain/partitions.txt"))
    allowance = msgspec.structs.replace(QosAllowance(source="QOS normal"), **qos)
    mine = Association(
        account="phys", partition="", qos=("normal",), default_qos="", allowance=QosAllowance(source="phys")
    )
    return SlurmTerms(
        partitions={each.name: each for each in partitions},
        associations=[mine],
        qos={"normal": allowance},
        groups=groups,
        user="nobody",
    )


SITE = SiteConfig(backend="slurm", partition="batch")


def test_accounts_as_recorded(groups: list[GroupLimits]) -> None:
    found = {(each.account, each.user): each for each in groups if each.account}
    assert sorted(found) == [("lab", ""), ("phys", ""), ("phys", "nobody"), ("root", "")]
    assert (found["lab", ""].processors, found["lab", ""].minutes["cpu"]) == (Used(6, 0), Used(200, 0))
    assert {*found["lab", ""].minutes} == {"cpu", "mem", "node", "billing", "wall"}
    assert found["phys", ""].parent == "lab"
    own = found["phys", "nobody"]
    assert (own.processors, own.nodes, own.jobs) == (Used(4, 0), Used(3, 0), Used(3, 0))
    assert own.job_minutes == 10
    (qos,) = [each for each in groups if each.qos]
    assert (qos.qos, qos.run_minutes["cpu"], qos.processors.limit) == ("normal", Used(1000, 0), math.inf)


@pytest.mark.parametrize(
    ("old", "new"),
    [("GrpJobs=N(0)", ""), ("GrpTRES=cpu=6(0)", "GrpTRES=cpu=many"), ("cpu=200(0)", "cpu=9e99(0)")],
)
def test_accounts_that_are_not_understood(recorded: Recorded, old: str, new: str) -> None:
    with pytest.raises(SchedulerError, match="scontrol show assoc_mgr"):
        parse_groups(recorded("22.05/groups.txt").replace(old, new), "nobody")


def test_the_accounts_above_and_the_qos_concern_a_user(groups: list[GroupLimits]) -> None:
    found = concerning(groups, "phys", "nobody", "batch", ["normal"])
    assert [each.source for each in found] == [
        "account phys of user nobody",
        "account phys",
        "account lab",
        "account root",
        "QOS normal",
    ]
    assert below(groups, "lab") == {"lab", "phys"}
    circle = [
        GroupLimits(source="", account="a", parent="b"),
        GroupLimits(source="", account="b", parent="a"),
    ]
    assert len(concerning(circle, "a", "nobody", "batch", [])) == 2


def test_limits_of_groups_bound_requests(
    recorded: Recorded, groups: list[GroupLimits], nodes: PartitionNodes
) -> None:
    known = ceilings(terms(recorded, groups), SITE, nodes)
    assert known.processors.value == 4
    assert known.processors.source == "GrpTRES=cpu of account phys of user nobody"
    assert (known.requests.value, known.requests.source) == (3, "account phys of user nobody")
    assert (known.work.value, known.work.source) == (600, "MaxTRESMins of account phys of user nobody")


@pytest.mark.parametrize(
    ("terms_of_qos", "expected"),
    [
        ({"billing": 5}, (5, 1, 1, math.inf, 0, 0)),
        ({"least_billing": 3}, (24, 3, 1, math.inf, 0, 0)),
        ({"least_nodes": 2}, (24, 1, 2, math.inf, 0, 0)),
        ({"memory": 500 * MIB}, (24, 1, 1, 500 * MIB, 0, 0)),
        ({"least_memory": 500 * MIB, "least_gpus": 1}, (24, 1, 1, math.inf, 500 * MIB, 1)),
    ],
)
def test_what_a_qos_wants_of_one_request(
    recorded: Recorded, nodes: PartitionNodes, terms_of_qos: dict[str, float], expected: tuple[float, ...]
) -> None:
    known = ceilings(terms(recorded, [], **terms_of_qos), SITE, nodes)
    allowed = known.allowed()
    found = (allowed.max_proc, allowed.min_proc, allowed.min_parts, allowed.max_memory.value)
    assert (*found, allowed.min_memory.value, allowed.min_gpus.value) == expected


@pytest.mark.parametrize(
    ("group", "processors", "memory", "gpus"),
    [
        (GroupLimits(source="account phys", account="phys", billing=Used(5, 0)), 5, math.inf, math.inf),
        (GroupLimits(source="account phys", account="phys", memory=Used(500, 0)), 24, 500 * MIB, math.inf),
        (GroupLimits(source="account phys", account="phys", gpus=Used(2, 1)), 24, math.inf, 2),
    ],
)
def test_what_jobs_of_an_account_may_have_together_bounds_one(
    recorded: Recorded, nodes: PartitionNodes, group: GroupLimits, processors: int, memory: float, gpus: float
) -> None:
    allowed = ceilings(terms(recorded, [group]), SITE, nodes).allowed()
    assert (allowed.max_proc, allowed.max_memory.value) == (processors, memory)
    assert allowed.max_gpus.value == gpus


@pytest.mark.parametrize(
    ("group", "of_qos", "expected"),
    [
        (GroupLimits(source="account phys", account="phys"), {}, None),
        (GroupLimits(source="account phys", account="phys", job_memory=800), {}, 800 * MIB),
        (GroupLimits(source="account phys", account="phys"), {"node_memory": 700 * MIB}, 700 * MIB),
    ],
)
def test_memory_that_a_job_may_have_of_a_node(
    recorded: Recorded, group: GroupLimits, of_qos: dict[str, float], expected: int | None
) -> None:
    found = terms(recorded, [group], **of_qos)
    assert look_for(SITE, {}, found, {}).terms.job_memory == expected


def test_limits_of_a_qos_bound_requests(recorded: Recorded, nodes: PartitionNodes) -> None:
    found = terms(recorded, [], jobs=2, least=3, user_processors=9, account_processors=8, node_processors=2)
    known = ceilings(found, SITE, nodes)
    assert (known.requests.value, known.least.value, known.processors.value) == (2, 3, 8)
    assert known.allowed().min_proc == 3
    assert node_bound(found, SITE, found.partitions["batch"]) == 2
    assert [(group.most, group.user, group.accounts) for group in bounded_groups(found, SITE, nodes)] == [
        (9, "nobody", None),
        (8, "", frozenset({"phys"})),
    ]


@pytest.mark.parametrize(
    ("minutes", "run", "expected"),
    [
        (Used(100, 40), Used(), 60 * 60),
        (Used(100, 40), Used(math.inf, 50), 60 * 10),  # what running jobs may still take is set aside
        (Used(100, 40), Used(math.inf, 70), 60 * 60),  # nothing fits before some of them end
        (Used(), Used(90, 60), 60 * 90),
    ],
)
def test_minutes_that_are_left_bound_one_request(
    recorded: Recorded, nodes: PartitionNodes, minutes: Used, run: Used, expected: float
) -> None:
    for name in ("cpu", "billing"):  # as long as a partition counts nothing else
        kinds = {"minutes": {name: minutes}, "run_minutes": {name: run}}
        group = GroupLimits(source="account phys", account="phys", **kinds)
        known = ceilings(terms(recorded, [group]), SITE, nodes)
        assert known.work.value == expected
        assert name in known.work.source


@pytest.mark.parametrize(("run", "left"), [(Used(90, 60), 30), (Used(90, 95), 0), (Used(), math.inf)])
def test_what_running_jobs_may_take_bounds_all_that_start(
    recorded: Recorded, nodes: PartitionNodes, run: Used, left: float
) -> None:
    for name in ("cpu", "billing"):
        groups = [
            GroupLimits(source="account phys", account="phys", parent="lab", run_minutes={name: Used(200)}),
            GroupLimits(source="account lab", account="lab", run_minutes={name: run}),
        ]
        found = ceilings(terms(recorded, groups), SITE, nodes).allowed().work_left
        assert found.value == 60 * min(left, 200)
        assert found.source == f"GrpTRESRunMins={name} of account {'lab' if left < 200 else 'phys'}"


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("", 60.0), ("CPU=2.0,Mem=0.25G", 30.0), ("Mem=0.25G,GRES/gpu=2", math.inf), ("cpu=0", math.inf)],
)
def test_what_a_partition_bills_for_a_processor(
    recorded: Recorded, nodes: PartitionNodes, weights: str, expected: float
) -> None:
    group = GroupLimits(source="account phys", account="phys", minutes={"billing": Used(60, 0)})
    found = terms(recorded, [group])
    (line,) = [
        line
        for line in recorded("plain/partitions.txt").splitlines()
        if line.startswith("PartitionName=batch ")
    ]
    (batch,) = parse.parse_partitions(f"{line} TRESBillingWeights={weights}" if weights else line)
    found = msgspec.structs.replace(found, partitions={"batch": batch})
    assert ceilings(found, SITE, nodes).work.value == expected * 60


@pytest.mark.parametrize(
    ("words", "qos", "reason"),
    [
        ("AllowAccounts=ALL AllowQos=ALL", None, ""),
        ("AllowAccounts=lab AllowQos=normal", None, ""),  # phys is below lab
        ("AllowAccounts=phys,bio DenyQos=short", None, ""),
        ("AllowQos=short,long", "short", ""),
        ("AllowQos=short,long", None, "takes no jobs of QOS normal (AllowQos=long, short)"),
        ("DenyQos=normal", None, "takes no jobs of QOS normal (DenyQos)"),
        ("AllowAccounts=bio,root2", None, "takes no jobs of account phys (AllowAccounts=bio, root2)"),
        ("DenyAccounts=phys", None, "takes no jobs of account phys (DenyAccounts)"),
    ],
)
def test_whom_a_partition_takes(
    recorded: Recorded, groups: list[GroupLimits], words: str, qos: str | None, reason: str
) -> None:
    keys = dict(word.split("=") for word in words.split())
    (line,) = [
        line
        for line in recorded("plain/partitions.txt").splitlines()
        if line.startswith("PartitionName=batch ")
    ]
    kept = [word for word in line.split() if word.partition("=")[0] not in keys]
    (batch,) = parse.parse_partitions(" ".join([*kept, words]))
    site = SiteConfig(backend="slurm", partition="batch", qos=qos)
    found = why_closed(terms(recorded, groups), site, batch)
    assert reason in found
    assert bool(found) is bool(reason)


def test_the_time_that_a_group_has_left_bounds_a_request(recorded: Recorded, nodes: PartitionNodes) -> None:
    group = GroupLimits(source="account phys", account="phys", minutes={"wall": Used(100, 70)})
    known = ceilings(terms(recorded, [group]), SITE, nodes)
    assert (known.seconds.value, known.seconds.source) == (1800, "GrpWall of account phys")


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (GroupLimits(source="account a"), ""),
        (GroupLimits(source="account a", minutes={"cpu": Used(2, 1), "wall": Used()}), ""),
        (
            GroupLimits(source="account a", minutes={"cpu": Used(2, 2)}),
            "account a has used up its 2 processor minutes (GrpTRESMins=cpu=2, 2 used)",
        ),
        (GroupLimits(source="QOS q", qos="q", minutes={"cpu": Used(0, 0)}), "QOSGrpCPUMinutesLimit"),
        (GroupLimits(source="a", minutes={"billing": Used(60, 61)}), "AssocGrpBillingMinutes"),
        (GroupLimits(source="a", minutes={"mem": Used(60, 61)}), "AssocGrpMemMinutes"),
        (GroupLimits(source="a", minutes={"wall": Used(60, 60)}), "(GrpWall=60, 60 used)"),
        (GroupLimits(source="account a", jobs=Used(0, 0)), "account a may run nothing (GrpJobs=0)"),
        (GroupLimits(source="account a", processors=Used(0, 0)), "may run nothing (GrpTRES=cpu=0)"),
    ],
)
def test_a_limit_that_lets_nothing_run(group: GroupLimits, words: str) -> None:
    reason = used_up([group])
    assert words in reason
    assert bool(reason) == bool(words)


def test_what_is_held_by_whom() -> None:
    jobs = [
        job("1", 2, ("n1",), account="phys"),
        job("2", 3, ("n1",), account="bio"),
        job("3", 4, account="phys"),
        job("4", 5, ("n2",), account="phys", state="COMPLETED"),
    ]
    details = {"1": JobDetail(user="joe"), "2": JobDetail(user="nobody"), "3": JobDetail(user="nobody")}
    account = Group(most=6, source="a", accounts=frozenset({"phys"}))
    user = Group(most=6, source="u", user="nobody")
    qos = Group(most=9, source="q", used=7)
    assert shared_bounds([account, user, qos], jobs, details, "nobody") == (
        SharedBound(most=6, held=((NOW + 500, 2),), waiting=frozenset({"3"}), source="a"),
        SharedBound(most=6, held=((NOW + 500, 3),), waiting=frozenset({"3"}), source="u"),
        # Four of the seven are held by jobs of the QOS that cannot be told from others.
        SharedBound(most=9, held=((NOW + 500, 3), (NOW + 500, 4)), waiting=frozenset({"3"}), source="q"),
    )


@pytest.mark.parametrize(
    ("enforced", "expected"),
    [
        ("none", False),
        ("associations", False),
        ("associations,limits,qos,safe", True),
        ("all", True),
        (None, True),
    ],
)
def test_limits_count_where_slurm_keeps_to_them(enforced: str | None, expected: bool) -> None:
    settings = {} if enforced is None else {"AccountingStorageEnforce": enforced}
    assert is_enforced(settings) is expected
