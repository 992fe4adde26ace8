"""Compares a site's configuration with the PBS server: one small check per question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaptor.config.schema import SiteConfig
from adaptor.units import format_duration
from backends.base import SchedulerError
from backends.donation import donation_terms
from backends.findings import (
    Finding,
    check_age,
    check_service,
    check_sizes,
    check_whole_nodes,
    error,
    ok,
    warning,
)
from backends.pbs.donation import donatable
from backends.pbs.openpbs.submitting import CANNOT_YIELD
from backends.pbs.reading import PbsTerms
from backends.pbs.rows import PbsQueue, Preemption
from backends.pbs.state.nodes import QueueNodes, execution_queues, find_queue

_SHORT_MEMORY = 3600.0
"""Seconds of history below which an outage of the daemon may last longer than the record of its pilots."""


def check_queue(terms: PbsTerms) -> Iterator[Finding]:
    """Check that the queue takes jobs and starts them, and report how much they can use."""
    site = terms.site
    name = site.queue.name
    if not site.queue.enabled:
        yield error(f"queue {name} takes no jobs (it is disabled): name another as `partition`")
    yield from _check_access(site.queue, execution_queues(site.queue, terms.queues))
    if terms.standstill:
        yield warning(f"{terms.standstill}: no job starts at the moment")
    yield from check_service("queue", site)
    if site.queue.routes_to:
        yield warning(
            f"queue {name} routes to {', '.join(site.queue.routes_to)}, and PBS drops without a message "
            "what none of them accepts: name one of them as `partition` if you may use it"
        )


def _check_access(queue: PbsQueue, behind: Sequence[PbsQueue]) -> Iterator[Finding]:
    """Check that the queue takes our jobs, of any size."""
    name = queue.name
    if queue.shuts_out:
        yield error(f"queue {name} takes no jobs of ours, {queue.shuts_out}: name another as `partition`")
    if queue.from_routes_only:
        yield error(f"queue {name} takes jobs from routing queues only: name one of them as `partition`")
    if queue.submit_hosts:
        yield warning(f"queue {name} takes jobs from these machines only: {', '.join(queue.submit_hosts)}")
    for each in behind:
        if each.shuts_out and each is not queue:
            yield warning(f"queue {each.name} behind {name} takes no jobs of ours: {each.shuts_out}")
    if queue.min_processors > 1:
        yield ok(f"each request has {queue.min_processors:g} processors at least (resources_min of {name})")
    if queue.min_seconds > 1:
        least = format_duration(queue.min_seconds)
        yield warning(
            f"queue {name} takes no request for less than {least}: set `pad: {least}`, or requests for short "
            "tasks are refused"
        )


def check_nodes(site: SiteConfig, nodes: QueueNodes) -> Iterator[Finding]:
    """Check that the sizes of nodes are as configured, and that the site asks for whole nodes if it must."""
    if nodes.exclusive:
        yield from check_whole_nodes(site, "queue", nodes)
    yield from check_sizes(site, nodes)


def check_server(terms: PbsTerms) -> Iterator[Finding]:
    """Check that PBS shows the jobs of other users, and remembers ended ones."""
    if not terms.server.shows_all_jobs:
        yield warning(
            "PBS hides the jobs of others here (query_other_jobs): processors in use count as in use for "
            "ever, and planned jobs are not seen"
        )
    if terms.server.history < _SHORT_MEMORY:
        yield warning(
            "PBS does not remember ended jobs for long (job_history_enable, job_history_duration): how a "
            "pilot ended is often not known, and it counts as vanished"
        )
    else:
        yield ok(f"PBS remembers ended jobs for {terms.server.history / 3600:g} h")


def check_ordering(terms: PbsTerms) -> Finding:
    """Report whether withdrawing costs a request its place."""
    server = terms.server
    if not server.formula:
        how = "jobs wait in the order of their submission, as far as PBS tells (it shows no job_sort_formula)"
    elif server.loses_age:
        how = f"waiting raises a job's place (eligible_time in job_sort_formula {server.formula})"
    else:
        how = f"waiting gains a job nothing (job_sort_formula {server.formula})"
    return check_age(how, loses_age=server.loses_age)


def check_donation(site: SiteConfig, terms: PbsTerms, preemption: Preemption | None) -> Iterator[Finding]:
    """Check that there are nodes to donate, and that pilots on them yield.

    `preemption`: None: unknown, or not asked because nothing depends on it.
    """
    if site.donation is None:
        return
    yielding = donation_terms(site).partition
    try:
        hosts = {node.host for node in donatable(terms, yielding) if node.processors}
    except SchedulerError as problem:
        yield error(str(problem))
        return
    yield ok(f"donation: {len(hosts)} nodes may be donated")
    if site.donation.mode == "preemptible":
        queue = find_queue(terms.queues, yielding) if yielding else terms.site.queue
        yield from _check_yielding(queue, terms.site.queue, preemption)


def _check_yielding(queue: PbsQueue, local: PbsQueue, preemption: Preemption | None) -> Iterator[Finding]:
    """Check that jobs of `queue` yield to those of the queue `local`."""
    if preemption is None:
        yield warning(
            f"donation: PBS does not say whether jobs of queue {queue.name} make room for local ones: see "
            "`preemptive_sched`, `preempt_queue_prio` and `preempt_order` (best D, for deleting) of its "
            "scheduler"
        )
        return
    order, express = preemption.order, preemption.express_priority
    if not queue.priority < express <= local.priority:
        yield warning(
            f"donation: jobs of queue {queue.name} (priority {queue.priority}) do not make room for those of "
            f"queue {local.name} ({local.priority}): only a queue with at least {express} preempts others "
            "(preempt_queue_prio)"
        )
    if not set(order) & set("SRD"):
        yield error(f"donation: {CANNOT_YIELD.format(order=order)}")
    elif order[0] == "S":
        yield warning(
            f"donation: preempt_order is {order}: PBS suspends pilots that have to yield, and their memory "
            "stays in use; best is D, for deleting"
        )
    else:
        yield ok(f"donation: pilots yield by preempt_order {order}, where preemptive_sched is on")


def check_settings(site: SiteConfig) -> Iterator[Finding]:
    """Check that no setting is one of another scheduler."""
    if site.qos is not None:
        yield warning("`qos` means nothing to PBS and is left out; use `extra_args` for what qsub should get")
