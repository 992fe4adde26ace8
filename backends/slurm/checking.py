"""Compares a site's configuration with the cluster: one small check per question."""

from __future__ import annotations

from collections.abc import Iterator

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.commands import Commands
from backends.findings import Finding, check_sizes, error, ok, warning
from backends.slurm.limits import Terms, find_association
from backends.slurm.nodes import SiteNodes
from backends.slurm.questions import Questions


def check_partition(nodes: SiteNodes) -> Iterator[Finding]:
    """That jobs can start there, and on how much."""
    if nodes.available != "up":
        yield warning(f"partition {nodes.partition} is {nodes.available} at the moment: no job starts")
    if nodes.nodes:
        yield ok(
            f"partition {nodes.partition}: {len(nodes.nodes)} nodes in service, {nodes.processors} processors"
        )
    else:
        yield warning(f"partition {nodes.partition} has no node in service at the moment")


def check_nodes(site: SiteConfig, nodes: SiteNodes) -> Iterator[Finding]:
    """That the sizes of nodes are as configured, and whole nodes asked for where nothing less is given."""
    if nodes.exclusive and not site.whole_nodes:
        yield error(
            f"partition {nodes.partition} gives only whole nodes: set `whole_nodes: true` and "
            f"`processors_per_node: {nodes.usual_size}`, or the rest of each node stays idle"
        )
    yield from check_sizes(site, {node.processors for node in nodes.nodes.values()}, nodes.usual_size)


def check_accounting(site: SiteConfig, terms: Terms, nodes: SiteNodes) -> Iterator[Finding]:
    """That account and QOS exist for this user."""
    if not terms.associations:
        if site.account or site.qos:
            yield warning("there is no accounting for this user here: `account` and `qos` may be refused")
        return
    mine = find_association(terms.associations, site, nodes.partition)
    if mine is None:
        there = ", ".join(dict.fromkeys(each.account for each in terms.associations))
        yield error(f"account {site.account} is not yours in partition {nodes.partition}; yours are: {there}")
    elif site.qos is not None and site.qos not in mine.qos:
        yield error(f"qos {site.qos} may not be used with account {mine.account}; use: {', '.join(mine.qos)}")
    else:
        yield ok(f"account {mine.account}, QOS {site.qos or mine.default_qos or 'of the cluster'}")


def check_scheduler(settings: dict[str, str]) -> Iterator[Finding]:
    """That free slots are to be seen and used."""
    if "backfill" not in settings.get("SchedulerType", "sched/backfill"):
        yield warning(
            f"Slurm does not backfill here ({settings['SchedulerType']}): no request starts in a free slot "
            "before planned jobs; `heuristic: static` serves as well"
        )
    if "jobs" in settings.get("PrivateData", "none"):
        yield warning(
            "Slurm hides the jobs of others here (PrivateData=jobs): when their processors become free and "
            "which jobs are planned is unknown"
        )


def check_record(questions: Questions) -> Iterator[Finding]:
    """That ended jobs are remembered for longer than a few minutes."""
    try:
        questions.accounting_since("now-1hours")
    except SchedulerError as problem:
        yield warning(
            f"sacct does not answer ({problem}): if no daemon runs for longer than MinJobAge, pilots that "
            "end meanwhile count as vanished"
        )
    else:
        yield ok("sacct answers")


def check_submit(commands: Commands, site: SiteConfig) -> Iterator[Finding]:
    """That Slurm would take the smallest request; nothing is submitted."""
    options = ["--test-only", "--ntasks=1", "--time=1", "--wrap=true"]
    for key, value in (("partition", site.partition), ("account", site.account), ("qos", site.qos)):
        options += [f"--{key}={value}"] if value is not None else []
    try:
        answer = commands.run("sbatch", *options, *site.extra_args)
    except SchedulerError as problem:
        yield error(str(problem))
        return
    if answer.status:
        yield error(f"Slurm would refuse even the smallest request: {answer.complaint}")
    else:
        yield ok("Slurm would accept a request (sbatch --test-only)")
