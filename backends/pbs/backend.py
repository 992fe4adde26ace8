"""PBS as a backend."""

from __future__ import annotations

import math
from collections.abc import Collection

import msgspec

from adaptor.model import EndedJob, QueueState
from adaptor.reports import JobReport, JobState, NodeReport, OwnJob, Remedy, gone
from adaptor.units import counted
from backends.arrays import script_of
from backends.base import TAG_START, ChangeRefused, PartitionClosed, PilotOrder, SchedulerError, SubmitRefused
from backends.ceilings import Ceilings
from backends.donation import donation_terms, shortened
from backends.observed.backend import BatchBackend
from backends.pbs.constraints import PbsShape, node_traits, shape_of
from backends.pbs.donation import donatable, node_reports
from backends.pbs.fields import element_id, is_element
from backends.pbs.limits import ceilings, of_array, refusal, together, with_least
from backends.pbs.openpbs.server import OpenPbs
from backends.pbs.reading import PbsTerms, SharedServer, ask
from backends.pbs.rows import PbsJob, PbsQueue
from backends.pbs.state.nodes import execution_queues, find_queue, misfit
from backends.pbs.state.queue import queue_state, report_of, was_put_back_to_yield
from backends.scripts import render


class PbsBackend(BatchBackend[SharedServer]):
    """PBS at one site (`backends.base.Backend`)."""

    reading = SharedServer
    _terms: PbsTerms | None = None

    def _pbs(self) -> OpenPbs:
        """The PBS that answers. Raises SchedulerError: none does."""
        return self._shared.pbs()

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        """Reports on the nodes for donation.

        Raises SchedulerError: no answer, no such queue (the site's or that of `donation`), or no job starts
        from it at the moment.
        """
        seen = self._look("nodes")
        nodes = donatable(seen, donation_terms(self._site).partition)
        return node_reports(seen.now, nodes, seen.jobs, donated, seen.other_reservations)

    def submit(self, order: PilotOrder) -> str:
        """Submit a request; return its job id.

        Raises:
            SubmitRefused: PBS said no, or would take the request and never start it.
            SubmitUncertain: qsub hung, or failed in a way that leaves open what became of the request.
            SchedulerError: qsub cannot be run or did not reach PBS; the request is not queued.
        """
        pbs = self._pbs()
        if order.node:
            queues = execution_queues(self._donation_queue(), self._known_terms().queues)
            order = shortened(order, max((each.max_seconds for each in queues), default=math.inf))
        shape, order = self._shape(order), self._with_least(order)
        script = script_of(order)
        terms = donation_terms(self._site) if order.node else self._site
        command = ["qsub", *pbs.arguments(order, terms, shape, script)]
        text = render(
            pbs.template,
            processors=order.request.p,
            seconds=str(order.request.tr),
            command=command,
            environment=order.environment,
            prologue=self._site.prologue,
            worker=order.worker,
            index="" if order.pilots == 1 else "PBS_ARRAY_INDEX",
            chunk=str(shape.part.processors),
            memory="" if shape.part.memory is None else str(shape.part.memory),
            gpus=str(shape.part.whole_gpus or ""),
        )
        return pbs.accepted_id(self._submit(command, script, text))

    def submit_array(self, order: PilotOrder) -> list[str]:
        """Submit equal pilots; return the ids of their jobs in the array."""
        id = self.submit(order)
        return [id] if order.pilots == 1 else [element_id(id, index) for index in range(order.pilots)]

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """Reports of our jobs. A pilot that was put back into its queue to yield is deleted there."""
        pbs = self._pbs()
        found = [job for job in pbs.own_jobs(ids) if job.id in ids or job.tag.startswith(tag_prefix)]
        states = [(job, pbs.state_of(job)) for job in found]
        put_back = [
            job.id
            for job, state in states
            if job.tag.startswith(tag_prefix) and was_put_back_to_yield(job, state)
        ]
        if put_back:
            self._cancel(["qdel"], put_back, pbs.is_over)
        unknown = pbs.unknown_ids().intersection(ids).difference(job.id for job in found)
        return [*(report_of(job, state) for job, state in states), *gone(unknown)]

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        """End these jobs by qdel. PBS signals running workers first and waits `kill_delay` for them."""
        ours = [job.id for job, state in self._own(jobs) if state.ended is None]
        self._cancel(["qdel"], ours, self._pbs().is_over)

    def reshape(self, id: str, order: PilotOrder) -> None:
        """Change the request of a queued job. PBS changes an array as a whole, and none that has begun."""
        if is_element(id):
            raise ChangeRefused(f"{id}: PBS changes no single job of an array")
        pbs = self._pbs()
        if not self._own([OwnJob(id, order.tag)]):
            raise ChangeRefused(f"PBS has no job {id} with the tag {order.tag}")
        try:
            shape, order = self._shape(order), self._with_least(order)
        except SubmitRefused as error:
            raise ChangeRefused(str(error)) from error
        self._shared.look.forget()
        command = pbs.changes(order, shape)
        pbs.check_changed(self._shared.commands.run("qalter", *command, id))

    def release(self, job: OwnJob, nodes: Collection[str]) -> None:
        """Give nodes of a running pilot back. Processes there are killed; PBS takes no first node of a job.

        Raises SchedulerError: the job has none of these nodes, or PBS keeps them with it (for now).
        """
        hosts, leaving = {node.name: node.host for node in self._known_terms().nodes}, set(map(_short, nodes))
        held = [name for found, _ in self._own([job]) for name in found.nodes]
        vnodes = [name for name in held if _short(hosts.get(name, name)) in leaving]
        if not vnodes:
            raise SchedulerError(f"job {job.id} can give back none of {', '.join(sorted(nodes))}")
        self._shared.look.forget()
        self._shared.commands.ask("pbs_release_nodes", "-j", job.id, *vnodes)

    def _own(self, jobs: Collection[OwnJob]) -> list[tuple[PbsJob, JobState]]:
        """The jobs that PBS has now with these numbers and these tags: its orders take numbers only."""
        pbs, wanted = self._pbs(), set(jobs)
        found = pbs.own_jobs([job.id for job in wanted])
        return [(job, pbs.state_of(job)) for job in found if OwnJob(job.id, job.tag) in wanted]

    def ended_jobs(self) -> list[EndedJob]:
        """Jobs of other users that ended lately, from the server's history of jobs, if it keeps one."""
        return [
            EndedJob(job.owner, job.limit, job.used)
            for job in self._pbs().ended_jobs()
            if job.used and 0 < job.limit < math.inf and not job.tag.startswith(TAG_START)
        ]

    def _ceilings(self) -> Ceilings:
        return ceilings(self._ask_terms())

    def _shape(self, order: PilotOrder) -> PbsShape:
        """Chunks that an order asks for. Raises SubmitRefused: PBS would never start it."""
        site, per_node = self._known_terms().site, None
        if self._site.whole_nodes:
            per_node = self._site.processors_per_node or site.usual_size
        shape = shape_of(order, per_node, site.machines)
        if not order.node:
            shape = msgspec.structs.replace(shape, traits=tuple(sorted(self._traits().items())))
        self._refuse_what_never_fits(order, shape)
        return shape

    def _observe(self) -> QueueState:
        terms = self._look(self._asker)
        return queue_state(
            terms.now,
            terms.site,
            terms.jobs,
            terms.queues,
            terms.other_reservations,
            whole_nodes=self._site.whole_nodes or terms.site.exclusive,
            known=self._known_jobs,
            allowed=ceilings(terms).allowed(together(terms, self._shared.commands.user())),
        )

    def _look(self, asker: str) -> PbsTerms:
        seen = self._shared.look.take(asker)
        self._terms = terms = seen.terms(self._site.partition, self._traits())
        if terms.standstill:
            raise PartitionClosed(f"{terms.standstill}: no job starts at the moment")
        return terms

    def _ask_terms(self) -> PbsTerms:
        return ask(self._pbs()).terms(self._site.partition, self._traits())

    def _traits(self) -> dict[str, str]:
        """Traits of the nodes for the site's requests. Raises SchedulerError: PBS cannot be asked for such
        nodes."""
        return node_traits(self._site)

    def _known_terms(self) -> PbsTerms:
        """The terms as they were when the queue was last read."""
        if self._terms is None:
            self._terms = self._ask_terms()
        return self._terms

    def _refuse_what_never_fits(self, order: PilotOrder, shape: PbsShape) -> None:
        """PBS takes a request for more than there is; a routing queue drops it without a word."""
        terms = self._known_terms()
        request, site = order.request, terms.site
        queue = self._donation_queue() if order.node else site.queue
        if request.p > site.total:
            raise SubmitRefused(
                f"{request.p} processors were asked for, but queue {site.queue.name} has only {site.total}: "
                "lower `limits.max_proc` of this site",
                Remedy.NARROWER,
            )
        problem = misfit(shape, site.machines, site.queue.name)
        if problem:
            raise SubmitRefused(problem, Remedy.NARROWER)
        reasons = [refusal(each, request) for each in execution_queues(queue, terms.queues)]
        if all(reasons):
            raise SubmitRefused(
                f"queue {queue.name} takes no {counted(request.p, 'processor')} for {request.tr} s: "
                + "; ".join(reasons)
            )

    def _with_least(self, order: PilotOrder) -> PilotOrder:
        """Queues take no least time below what they take of a walltime, and PBS none of arrays."""
        terms = self._known_terms()
        request = with_least(order.request, execution_queues(terms.site.queue, terms.queues))
        request = request if order.pilots == 1 else of_array(request)
        return msgspec.structs.replace(order, request=request)

    def _donation_queue(self) -> PbsQueue:
        """Queue of the pilots on donated nodes. Raises SchedulerError: there is no such queue."""
        terms, named = self._known_terms(), donation_terms(self._site).partition
        return find_queue(terms.queues, named) if named else terms.site.queue


BACKEND = PbsBackend


def _short(host: str) -> str:
    """A host's name without its domain, which some answers of PBS leave out."""
    return host.partition(".")[0]
