"""Limits from partitions, associations and QOS, and what a site's configuration makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest

from adaptor.config.loading import parse_config
from adaptor.config.schema import LimitsConfig, SiteConfig, sites_of
from adaptor.model import Limits
from adaptor.units import Duration
from backends.base import SchedulerError
from backends.ceilings import limits_of
from backends.findings import Finding, check_limits
from backends.slurm import parse
from backends.slurm.checking import (
    check_accounting,
    check_nodes,
    check_partition,
    check_scheduler,
)
from backends.slurm.discover import describe_cluster
from backends.slurm.limits import SlurmTerms, ceilings
from backends.slurm.nodes import PartitionNodes, find_site
from backends.slurm.parse import parse_associations, parse_qos

Recorded = Callable[[str], str]
SITE = SiteConfig(backend="slurm", partition="batch")


@pytest.fixture
def nodes(recorded: Recorded) -> PartitionNodes:
    return find_site(parse.parse_nodes(recorded("plain/nodes.txt").encode()), "batch")


@pytest.fixture
def terms(recorded: Recorded) -> SlurmTerms:
    """Those of the recorded cluster, with accounting."""
    partitions = parse.parse_partitions(recorded("plain/partitions.txt"))
    return SlurmTerms(
        partitions={each.name: each for each in partitions},
        associations=parse_associations(recorded("22.05/associations.txt")),
        qos=parse_qos(recorded("22.05/qos.txt")),
    )


def without_accounting(terms: SlurmTerms) -> SlurmTerms:
    return SlurmTerms(partitions=terms.partitions)


def with_partition(terms: SlurmTerms, **changes: object) -> SlurmTerms:
    changed = msgspec.structs.replace(terms.partitions["batch"], **changes)
    return msgspec.structs.replace(terms, partitions={**terms.partitions, "batch": changed})


def levels(findings: list[Finding]) -> list[str]:
    return [finding.level for finding in findings]


def test_accounting_as_recorded(terms: SlurmTerms) -> None:
    (mine,) = terms.associations
    assert (mine.account, mine.partition, mine.qos) == ("phys", "", ("normal", "tiny"))
    assert (mine.allowance.submitted, mine.allowance.seconds, mine.allowance.processors) == (5, 7200, 12)
    tiny = terms.qos["tiny"]
    assert (tiny.submitted, tiny.seconds, tiny.processors, tiny.nodes) == (3, 1200, 6, 2)
    assert terms.qos["normal"].processors == math.inf


@pytest.mark.parametrize(
    "text", ["phys|x", "a|b|c|d|many|02:00:00|cpu=1", "a|b|c|d|5|soon|", "a|b|c|d|5||cpu=x"]
)
def test_accounting_that_is_not_understood(text: str) -> None:
    with pytest.raises(SchedulerError):
        parse_associations(text)


def test_without_accounting_the_partition_speaks(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    known = ceilings(without_accounting(terms), SITE, nodes)
    assert (known.requests.value, known.processors.value, known.seconds.value) == (math.inf, 24, 14400)
    assert limits_of(known) == Limits(max_pending_requests=4, max_pilots=500, max_proc=16, max_tr=14400)


def test_the_tightest_of_all_holds(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    known = ceilings(terms, SITE, nodes)
    assert (known.requests.value, known.processors.value, known.seconds.value) == (5, 12, 7200)
    assert {known.requests.source, known.processors.source, known.seconds.source} == {"account phys"}
    tiny = ceilings(terms, msgspec.structs.replace(SITE, qos="tiny"), nodes)
    assert limits_of(tiny) == Limits(max_pending_requests=3, max_pilots=1, max_proc=6, max_tr=1200)


def test_the_qos_of_a_partition_holds_too(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    assert ceilings(with_partition(terms, qos="tiny"), SITE, nodes).seconds.source == "QOS tiny"


def test_nodes_limit_processors(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    limited = with_partition(without_accounting(terms), max_nodes=2)
    assert ceilings(limited, SITE, nodes).processors.value == 8


def test_where_there_is_no_limit_we_choose_one(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    unlimited = with_partition(without_accounting(terms), max_time=math.inf)
    assert limits_of(ceilings(unlimited, SITE, nodes)).max_tr == 86400


def test_an_unknown_partition_has_no_limits(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    with pytest.raises(SchedulerError, match="no partition batch"):
        ceilings(SlurmTerms(partitions={}), SITE, nodes)


def test_a_description_is_a_configuration(
    terms: SlurmTerms, nodes: PartitionNodes, recorded: Recorded
) -> None:
    rows = parse.parse_nodes(recorded("plain/nodes.txt").encode())
    text = describe_cluster(
        parse.parse_settings(recorded("plain/settings.txt")), [nodes, find_site(rows, "short")], terms
    )
    site = parse_config(text, "described").sites["batch"]
    assert (site.partition, site.processors_per_node, site.whole_nodes) == ("batch", 4, False)
    assert site.limits == LimitsConfig(4, 2, 12, Duration(7200))
    assert "max_proc: 12  # account phys" in text
    assert (
        "max_pilots: 2  # our own choice, 50% of the 5 jobs that it lets a user submit; Slurm: account phys"
        in text
    )
    assert (
        "max_pilots: 500  # our own choice, few enough for one daemon; Slurm: no limit"
        in describe_cluster({}, [nodes], without_accounting(terms))
    )
    assert "#   short:" in text
    uncommented = text.split("\n#   short:")[1].replace("\n# ", "\n")
    assert parse_config("sites:\n  short:" + uncommented, "other").sites["short"].limits.max_tr == 600


def test_a_description_says_how_several_partitions_are_one_site(
    terms: SlurmTerms, nodes: PartitionNodes, recorded: Recorded
) -> None:
    """Not those whose jobs make room for others."""
    batch = msgspec.structs.replace(terms.partitions["batch"], tier=10)
    more = {
        name: msgspec.structs.replace(batch, name=name, default=False, tier=tier, preempt_mode=mode)
        for name, tier, mode in (("odd/name", 10, "OFF"), ("low", 1, "CANCEL"))
    }
    others = [msgspec.structs.replace(nodes, name=name) for name in more]
    preempting = {"PreemptType": "preempt/partition_prio"}
    text = describe_cluster(preempting, [nodes, *others], SlurmTerms(partitions={"batch": batch, **more}))
    (line,) = (line.strip("# ") for line in text.splitlines() if "# partitions: " in line)
    site = parse_config(f"sites: {{all: {{backend: slurm, {line}}}}}", "described").sites["all"]
    assert [each.partition for each in sites_of(site).values()] == ["batch", "odd/name"]
    assert "partitions:" not in describe_cluster({}, [nodes], terms)


def test_a_description_says_how_idle_nodes_could_be_donated(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    batch = msgspec.structs.replace(terms.partitions["batch"], tier=10)
    low = msgspec.structs.replace(batch, name="low", tier=1, preempt_mode="CANCEL", default=False)
    nodes = msgspec.structs.replace(nodes, members={"batch": frozenset(), "low": frozenset()})
    both = SlurmTerms(partitions={"batch": batch, "low": low})
    preempting = {"PreemptType": "preempt/partition_prio"}
    text = describe_cluster(preempting, [nodes], both)
    uncommented = text.replace("# donation", "donation")
    donation = parse_config(uncommented, "described").sites["batch"].donation
    assert donation is not None
    assert (donation.mode, donation.partition) == ("preemptible", "low")
    assert "donation" not in describe_cluster({}, [nodes], both)
    firm = {"low": msgspec.structs.replace(low, preempt_mode="OFF")}
    assert "donation" not in describe_cluster(
        preempting, [nodes], SlurmTerms(partitions={"batch": batch, **firm})
    )


def test_odd_names_and_limits_are_written_so_that_they_are_read(
    terms: SlurmTerms, nodes: PartitionNodes
) -> None:
    odd = msgspec.structs.replace(terms.partitions["batch"], name="1e3", max_time=86400 * 2 + 3723.0)
    text = describe_cluster(
        {},
        [msgspec.structs.replace(nodes, name="1e3")],
        SlurmTerms(partitions={"1e3": msgspec.structs.replace(odd, max_time=3723.0, exclusive="NODE")}),
    )
    site = parse_config(text, "described").sites["1e3"]
    assert (site.partition, site.limits.max_tr, site.whole_nodes) == ("1e3", 3723, True)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (LimitsConfig(), ["ok"] * 4),
        (LimitsConfig(5, 5, 12, Duration(7200)), ["ok"] * 4),
        (LimitsConfig(6, 6, 13, Duration(7201)), ["error"] * 4),
    ],
)
def test_limits_are_checked(
    terms: SlurmTerms, nodes: PartitionNodes, limits: LimitsConfig, expected: list[str]
) -> None:
    site = msgspec.structs.replace(SITE, limits=limits)
    assert levels(list(check_limits(site, ceilings(terms, site, nodes), "Slurm"))) == expected


@pytest.mark.parametrize(
    ("site", "exclusive", "expected"),
    [
        (SITE, "", []),
        (SITE, "NODE", ["error"]),
        (SITE, "USER", ["warning"]),
        (SITE, "TOPO", ["warning"]),
        (SITE, "RACK", ["warning"]),
        (msgspec.structs.replace(SITE, whole_nodes=True), "NODE", ["error"]),
        (msgspec.structs.replace(SITE, whole_nodes=True, processors_per_node=4), "NODE", []),
        (msgspec.structs.replace(SITE, processors_per_node=3), "", ["error"]),
    ],
)
def test_sizes_of_nodes_are_checked(
    terms: SlurmTerms, nodes: PartitionNodes, site: SiteConfig, exclusive: str, expected: list[str]
) -> None:
    found = check_nodes(site, nodes, msgspec.structs.replace(terms.partitions["batch"], exclusive=exclusive))
    assert levels(list(found)) == expected


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({}, "ok", "account phys"),
        ({"account": "chem"}, "error", "account chem is not yours in partition batch; yours are: phys"),
        ({"qos": "tiny"}, "ok", "QOS tiny"),
        ({"qos": "long"}, "error", "qos long may not be used with account phys; use: normal, tiny"),
    ],
)
def test_accounts_and_qos_are_checked(
    terms: SlurmTerms, nodes: PartitionNodes, changes: dict[str, str], level: str, words: str
) -> None:
    (finding,) = check_accounting(msgspec.structs.replace(SITE, **changes), terms, nodes)
    assert finding.level == level
    assert words in finding.text


def test_states_of_partitions_are_checked(nodes: PartitionNodes) -> None:
    assert levels(list(check_partition(nodes))) == ["ok"]
    empty = msgspec.structs.replace(nodes, available="inact", listed={})
    assert levels(list(check_partition(empty))) == ["warning", "warning"]


def test_a_scheduler_without_backfilling_or_openness_is_remarked_on(recorded: Recorded) -> None:
    assert list(check_scheduler(parse.parse_settings(recorded("plain/settings.txt")))) == []
    found = check_scheduler({"SchedulerType": "sched/builtin", "PrivateData": "accounts,jobs"})
    assert levels(list(found)) == ["warning", "warning"]


def test_site_init_says_which_share_is_asked_for_and_why(terms: SlurmTerms, nodes: PartitionNodes) -> None:
    large = with_partition(without_accounting(terms), processors=4096, nodes=1024)
    text = describe_cluster({"ClusterName": "c"}, [nodes], large)
    assert (
        "max_proc: 512  # our own choice, 4 such requests hold half of 4096 processors; "
        "Slurm: all processors of partition batch (4096)\n" in text
    )
    (finding,) = [
        each for each in check_limits(SITE, ceilings(large, SITE, nodes), "Slurm") if "max_proc" in each.text
    ]
    assert finding.text.startswith("limits.max_proc is not set, 512 is our choice; Slurm allows 4096 (")
    few = SiteConfig(backend="slurm", partition="batch", limits=LimitsConfig(max_pending_requests=1))
    assert limits_of(ceilings(large, few, nodes), 1).max_proc == 2048
