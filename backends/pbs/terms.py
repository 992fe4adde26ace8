"""All that a site's queue and nodes are, asked in one go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.config.schema import SiteConfig
from backends.observed.rows import ReservationRow
from backends.pbs.dialect import Dialect
from backends.pbs.rows import PbsNode, PbsQueue, PbsServer
from backends.pbs.state.nodes import QueueNodes, find_site


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    server: PbsServer
    queues: dict[str, PbsQueue]
    nodes: Sequence[PbsNode]
    """Of all queues."""
    reservations: Sequence[ReservationRow]
    site: QueueNodes

    @property
    def standstill(self) -> str:
        """Why no job of the site starts at the moment; empty where jobs start."""
        if not self.server.scheduling:
            return f"server {self.server.name} does not schedule"
        if not self.site.queue.started:
            return f"queue {self.site.queue.name} is stopped"
        return ""

    @property
    def default_limit(self) -> float | None:
        """Seconds of a job that names no walltime; None: PBS does not say.

        In the order of "Default resources" (PBS Administrator's Guide): what queue and server give, then what
        they allow at most.
        """
        givers = (self.site.queue, self.server)
        given = [each.default_seconds for each in givers if each.default_seconds is not None]
        found = [*given, *(each.max_seconds for each in givers if each.max_seconds < math.inf)]
        return found[0] if found else None


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What PBS says of itself, whatever the queue."""

    server: PbsServer
    queues: dict[str, PbsQueue]
    nodes: Sequence[PbsNode]
    reservations: Sequence[ReservationRow]

    def terms(self, site: SiteConfig, wants: Mapping[str, str] | None = None) -> Terms:
        """Args: wants: see `terms_of`. Raises PartitionClosed: no such queue."""
        name = site.partition or self.server.default_queue
        return terms_of(self.server, self.queues, self.nodes, self.reservations, name, wants or {})


def ask(dialect: Dialect) -> Answers:
    """Raises SchedulerError: no answer."""
    server = dialect.server()
    queues = {queue.name: queue for queue in dialect.queues()}
    nodes = dialect.nodes()
    return Answers(server=server, queues=queues, nodes=nodes, reservations=dialect.reservations(nodes))


def ask_terms(dialect: Dialect, site: SiteConfig, wants: Mapping[str, str] | None = None) -> Terms:
    """Args: wants: see `terms_of`. Raises SchedulerError: no answer, or no such queue."""
    return ask(dialect).terms(site, wants)


def terms_of(
    server: PbsServer,
    queues: dict[str, PbsQueue],
    nodes: Sequence[PbsNode],
    reservations: Sequence[ReservationRow],
    name: str | None,
    wants: Mapping[str, str] = {},
) -> Terms:
    """Those of the queue `name`.

    Args:
        wants: what the site's requests ask of their nodes (`backends.pbs.constraints`).

    Raises:
        SchedulerError: there is no such queue.
    """
    return Terms(
        server=server,
        queues=queues,
        nodes=nodes,
        reservations=reservations,
        site=find_site(nodes, queues, name, reservations, wants),
    )
