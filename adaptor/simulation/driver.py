"""One grid job on a simulated cluster, driven by the decisions of the daemon (De Rose §4.4)."""

from __future__ import annotations

import msgspec

from adaptor.crafting.learning import RuntimeLearner
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Issue, PilotView, SiteView, Withdraw, Withhold
from adaptor.model import PilotState, Request
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.execution import Execution
from adaptor.simulation.grid_job import GridRequest, GridResult, Terms, check_grid_job
from adaptor.simulation.kernels import NEVER, Array
from adaptor.simulation.queue_view import planned_queue


def run_grid_job(cluster: Simulation, runtimes: Array, terms: Terms) -> GridResult:
    """Run a bag of tasks that is submitted now, to its last task; the cluster's clock moves on.

    The planner is asked at the submission, whenever a pilot starts or ends and whenever the estimated
    runtime changes, which is when the daemon wakes ("every time the grid broker asks for processors
    or when a space-shared request finishes", §4.3.1). A pilot leaves as soon as no task is left for it.

    Args:
        cluster: usually a fork; its queue is the one that the job finds.
        runtimes: int64, whole seconds of each task, in the order in which they are handed out.

    Raises:
        ReplayError: a task fits into no request, or no request is possible.
    """
    check_grid_job(runtimes, terms, cluster.processors)
    return _Driver(cluster, runtimes, terms).run()


class _Pilot:
    """A request in the system."""

    __slots__ = ("request", "row", "view")

    def __init__(self, request: GridRequest) -> None:
        self.request = request
        self.row = -1
        self.view = PilotView(id=request.job, state=PilotState.QUEUED, request=Request(request.p, request.tr))

    def start(self, at: int, row: int) -> None:
        self.request = msgspec.structs.replace(self.request, started=at)
        self.row = row
        self.view = PilotView(
            id=self.view.id,
            state=PilotState.RUNNING,
            request=self.view.request,
            started=float(at),
            ends=float(at + self.request.tr),
            processors=self.request.p,
        )


class _Driver:
    def __init__(self, cluster: Simulation, runtimes: Array, terms: Terms) -> None:
        self._cluster, self._terms = cluster, terms
        self._submitted = cluster.now
        self._work = int(runtimes.sum())
        learner = RuntimeLearner(initial=terms.initial_tr, factor=terms.growth_factor, longest=terms.possible)
        self._width = min(terms.rules.limits.max_proc, cluster.processors)
        self._asks_for_all = terms.static_maximum and terms.heuristic == "static"
        self._execution = Execution(runtimes, learner, possible=terms.possible, width=self._width)
        self._pilots: dict[int, _Pilot] = {}
        self._ended: list[GridRequest] = []
        self._withheld = ""
        self._changes = cluster.changes

    def run(self) -> GridResult:
        self._settle(wanted=True)
        while self._execution.done < self._execution.total:
            self._settle(wanted=self._advance())
        return GridResult(
            submitted=self._submitted,
            turnaround=self._execution.last_end - self._submitted,
            requests=tuple(sorted(self._ended, key=lambda request: request.job)),
            work=self._work,
        )

    def _advance(self) -> bool:
        """Go on to the next second in which something happens to a pilot or is learned.

        The tasks are run ahead to where they matter to the cluster, and once more where the cluster
        starts a pilot before that. Returns whether the estimated runtime has changed.
        """
        if not self._pilots:
            raise ReplayError(f"no request is made for the waiting tasks: {self._withheld}")
        execution, cluster = self._execution, self._cluster
        saved, deadline = execution.save(), execution.next_deadline()
        stop = min(execution.run(deadline), deadline, NEVER - 1)
        cluster.advance_to_change(stop)
        if cluster.now < stop:
            execution.restore(saved)
        return self._finish_second()

    def _finish_second(self) -> bool:
        """Let end what ends by now; whether the estimated runtime has changed."""
        execution, now = self._execution, self._cluster.now
        changed = execution.learn()
        execution.fill(now)
        while execution.run(now) != NEVER:
            changed |= execution.learn()
            execution.fill(now)
        return execution.learn() or changed

    def _settle(self, *, wanted: bool) -> None:
        """Decide if wanted, and again until nothing more happens in this second."""
        while self._observe() or wanted:
            wanted = self._decide()

    def _observe(self) -> bool:
        """Take in what the cluster does to the pilots; idle ones leave. Whether anything happened."""
        changed = False
        while self._take_in():
            changed = True
        return changed

    def _take_in(self) -> bool:
        changed = self._cluster.changes != self._changes and self._look()
        if changed:
            self._execution.fill(self._cluster.now)
        return self._leave() or changed

    def _look(self) -> bool:
        """Look at the pilots in the cluster; whether one has started or ended."""
        self._changes = self._cluster.changes
        changed = False
        for pilot in list(self._pilots.values()):
            job = self._cluster.outside_job(pilot.request.job)
            if pilot.row < 0 and job.started is not None:
                row = self._execution.add_pilot(job.processors, job.started + job.tr)
                pilot.start(job.started, row)
                changed = True
            if pilot.row >= 0 and job.ended is not None:
                self._end(pilot, self._execution.remove_pilot(pilot.row, job.ended))
                changed = True
        return changed

    def _leave(self) -> bool:
        """Pilots without a task leave; whether there were any."""
        idle = self._execution.idle_pilots()
        if not idle:
            return False
        leaving = [pilot for pilot in self._pilots.values() if pilot.row in idle]
        for pilot in leaving:
            self._cluster.end(pilot.request.job, self._cluster.now)
        return bool(leaving)

    def _end(self, pilot: _Pilot, tasks: int) -> None:
        del self._pilots[pilot.request.job]
        self._ended.append(msgspec.structs.replace(pilot.request, ended=self._cluster.now, tasks=tasks))

    def _decide(self) -> bool:
        """Ask the planner and do as it says; whether a request was taken back."""
        if not self._can_act():
            return False
        withdrawn = False
        for decision in plan(self._view()):
            match decision:
                case Issue():
                    self._issue(decision)
                case Withdraw():
                    self._cluster.cancel(decision.pilot)
                    self._end(self._pilots[decision.pilot], 0)
                    withdrawn = True
                case Withhold():
                    self._withheld = decision.reason
        return withdrawn

    def _can_act(self) -> bool:
        """Whether there is a request to take back or one more allowed: the planner has no other means."""
        queued = any(pilot.row < 0 for pilot in self._pilots.values())
        return queued or len(self._pilots) < self._terms.rules.limits.max_pending_requests

    def _issue(self, decision: Issue) -> None:
        crafted = decision.crafted
        p = self._width if self._asks_for_all else crafted.request.p
        job = self._cluster.submit(p, crafted.request.tr)
        self._pilots[job] = _Pilot(
            GridRequest(
                job=job,
                p=p,
                tr=crafted.request.tr,
                submitted=self._cluster.now,
                predicted_start=crafted.predicted_start,
                reason=crafted.reason,
            )
        )

    def _view(self) -> SiteView:
        return SiteView(
            now=float(self._cluster.now),
            queue=planned_queue(self._cluster),
            rules=self._terms.rules,
            heuristic=self._terms.heuristic,
            pilots=tuple(pilot.view for pilot in self._pilots.values()),
            demands=(self._execution.demand(),),
        )
