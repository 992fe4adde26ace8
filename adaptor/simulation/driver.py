"""One grid job on a simulated cluster, driven by the decisions of the daemon (De Rose §4.4)."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import (
    Decision,
    Issue,
    PilotView,
    PlanningView,
    Reshape,
    TaskShape,
    Withdraw,
    Withhold,
)
from adaptor.crafting.submissions import Submissions
from adaptor.model import CraftedRequest, PilotState, QueueState, Request
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.grid_job import GridRequest, GridResult, GridTerms, check_grid_job
from adaptor.simulation.kernels import NEVER, Array
from adaptor.simulation.pilot_requests import Cluster, check_place, queue_for, reshape, submit
from adaptor.simulation.queue_view import queue_state
from adaptor.simulation.tasks.kernel_tasks import tasks_of
from adaptor.simulation.tasks.protocol import SITE, MakeTasks, Served

Planner = Callable[[PlanningView], list[Decision]]
"""The planning step: `plan`, or somebody who asks it and takes notes."""


def run_grid_job(
    cluster: Cluster,
    runtimes: Array,
    terms: GridTerms,
    make: MakeTasks = tasks_of,
    planner: Planner = plan,
) -> GridResult:
    """Run a bag of tasks that is submitted now, to its last task; the cluster's clock moves on.

    The planner is asked at the submission, whenever a pilot starts or ends and whenever the estimated
    runtime changes, which is when the daemon wakes ("every time the grid broker asks for processors
    or when a space-shared request finishes", §4.3.1).

    Args:
        cluster: usually a fork; its queue is the one that the job finds.
        runtimes: int64, whole seconds of each task, in the order in which they are handed out.
        make: who runs the tasks.
        planner: who decides.

    Raises:
        ReplayError: a task fits into no request or on no node, or no request is possible.
    """
    check_place(cluster, terms)
    check_grid_job(runtimes, terms, cluster.processors)
    return _Driver(cluster, runtimes, terms, make, planner).run()


class _Pilot:
    """A request in the system."""

    __slots__ = ("request", "running", "view")

    def __init__(self, request: GridRequest, shape: TaskShape) -> None:
        self.request = request
        self.running = False
        self.view = PilotView(
            id=request.job,
            job=str(request.job),
            state=PilotState.QUEUED,
            request=Request(request.p, request.tr),
            submitted=float(request.submitted),
            shape=shape,
        )

    def reshape(self, request: GridRequest, at: int) -> None:
        self.request = msgspec.structs.replace(request, reshaped=request.reshaped + 1)
        self.view = msgspec.structs.replace(
            self.view, request=Request(request.p, request.tr), reshaped=float(at)
        )

    def start(self, at: int) -> None:
        self.request = msgspec.structs.replace(self.request, started=at)
        self.running = True
        self.view = PilotView(
            id=self.view.id,
            job=self.view.job,
            state=PilotState.RUNNING,
            request=self.view.request,
            started=float(at),
            ends=float(at + self.request.tr),
            processors=self.request.p,
            shape=self.view.shape,
        )


class _Driver:
    def __init__(
        self, cluster: Cluster, runtimes: Array, terms: GridTerms, make: MakeTasks, planner: Planner
    ) -> None:
        self._cluster, self._terms = cluster, terms
        self._submitted = cluster.now
        self._runtimes = runtimes
        self._width = min(terms.rules.limits.max_proc, cluster.processors)
        self._asks_for_all = terms.static_maximum and terms.traits.fixed_shape
        self._planner = planner
        self._tasks = make(runtimes, terms, cluster)
        self._pilots: dict[int, _Pilot] = {}
        self._ended: list[GridRequest] = []
        self._withheld = ""
        self._history = terms.history or RunShares()
        self._submissions = Submissions(terms.rules.max_submissions)
        self._changes = cluster.changes
        self._looked = cluster.now

    def run(self) -> GridResult:
        self._act(wanted=True)
        while not self._tasks.ended:
            self._act(wanted=self._advance())
        failed = self._tasks.failed
        return GridResult(
            submitted=self._submitted,
            turnaround=self._tasks.last_end - self._submitted,
            requests=tuple(sorted(self._ended, key=lambda request: request.job)),
            work=int(self._runtimes.sum() - self._runtimes[failed].sum()) * self._terms.task.processors,
            failed=len(failed),
        )

    def _advance(self) -> bool:
        """Go on to the next second in which something happens to a pilot or is learned.

        Returns whether the estimated runtime has changed, or a request may be sent again.
        """
        again = self._again()
        if not self._pilots and again == NEVER:
            raise ReplayError(f"no request is made for the waiting tasks: {self._withheld}")
        self._cluster.advance_to_change(self._tasks.ahead(min(again, self._next_look(), NEVER - 1)))
        learned = self._tasks.settle(self._cluster.now)
        return learned or self._cluster.now >= min(again, self._next_look())

    def _again(self) -> int:
        """When the submissions of an hour that are used up go on; NEVER: they are not."""
        allowance = self._submissions.allowance(self._cluster.now)
        return NEVER if allowance.left != 0 else math.ceil(allowance.again)

    def _next_look(self) -> int:
        """When to look at the queue again though nothing has happened to a pilot."""
        if not self._terms.traits.replans:
            return NEVER
        age = self._looked - self._submitted
        return self._looked + max(60, age // 32)

    def _act(self, *, wanted: bool) -> None:
        """Decide if wanted, and again until nothing more happens in this second."""
        while self._observe() or wanted:
            wanted = self._decide()

    def _observe(self) -> bool:
        """Take in what happens to the pilots in this second; whether anything did."""
        changed = False
        while self._leave() or self._look():
            changed = True
        return changed

    def _look(self) -> bool:
        """Look at the pilots in the cluster; whether one has started."""
        if self._cluster.changes == self._changes:
            return False
        self._changes = self._cluster.changes
        changed = False
        for pilot in self._pilots.values():
            job = self._cluster.outside_job(pilot.request.job)
            if not pilot.running and job.started is not None:
                pilot.start(job.started)
                self._tasks.add_pilot(job.id, job.processors, job.started, job.started + job.tr)
                changed = True
        return changed

    def _leave(self) -> bool:
        """Pilots whose workers have left end; whether there were any."""
        left = self._tasks.leave(self._cluster.now)
        for job in sorted(left):
            if self._cluster.outside_job(job).ended is None:
                self._cluster.end(job, self._cluster.now)
            self._end(self._pilots[job], left[job])
        return bool(left)

    def _end(self, pilot: _Pilot, served: Served) -> None:
        del self._pilots[pilot.request.job]
        done = {"ended": self._cluster.now, "tasks": served.tasks, "work": served.work}
        self._ended.append(msgspec.structs.replace(pilot.request, **done))

    def _decide(self) -> bool:
        """Ask the planner and do as it says; whether a request was changed or taken back."""
        self._looked = self._cluster.now
        if not self._can_act():
            return False
        changed = False
        for decision in self._planner(self._view()):
            match decision:
                case Issue():
                    self._issue(decision)
                case Withdraw():
                    self._withdraw(self._pilots[decision.pilot])
                    changed = True
                case Reshape():
                    self._reshape(self._pilots[decision.pilot], decision.crafted)
                    changed = True
                case Withhold():
                    self._withheld = decision.reason
        return changed

    def _withdraw(self, pilot: _Pilot) -> None:
        """Take a request back, or end its pilot; what ran there waits again."""
        job = pilot.request.job
        if not pilot.running:
            self._cluster.cancel(job)
            self._end(pilot, Served())
            return
        served = self._tasks.end_pilot(job, self._cluster.now)
        self._cluster.end(job, self._cluster.now)
        self._end(pilot, served)

    def _reshape(self, pilot: _Pilot, crafted: CraftedRequest) -> None:
        """Change a request that waits, in its place."""
        request, known = self._asked(crafted), pilot.request
        if not reshape(self._cluster, known.job, self._terms.rules, self._terms.task, request):
            raise ReplayError(f"a request of {request.p} processors could never start; lower --max-proc")
        changed = {
            "p": request.p,
            "tr": request.tr,
            "predicted_start": crafted.predicted_start,
            "reason": crafted.reason,
        }
        pilot.reshape(msgspec.structs.replace(known, **changed), self._cluster.now)

    def _can_act(self) -> bool:
        """Whether there is a request to take back or one more allowed: the planner has no other means."""
        queued = any(not pilot.running for pilot in self._pilots.values())
        may_end = self._terms.traits.replans and self._terms.rules.may_withdraw
        return queued or may_end or len(self._pilots) < self._terms.rules.limits.max_pending_requests

    def _issue(self, decision: Issue) -> None:
        crafted, request = decision.crafted, self._asked(decision.crafted)
        job = submit(self._cluster, self._terms.rules, self._terms.task, request)
        self._submissions.note(self._cluster.now)
        self._pilots[job] = _Pilot(
            GridRequest(
                job=job,
                p=request.p,
                tr=request.tr,
                submitted=self._cluster.now,
                predicted_start=crafted.predicted_start,
                reason=crafted.reason,
            ),
            decision.demand.shape,
        )

    def _asked(self, crafted: CraftedRequest) -> Request:
        p = self._width if self._asks_for_all else crafted.request.p
        return Request(p, crafted.request.tr)

    def _queue(self) -> QueueState:
        if self._terms.traits.replans and isinstance(self._cluster, Simulation):
            return queue_state(self._cluster)
        return queue_for(self._cluster, self._terms)

    def _view(self) -> PlanningView:
        allowance = self._submissions.allowance(self._cluster.now)
        return PlanningView(
            submissions_left=allowance.left,
            next_submission=allowance.again,
            jobs=self._history,
            now=float(self._cluster.now),
            queue=self._queue(),
            rules=self._terms.rules,
            heuristic=self._terms.heuristic,
            pilots=tuple(pilot.view for pilot in self._pilots.values()),
            demands=self._tasks.board.demands(SITE),
        )
