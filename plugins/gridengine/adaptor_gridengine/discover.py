"""Discovery of a cell for `adaptor site init`, and checks of a site for `adaptor site check`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from adaptor.config.schema import SiteConfig
from adaptor.units import Duration
from adaptor_gridengine.parse import GridQueue
from adaptor_gridengine.reading import Master
from adaptor_gridengine.state import GridSeen, ceilings, pes_of
from backends.base import SchedulerError
from backends.describing import Described, described
from backends.findings import Finding, check_age, check_limits, check_service, check_sizes, error, ok, warning
from backends.machines.base import Machine
from backends.machines.here import HERE


def describe_sites(timeout: float = 30.0) -> str:
    """The YAML text of a configuration for the Grid Engine that answers here, with comments.

    The queue that a site without `partition` has, or else the first, is a site; the others are comments.

    Raises SchedulerError: no Grid Engine answers here within `timeout` seconds per command.
    """
    master = Master(SiteConfig(backend="gridengine", command_timeout=Duration(timeout)), HERE)
    seen = master.see()
    names = [name for name in seen.cell.queues if seen.nodes(name).machines]
    if not names:
        raise SchedulerError("Grid Engine answers, but has no queue with hosts")
    names.sort(key=lambda name: name != "all.q")
    sites = [
        Described(
            backend="gridengine",
            scheduler="Grid Engine",
            nodes=seen.nodes(name),
            known=ceilings(seen.cell, seen.cell.queues[name], seen.nodes(name)),
            note="  # the queue",
        )
        for name in names
    ]
    return described(f"Grid Engine ({master.version()})", "qmaster", sites, "queues", names)


def check_site(site: SiteConfig, machine: Machine) -> list[Finding]:
    """Findings on the site: good ones, warnings and errors. Submits nothing."""
    try:
        return list(_findings(site, Master(site, machine)))
    except SchedulerError as problem:
        return [error(str(problem))]


def _findings(site: SiteConfig, master: Master) -> Iterator[Finding]:
    seen = master.see()
    queue = seen.queue(site.partition)
    nodes = seen.nodes(queue.name)
    yield ok(f"Grid Engine answers ({master.version()})")
    if site.qos is not None:
        yield warning("`qos` means nothing to Grid Engine: use `extra_args` for what qsub should get")
    yield from check_service("queue", nodes)
    yield from check_limits(site, ceilings(seen.cell, queue, nodes), "Grid Engine")
    yield from check_sizes(site, nodes)
    yield _check_pes(seen, queue)
    if seen.cell.default_memory == 0:
        yield warning("h_vmem is given like slots, 0 by default: jobs that name none are killed; use --mem")
    if master.records(time.time()) is None:
        yield warning(
            "qacct shows no records: how a pilot ended is often not known, and it counts as vanished"
        )
    if re.search(r"^max_reservation\s+0\b", master.commands.ask("qconf", "-ssconf"), re.MULTILINE):
        yield warning(
            "max_reservation is 0: a request for many processors waits until that many are free at once"
        )
    yield check_age("waiting raises a job's place (weight_waiting_time)", loses_age=True)


def _check_pes(seen: GridSeen, queue: GridQueue) -> Finding:
    """Check that a request may go over several hosts."""
    pes = pes_of(seen.cell, queue)
    told = f"parallel environments of queue {queue.name}: "
    told += ", ".join(f"{pe.name} ({pe.rule})" for pe in pes) or "none"
    if any(pe.controls and pe.rule != "$pe_slots" for pe in pes):
        return ok(told)
    return warning(f"{told}; none gives slots of several hosts with `control_slaves TRUE`")
