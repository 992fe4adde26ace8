"""For `adaptor site init` and `adaptor site check`: what the cluster is, and whether a site fits it."""

from __future__ import annotations

from collections.abc import Iterator

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.commands import Commands
from backends.findings import Finding, check_limits, error, ok, warning
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.slurm.checking import (
    check_accounting,
    check_licenses,
    check_nodes,
    check_partition,
    check_record,
    check_scheduler,
    check_submit,
    check_where,
)
from backends.slurm.checking_donation import check_donation
from backends.slurm.describing import describe_cluster
from backends.slurm.environment import asking_environment, submitting_environment
from backends.slurm.limits import ask_terms, ceilings
from backends.slurm.nodes import Look, find_site
from backends.slurm.ordering import check_ordering
from backends.slurm.placing.restriction import restriction_of
from backends.slurm.questions import Questions, read
from backends.slurm.unknown import unknown_answers

__all__ = ["Finding", "check_site", "describe_sites"]


def describe_sites(timeout: float = 30.0) -> str:
    """The YAML text of a configuration for the cluster that answers here, with comments.

    The default partition (or else the first) is a site, the others stand there as comments.

    Raises:
        SchedulerError: no Slurm answers here within `timeout` seconds per command.
    """
    questions = Questions(Commands(asking_environment, timeout))
    settings, rows, terms = questions.settings(), questions.nodes(), ask_terms(questions)
    look = Look(details=questions.node_details())
    names = dict.fromkeys(row.partition for row in rows if row.partition in terms.partitions)
    if not names:
        raise SchedulerError("Slurm answers, but has no partition with nodes for you")
    ordered = sorted(names, key=lambda name: not terms.partitions[name].default)
    return describe_cluster(settings, [find_site(rows, name, look) for name in ordered], terms)


def check_site(site: SiteConfig, machine: Machine = HERE) -> list[Finding]:
    """What is as it should be, what may surprise, and what will not work. Submits nothing."""
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
    look = Look(details=seen.node_details, restriction=restriction_of(site))
    nodes = find_site(rows, site.partition, look)
    yield from check_partition(nodes)
    yield from check_where(site, nodes)
    yield from check_licenses(site, questions)
    terms = ask_terms(questions)
    yield from map(warning, unknown_answers(settings, seen, terms.partitions.values()))
    yield from check_limits(site, ceilings(terms, site, nodes), "Slurm")
    yield from check_nodes(site, nodes, terms.partitions.get(nodes.name))
    yield from check_accounting(site, terms, nodes)
    yield from check_scheduler(settings)
    yield from check_ordering(settings, site.limits.max_pending_requests)
    yield from check_donation(site, rows, terms.partitions, settings)
    yield from check_record(questions)
    yield from check_submit(submitting, site, nodes)
