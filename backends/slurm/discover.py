"""Discovery of a cluster for `adaptor site init`, and checks of a site for `adaptor site check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.ceilings import limits_of
from backends.commands import Commands
from backends.describing import Described, described, scalar
from backends.findings import Finding, check_limits, error, ok, warning
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.slurm.accounts import SlurmTerms
from backends.slurm.checking import (
    check_accounting,
    check_licenses,
    check_nodes,
    check_partition,
    check_record,
    check_scheduler,
    check_shared,
    check_submit,
    check_where,
    unknown_answers,
)
from backends.slurm.donation import check_donation
from backends.slurm.limits import ceilings, look_for
from backends.slurm.nodes import PartitionNodes, find_site
from backends.slurm.ordering import check_ordering
from backends.slurm.placing.exclusivity import NODE
from backends.slurm.questions import Questions, asking_environment, read, submitting_environment
from backends.slurm.rows import Partition

_MOST = 12  # features that are named


def describe_cluster(
    settings: Mapping[str, str], partitions: Iterable[PartitionNodes], terms: SlurmTerms
) -> str:
    """The text of a configuration: the first partition as a site, the others as comments."""
    first, *others = partitions
    yields = settings.get("PreemptType") == "preempt/partition_prio"
    version = settings.get("SLURM_VERSION", "unknown")
    cluster = f"the Slurm cluster {settings.get('ClusterName', '?')} (version {version})"
    own = terms.partitions[first.name]
    named = (terms.partitions[each.name] for each in others)
    choices = [own.name, *(each.name for each in named if not (yields and _makes_room(each, own)))]
    sites = [_described(nodes, terms) for nodes in (first, *others)]
    return described(
        cluster, "cluster", sites, "partitions", choices, _donation_lines(first, terms) if yields else ()
    )


def _described(nodes: PartitionNodes, terms: SlurmTerms) -> Described:
    partition = terms.partitions[nodes.name]
    default = "; the default partition" if partition.default else ""
    state = "" if nodes.available == "up" else f"; {nodes.available} at the moment"
    # Which accounts and QOS there are to choose from; without a choice Slurm takes the default.
    accounts = dict.fromkeys(each.account for each in terms.associations)
    qos = dict.fromkeys(name for each in terms.associations for name in each.qos)
    choices = {"account": accounts, "qos": qos}
    return Described(
        backend="slurm",
        scheduler="Slurm",
        nodes=nodes,
        known=ceilings(terms, SiteConfig(backend="slurm", partition=nodes.name), nodes),
        remarks=default + state,
        choices=[
            *_feature_lines(nodes),
            *(
                [
                    f"    # {key}: one of {', '.join(names)}"
                    for key, names in choices.items()
                    if len(names) > 1
                ]
            ),
        ],
        whole_nodes="the partition gives nothing less" if partition.exclusive == NODE else "",
    )


def _makes_room(partition: Partition, other: Partition) -> bool:
    """Whether jobs of a partition are ended for those of another, on the nodes that both have."""
    return partition.tier < other.tier and partition.preempt_mode in ("CANCEL", "REQUEUE")


def _donation_lines(nodes: PartitionNodes, terms: SlurmTerms) -> list[str]:
    """Lines that show the donation of idle nodes, if jobs of another partition yield to those of this one."""
    own = terms.partitions[nodes.name]
    there = [each for each in terms.partitions.values() if each.name in nodes.members]
    yielding = [each.name for each in there if _makes_room(each, own)]
    if not yielding:
        return []
    return [
        f"    # Jobs of {' and '.join(yielding)} make room for others, so idle nodes can be donated:",
        f"    # donation: {{mode: preemptible, partition: {scalar(yielding[0])}}}",
    ]


def _feature_lines(nodes: PartitionNodes) -> list[str]:
    """Lines on features by which nodes may be chosen, if nodes differ in any."""
    there = [nodes.features.get(node.name, frozenset()) for node in nodes.machines]
    telling = sorted(frozenset().union(*there) - frozenset.intersection(*there)) if there else []
    if not telling:
        return []
    return [f"    # constraint: {telling[0]}  # features that some nodes have: {', '.join(telling[:_MOST])}"]


__all__ = ["Finding", "check_site", "describe_sites"]


def describe_sites(timeout: float = 30.0) -> str:
    """The YAML text of a configuration for the cluster that answers here, with comments.

    The default partition (or else the first) is a site, the others stand there as comments.

    Raises:
        SchedulerError: no Slurm answers here within `timeout` seconds per command.
    """
    questions = Questions(Commands(asking_environment, timeout))
    settings, rows = questions.settings(), questions.nodes()
    terms, details = questions.terms(settings), questions.node_details()

    def seen(name: str) -> PartitionNodes:
        site = SiteConfig(backend="slurm", partition=name)
        return find_site(rows, name, look_for(site, settings, terms, details))

    names = dict.fromkeys(row.partition for row in rows if row.partition in terms.partitions)
    if not names:
        raise SchedulerError("Slurm answers, but has no partition with nodes for you")
    ordered = sorted(names, key=lambda name: not terms.partitions[name].default)
    return describe_cluster(settings, [seen(name) for name in ordered], terms)


def check_site(site: SiteConfig, machine: Machine = HERE) -> list[Finding]:
    """Findings on the site: good ones, warnings and errors. Submits nothing."""
    asking = Commands(asking_environment, site.command_timeout, machine)
    submitting = Commands(submitting_environment, site.command_timeout, machine)
    try:
        return list(_findings(site, Questions(asking), submitting))
    except SchedulerError as problem:
        return [error(str(problem))]


def _findings(site: SiteConfig, questions: Questions, submitting: Commands) -> Iterator[Finding]:
    settings = questions.settings()
    version, cluster = settings.get("SLURM_VERSION", ""), settings.get("ClusterName", "?")
    yield ok(f"Slurm {version} answers (cluster {cluster})")
    seen = read(questions)
    rows = seen.nodes
    terms = questions.terms(settings)
    nodes = find_site(rows, site.partition, look_for(site, settings, terms, seen.node_details))
    yield from check_partition(nodes)
    yield from check_where(site, nodes)
    yield from check_licenses(site, questions)
    yield from map(warning, unknown_answers(settings, seen, terms.partitions.values()))
    known = ceilings(terms, site, nodes)
    yield from check_limits(site, known, "Slurm")
    yield from check_shared(site, terms, nodes, known)
    yield from check_nodes(site, nodes, terms.partitions.get(nodes.name))
    yield from check_accounting(site, terms, nodes)
    yield from check_scheduler(settings)
    yield from check_ordering(settings, site.limits.max_pending_requests)
    yield from check_donation(site, rows, terms.partitions, settings)
    yield from check_record(questions)
    yield from check_submit(submitting, site, nodes, limits_of(known, site.limits.max_pending_requests))
