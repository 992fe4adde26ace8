"""Discovery of a server for `adaptor site init`, and checks of a site for `adaptor site check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.commands import Commands
from backends.describing import Described, described
from backends.findings import Finding, check_limits, check_shrinking, error, ok
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.pbs import checking
from backends.pbs.constraints import node_traits
from backends.pbs.limits import ceilings
from backends.pbs.margins import SHRINK_MARGIN, SLOT_MARGIN
from backends.pbs.openpbs.server import OpenPbs
from backends.pbs.reading import PbsTerms, ask, asking_environment, choose
from backends.pbs.state.nodes import execution_queues

__all__ = ["Finding", "check_site", "describe_sites"]


def describe_sites(timeout: float = 30.0) -> str:
    """The YAML text of a configuration for the PBS that answers here, with comments.

    The default queue (or else the first) is a site, the others that take jobs stand there as comments.

    Raises SchedulerError: no PBS answers here within `timeout` seconds per command.
    """
    pbs = choose(Commands(asking_environment, timeout))
    answers = ask(pbs)
    server, queues = answers.server, answers.queues
    # Those that take our jobs, and hand them on where they are routing queues.
    names = [
        name
        for name, queue in queues.items()
        if queue.enabled
        and not queue.from_routes_only
        and not queue.shuts_out
        and any(not each.shuts_out for each in execution_queues(queue, queues))
    ]
    if not names:
        raise SchedulerError(f"PBS server {server.name} answers, but has no queue that takes jobs of ours")
    names.sort(key=lambda name: name != server.default_queue)
    return describe_server([answers.terms(name) for name in names])


def describe_server(sites: Sequence[PbsTerms]) -> str:
    """The text of a configuration: the first queue as a site, the others as comments."""
    server = sites[0].server
    return described(
        f"the PBS server {server.name} (OpenPBS {server.version})",
        "server",
        [_described(terms) for terms in sites],
        "queues",
        [terms.site.name for terms in sites],
    )


def _described(terms: PbsTerms) -> Described:
    site = terms.site
    default = "; the default queue" if site.name == terms.server.default_queue else ""
    routes = f"; leads to {', '.join(site.queue.routes_to)}" if site.queue.routes_to else ""
    state = f"; {terms.standstill}" if terms.standstill else ""
    return Described(
        backend="pbs",
        scheduler="PBS",
        nodes=site,
        known=ceilings(terms),
        remarks=default + routes + state,
        note="  # the queue",
        whole_nodes="its nodes are given whole only" if site.exclusive else "",
    )


def check_site(site: SiteConfig, machine: Machine = HERE) -> list[Finding]:
    """Findings on the site: good ones, warnings and errors. Submits nothing."""
    try:
        pbs = choose(Commands(asking_environment, site.command_timeout, machine))
        return list(_findings(site, pbs, ask(pbs).terms(site.partition, node_traits(site))))
    except SchedulerError as problem:
        return [error(str(problem))]


def _findings(site: SiteConfig, pbs: OpenPbs, terms: PbsTerms) -> Iterator[Finding]:
    yield ok(f"OpenPBS {terms.server.version} answers (server {terms.server.name})")
    yield from checking.check_settings(site)
    yield from checking.check_queue(terms)
    yield from check_limits(site, ceilings(terms), "PBS")
    yield from checking.check_nodes(site, terms.site)
    yield from checking.check_server(terms)
    yield checking.check_ordering(terms)
    yield check_shrinking(SLOT_MARGIN, SHRINK_MARGIN)
    preempts = site.donation is not None and site.donation.mode == "preemptible"
    yield from checking.check_donation(site, terms, pbs.preemption() if preempts else None)
