"""All that a site's queue and nodes are, asked in one go."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.config.schema import SiteConfig
from backends.pbs.dialect import Dialect
from backends.pbs.nodes import SiteNodes, find_site
from backends.pbs.rows import PbsNode, PbsQueue, PbsReservation, PbsServer


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    server: PbsServer
    queues: dict[str, PbsQueue]
    nodes: Sequence[PbsNode]
    """Of all queues."""
    reservations: Sequence[PbsReservation]
    site: SiteNodes

    @property
    def standstill(self) -> str:
        """Why no job of the site starts at the moment; empty where jobs start."""
        if not self.server.scheduling:
            return f"server {self.server.name} does not schedule"
        if not self.site.queue.started:
            return f"queue {self.site.queue.name} is stopped"
        return ""


def ask_terms(dialect: Dialect, site: SiteConfig) -> Terms:
    """Raises SchedulerError: no answer, or no such queue."""
    server = dialect.server()
    queues = {queue.name: queue for queue in dialect.queues()}
    nodes = dialect.nodes()
    return terms_of(
        server, queues, nodes, dialect.reservations(nodes), site.partition or server.default_queue
    )


def terms_of(
    server: PbsServer,
    queues: dict[str, PbsQueue],
    nodes: Sequence[PbsNode],
    reservations: Sequence[PbsReservation],
    name: str | None,
) -> Terms:
    """Those of the queue `name`. Raises SchedulerError: there is no such queue."""
    return Terms(
        server=server,
        queues=queues,
        nodes=nodes,
        reservations=reservations,
        site=find_site(nodes, queues, name, reservations),
    )
