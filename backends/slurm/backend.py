"""Slurm as a backend."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.model import Allowed, EndedJob, QueueState
from adaptor.reports import JobReport, NodeReport, OwnJob, Remedy
from backends.arrays import script_of
from backends.base import ChangeRefused, PartitionClosed, PilotOrder, SchedulerError, SubmitRefused
from backends.ceilings import Ceilings
from backends.commands import only_says
from backends.donation import donation_terms, shortened
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.observed.backend import BatchBackend
from backends.observed.remembered import Unchanged
from backends.scripts import render
from backends.slurm.accounts import shared_bounds
from backends.slurm.checking import unknown_answers
from backends.slurm.donation import donatable, node_reports
from backends.slurm.jobs import OwnSlurmJobs, remaining_nodes
from backends.slurm.limits import bounded_groups, ceilings, look_for, why_closed
from backends.slurm.nodes import (
    KnownNode,
    Look,
    PartitionNodes,
    check_started,
    find_site,
    gives_whole_nodes,
)
from backends.slurm.ordering import min_job_age, ordering
from backends.slurm.placing.exclusivity import NOTHING
from backends.slurm.placing.gres import NodeDetail
from backends.slurm.placing.restriction import EVERYWHERE, restriction_of
from backends.slurm.placing.shape import SlurmShape, misfit, shape_of
from backends.slurm.questions import SharedCluster, SlurmReading
from backends.slurm.queue import SlurmSeen, queue_state
from backends.slurm.rows import NodeRow, Partition, find_partition
from backends.slurm.submitting import (
    OWN_LOG,
    accepted_id,
    arguments_of,
    changes,
    check_changed,
    donated_options,
    keeps_backslashes,
    minutes_of,
    own_reservation,
    step_gres,
    together,
    where_options,
)

_IS_OVER = ("Invalid job id", "already completing or completed")
TEMPLATE = Path(__file__).with_name("pilot.template")


class SlurmBackend(BatchBackend[SharedCluster]):
    """Slurm at one site (`backends.base.Backend`)."""

    reading = SharedCluster

    def __init__(
        self, site: SiteConfig, machine: Machine = HERE, shared: SharedCluster | None = None
    ) -> None:
        super().__init__(site, machine, shared)
        self._questions = self._shared.questions
        self._own_jobs = OwnSlurmJobs(
            self._questions,
            whole_nodes=site.whole_nodes,
            remembers=lambda: min_job_age(self._shared.settings),
            may_preempt=self._shared.may_preempt,
        )
        self._latest: PartitionNodes | None = None
        self._known_nodes = Unchanged[KnownNode]()

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        """Reports on the nodes for donation. It and `queue_state` ask once if called one after the other.

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

    def submit_array(self, order: PilotOrder) -> list[str]:
        """Submit equal pilots; return the ids of their jobs in the array."""
        id = self.submit(order)
        return [id] if order.pilots == 1 else [f"{id}_{index}" for index in range(order.pilots)]

    def submit(self, order: PilotOrder) -> str:
        """Submit a request; return its job id.

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
        script = script_of(order)
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
            index="" if order.pilots == 1 else "SLURM_ARRAY_TASK_ID",
            gres=step_gres(command[1:]),
            shares=str(self._known_site().memory_shares),
            log=":" if self._escapes(order) else OWN_LOG,
        )
        return accepted_id(self._submit(command, script, text))

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """Reports of our jobs."""
        return self._own_jobs.reports(ids, tag_prefix)

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        """End these jobs by scancel. Slurm signals running workers first and waits `KillWait` for them.

        Raises:
            SchedulerError: scancel failed, or there are many jobs and squeue does not answer.
        """
        user = self._shared.commands.user()
        for options, ids in self._own_jobs.cancel_orders(jobs, user):
            command = ["scancel", *options]
            self._cancel(command, together(ids), lambda answer: only_says(answer.errors, _IS_OVER))

    def reshape(self, id: str, order: PilotOrder) -> None:
        """Change the request of a queued job, which keeps its age."""
        try:
            shape = self._shape(order)
        except SubmitRefused as error:
            raise ChangeRefused(str(error)) from error
        self._shared.look.forget()
        job = self._own_jobs.found(OwnJob(id, order.tag), self._shared.commands.user())
        if not job:
            raise ChangeRefused(f"Slurm has no job {id} with the tag {order.tag}")
        command = changes(order, job, shape, shrinks=self._shared.shrink_margin is not None)
        check_changed(self._shared.commands.run("scontrol", *command))

    def release(self, job: OwnJob, nodes: Collection[str]) -> None:
        """Give nodes of a running pilot back. Processes on them are killed.

        Without accounting, Slurm (22.05) lets a job shrink only once.

        Raises:
            SchedulerError: Slurm does not let the job shrink (now), or nothing would be left of it.
        """
        remaining = remaining_nodes(self._questions.own_jobs(), job, nodes)
        self._shared.look.forget()
        found = self._own_jobs.found(job, self._shared.commands.user())
        if not found:
            raise SchedulerError(f"job {job.id} does not run: it has no nodes to give back")
        self._shared.commands.ask("scontrol", "update", *found, f"NodeList={','.join(remaining)}")

    def ended_jobs(self) -> list[EndedJob]:
        """Jobs of other users that ended lately, from sacct."""
        return self._questions.ended_jobs(self._site.partition)

    def _ceilings(self) -> Ceilings:
        return ceilings(self._shared.terms(), self._site, self._site_nodes())

    def _observe(self) -> QueueState:
        seen = self._shared.look.take(self._asker)
        site = self._site_of(seen.nodes, seen.node_details)
        check_started(site.name, site.available)
        partitions = self._shared.partitions()
        allowed = self._allowed_now(site, seen)
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
                allowed=allowed,
                unknown=unknown_answers(self._shared.settings, seen, partitions.values()),
            )
        )

    def _allowed_now(self, site: PartitionNodes, seen: SlurmReading) -> Allowed:
        """Bounds on our requests now. Raises PartitionClosed: account or QOS may use nothing of the partition
        (any more)."""
        terms, partition = self._shared.terms(), seen.partitions.get(site.name)
        if partition is None:
            return Allowed()
        if reason := why_closed(terms, self._site, partition):
            raise PartitionClosed(reason)
        groups = bounded_groups(terms, self._site, site)
        bounds = shared_bounds(groups, seen.jobs, seen.job_details.found, terms.user)
        return ceilings(terms, self._site, site).allowed(bounds)

    def _gives_whole_nodes(self, partition: Partition | None) -> bool:
        """Whether a node that is partly in use by others takes no request of ours."""
        alone = partition is not None and partition.exclusive != NOTHING
        return self._site.whole_nodes or alone or gives_whole_nodes(self._shared.settings)

    def _site_of(self, rows: list[NodeRow], details: dict[str, NodeDetail]) -> PartitionNodes:
        terms = self._shared.terms()
        look = look_for(self._site, self._shared.settings, terms, details)
        look = msgspec.structs.replace(look, known=self._known_nodes)
        self._latest = find_site(rows, self._site.partition, look)
        return self._latest

    def _site_nodes(self) -> PartitionNodes:
        return self._site_of(self._questions.nodes(), self._questions.node_details())

    def _known_site(self) -> PartitionNodes:
        """The partition's nodes as they were last seen."""
        return self._latest or self._site_nodes()

    def _allowed(self, rows: list[NodeRow], seen: SlurmReading) -> list[NodeRow]:
        """The nodes on which the keys of the site allow pilots on donated nodes."""
        restriction = restriction_of(donation_terms(self._site))
        if restriction == EVERYWHERE:
            return rows
        look = Look(details=seen.node_details, restriction=restriction)
        ours = find_site(seen.nodes, self._site.partition, look).ours
        return [row for row in rows if row.node in ours]

    def _escapes(self, order: PilotOrder) -> bool:
        return "\\" not in str(order.directory) or keeps_backslashes(self._shared.settings)

    def _arguments(self, order: PilotOrder) -> list[str]:
        """Arguments of sbatch for an order. Raises SubmitRefused: Slurm would take it and never start it."""
        escapes = self._escapes(order)
        if order.node:
            options = donated_options(order, self._gpus_on(order))
            return arguments_of(order, donation_terms(self._site), options, escapes=escapes)
        shape = self._shape(order)
        names = [node.name for node in self._known_site().machines]
        options = [*shape.options(), *where_options(self._site, names)]
        return arguments_of(order, self._site, options, escapes=escapes)

    def _shape(self, order: PilotOrder) -> SlurmShape:
        """Shape of an order. Raises SubmitRefused: Slurm would take it and never start it."""
        site = self._known_site()
        per_node = (self._site.processors_per_node or site.usual_size) if self._site.whole_nodes else None
        shape = shape_of(order, site, per_node=per_node)
        if reason := misfit(shape, order.task, site):
            raise SubmitRefused(reason, Remedy.NARROWER)
        return shape

    def _gpus_on(self, order: PilotOrder) -> int:
        """GPUs of the donated node, if the tasks want any; else 0."""
        if not order.task.gpus:
            return 0
        there = [node for node in self._known_site().machines if node.name == order.node]
        return sum(node.gpus_of(order.task.gpu_type) for node in there)


BACKEND = SlurmBackend
