"""Slurm as a backend."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.model import EndedJob, QueueState
from adaptor.reports import JobReport, NodeReport, Remedy
from backends.base import ChangeRefused, PilotOrder, SubmitRefused
from backends.ceilings import Ceilings
from backends.commands import only_says
from backends.donation import donation_terms, shortened
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.observed.backend import BatchBackend
from backends.observed.remembered import Unchanged
from backends.scripts import render
from backends.slurm.checking import unknown_answers
from backends.slurm.donation import donatable, node_reports
from backends.slurm.jobs import OwnSlurmJobs, remaining_nodes
from backends.slurm.limits import ask_terms, ceilings
from backends.slurm.nodes import (
    KnownNode,
    Look,
    PartitionNodes,
    check_started,
    find_site,
    gives_whole_nodes,
    memory_terms,
)
from backends.slurm.ordering import ordering
from backends.slurm.placing.exclusivity import NOTHING
from backends.slurm.placing.gres import NodeDetail
from backends.slurm.placing.restriction import EVERYWHERE, restriction_of
from backends.slurm.placing.shape import SlurmShape, misfit, shape_of
from backends.slurm.questions import SharedCluster, SlurmReading
from backends.slurm.queue import SlurmSeen, queue_state
from backends.slurm.rows import NodeRow, Partition, find_partition
from backends.slurm.submitting import (
    accepted_id,
    arguments_of,
    changes,
    check_changed,
    donated_options,
    minutes_of,
    own_reservation,
    step_gres,
    where_options,
)

_IS_OVER = ("Invalid job id", "already completing or completed")
TEMPLATE = Path(__file__).with_name("pilot.template")


class SlurmBackend(BatchBackend[SharedCluster]):
    """Implements `backends.base.Backend`."""

    reading = SharedCluster

    def __init__(
        self, site: SiteConfig, machine: Machine = HERE, shared: SharedCluster | None = None
    ) -> None:
        super().__init__(site, machine, shared)
        self._questions = self._shared.questions
        self._own_jobs = OwnSlurmJobs(self._questions, whole_nodes=site.whole_nodes)
        self._restriction = restriction_of(site)
        self._latest: PartitionNodes | None = None
        self._known_nodes = Unchanged[KnownNode]()

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        """See `backends.base.Backend`. Asks nothing that `queue_state` has just read, or the reverse.

        Raises:
            SchedulerError: no answer, no such partition (the site's or that of `donation`), or it starts
                no jobs at the moment.
        """
        seen = self._shared.look.take("nodes")
        return node_reports(
            seen.now,
            self._allowed(donatable(seen.nodes, self._site), seen),
            seen.jobs,
            frozenset(donated),
            seen.other_reservations(own_reservation(donation_terms(self._site))),
        )

    def submit(self, order: PilotOrder) -> str:
        """See `backends.base.Backend`.

        Raises:
            SubmitRefused: Slurm said no.
            SubmitUncertain: sbatch hung, or failed in a way that leaves open what became of the request.
            SchedulerError: sbatch cannot be run or did not reach Slurm; the request is not queued.
        """
        if order.node:
            partition = find_partition(
                self._shared.partitions().values(), donation_terms(self._site).partition
            )
            order = shortened(order, (partition.max_time if partition is not None else math.inf))
        script = order.directory / "pilot.sh"
        command = ["sbatch", *self._arguments(order), str(script)]
        text = render(
            TEMPLATE,
            processors=order.request.p,
            minutes=str(minutes_of(order)),
            shrinks=str(self._shared.shrink_margin is not None).lower(),
            command=command,
            environment=order.environment,
            prologue=self._site.prologue,
            worker=order.worker,
            gres=step_gres(command[1:]),
        )
        return accepted_id(self._submit(command, script, text))

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """See `backends.base.Backend`."""
        return self._own_jobs.reports(ids, tag_prefix)

    def cancel(self, ids: Collection[str]) -> None:
        """See `backends.base.Backend`. Slurm tells running workers first and waits `KillWait` for them."""
        self._cancel("scancel", ids, lambda answer: only_says(answer.errors, _IS_OVER))

    def reshape(self, id: str, order: PilotOrder) -> None:
        """See `backends.base.Backend`."""
        try:
            shape = self._shape(order)
        except SubmitRefused as error:
            raise ChangeRefused(str(error)) from error
        self._shared.look.forget()
        check_changed(
            self._shared.commands.run(
                "scontrol", *changes(id, order, shape, shrinks=self._shared.shrink_margin is not None)
            )
        )

    def release(self, id: str, nodes: Collection[str]) -> None:
        """See `backends.base.Backend`. Whatever still runs on these nodes is killed.

        Without accounting, Slurm (22.05) lets a job shrink only once.

        Raises:
            SchedulerError: Slurm does not let the job shrink (now), or nothing would be left of it.
        """
        remaining = remaining_nodes(self._questions.own_jobs(), id, nodes)
        self._shared.look.forget()
        self._shared.commands.ask("scontrol", "update", f"JobId={id}", f"NodeList={','.join(remaining)}")

    def ended_jobs(self) -> list[EndedJob]:
        """See `backends.base.Backend`: from sacct."""
        return self._questions.ended_jobs(self._site.partition)

    def _ceilings(self) -> Ceilings:
        return ceilings(ask_terms(self._questions), self._site, self._site_nodes())

    def _observe(self) -> QueueState:
        seen = self._shared.look.take(self._asker)
        site = self._site_of(seen.nodes, seen.node_details)
        check_started(site.name, site.available)
        partitions = self._shared.partitions()
        return queue_state(
            SlurmSeen(
                now=seen.now,
                site=site,
                jobs=seen.jobs,
                reservations=seen.other_reservations(own_reservation(self._site)),
                tiers={partition.name: partition.tier for partition in partitions.values()},
                whole_nodes=self._gives_whole_nodes(partitions.get(site.name)),
                details=seen.job_details.found,
                wanted_licenses=self._shared.licenses,
                licenses=seen.licenses,
                ordering=ordering(self._shared.settings),
                user=self._shared.commands.user(),
                known=self._known_jobs,
                unknown=unknown_answers(self._shared.settings, seen, partitions.values()),
            )
        )

    def _gives_whole_nodes(self, partition: Partition | None) -> bool:
        """Whether a node that is partly in use by others takes no request of ours."""
        alone = partition is not None and partition.exclusive != NOTHING
        return self._site.whole_nodes or alone or gives_whole_nodes(self._shared.settings)

    def _site_of(self, rows: list[NodeRow], details: dict[str, NodeDetail]) -> PartitionNodes:
        partitions = self._shared.partitions()
        look = Look(
            details=details,
            restriction=self._restriction,
            memory=memory_terms(self._shared.settings, partitions, self._site.partition),
            known=self._known_nodes,
        )
        self._latest = find_site(rows, self._site.partition, look)
        return self._latest

    def _site_nodes(self) -> PartitionNodes:
        return self._site_of(self._questions.nodes(), self._questions.node_details())

    def _known_site(self) -> PartitionNodes:
        """As it was seen last."""
        return self._latest or self._site_nodes()

    def _allowed(self, rows: list[NodeRow], seen: SlurmReading) -> list[NodeRow]:
        """Those on which the keys of the site let pilots on donated nodes run."""
        restriction = restriction_of(donation_terms(self._site))
        if restriction == EVERYWHERE:
            return rows
        look = Look(details=seen.node_details, restriction=restriction)
        ours = find_site(seen.nodes, self._site.partition, look).ours
        return [row for row in rows if row.node in ours]

    def _arguments(self, order: PilotOrder) -> list[str]:
        """Raises SubmitRefused: Slurm would take it and never start it."""
        if order.node:
            return arguments_of(
                order, donation_terms(self._site), donated_options(order, self._gpus_on(order))
            )
        shape = self._shape(order)
        names = [node.name for node in self._known_site().machines]
        return arguments_of(order, self._site, [*shape.options(), *where_options(self._site, names)])

    def _shape(self, order: PilotOrder) -> SlurmShape:
        """Raises SubmitRefused: Slurm would take it and never start it."""
        site = self._known_site()
        per_node = (self._site.processors_per_node or site.usual_size) if self._site.whole_nodes else None
        shape = shape_of(order, site.machines, per_node=per_node, default_memory=site.default_memory)
        if reason := misfit(shape, order.task, site.machines, site.name):
            raise SubmitRefused(reason, Remedy.NARROWER)
        return shape

    def _gpus_on(self, order: PilotOrder) -> int:
        """Of the donated node, where the tasks want any."""
        if not order.task.gpus:
            return 0
        there = [node for node in self._known_site().machines if node.name == order.node]
        return sum(node.gpus_of(order.task.gpu_type) for node in there)


BACKEND = SlurmBackend
