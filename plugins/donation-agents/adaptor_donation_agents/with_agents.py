"""A batch scheduler, and agents on the nodes that it leaves idle, as one backend."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.model import EndedJob, Limits, QueueState
from adaptor.reports import JobReport, NodeReport
from adaptor_donation_agents.agents import Agents
from backends.base import Backend, PilotOrder, SchedulerError
from backends.donation import is_agent
from backends.machines.base import Machine


class WithAgents:
    """Implements `backends.base.Backend`: orders with a node go to the agents, others to the scheduler."""

    def __init__(self, scheduler: Backend, agents: Agents) -> None:
        self._scheduler = scheduler
        self._agents = agents
        self.time_resolution = scheduler.time_resolution
        self.slot_margin = scheduler.slot_margin
        self.shrink_margin = scheduler.shrink_margin

    def queue_state(self) -> QueueState:
        state = self._scheduler.queue_state()
        # Some learn them when they are first asked.
        self.time_resolution = self._scheduler.time_resolution
        self.slot_margin = self._scheduler.slot_margin
        self.shrink_margin = self._scheduler.shrink_margin
        return state

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        return self._scheduler.nodes([id for id in donated if not is_agent(id)])

    def submit(self, order: PilotOrder) -> str:
        return self._agents.start(order) if order.node else self._scheduler.submit(order)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        requests = self._scheduler.jobs([id for id in ids if not is_agent(id)], tag_prefix)
        return [*requests, *self._agents.reports([id for id in ids if is_agent(id)], tag_prefix)]

    def cancel(self, ids: Collection[str]) -> None:
        agents = [id for id in ids if is_agent(id)]
        requests = [id for id in ids if not is_agent(id)]
        if agents:
            self._agents.end(agents)
        if requests:
            self._scheduler.cancel(requests)

    @property
    def can_release(self) -> bool:
        return self._scheduler.can_release

    @property
    def can_reshape(self) -> bool:
        return self._scheduler.can_reshape

    def reshape(self, id: str, order: PilotOrder) -> None:
        self._scheduler.reshape(id, order)

    def release(self, id: str, nodes: Collection[str]) -> None:
        if is_agent(id):
            raise SchedulerError(f"{id}: an agent holds one node and gives it back when it ends")
        self._scheduler.release(id, nodes)

    def ended_jobs(self) -> list[EndedJob]:
        return self._scheduler.ended_jobs()

    def advertised_limits(self) -> Limits:
        return self._scheduler.advertised_limits()


def with_agents(
    scheduler: Backend,
    site: SiteConfig,
    donation: DonationConfig,
    folder: Path,
    python: str,
    machine: Machine,
) -> Backend:
    """Implements `backends.registry.MakeAgents`."""
    return WithAgents(scheduler, Agents(site, donation, folder, python, machine))
