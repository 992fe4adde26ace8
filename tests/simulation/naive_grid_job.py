"""A grid job second by second, in plain Python, to hold the fast driver against.

It asks the same planner, but shows it the whole queue job by job, and keeps its own books of tasks.
"""

from __future__ import annotations

from collections import deque

from adaptor.crafting.learning import RuntimeLearner
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, Issue, PilotView, SiteView, Withdraw
from adaptor.model import PilotState, Request
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.grid_job import Terms
from adaptor.simulation.queue_view import queue_state


class NaiveGridJob:
    def __init__(self, cluster: Simulation, runtimes: list[int], terms: Terms) -> None:
        self.cluster, self.runtimes, self.terms = cluster, runtimes, terms
        self.learner = RuntimeLearner(
            initial=terms.initial_tr, factor=terms.growth_factor, longest=terms.possible
        )
        self.waiting = deque(range(len(runtimes)))
        self.finished_at: dict[int, int] = {}
        self.queued: list[int] = []
        self.rows: list[int | None] = []  # the job of each running pilot, by row
        self.slots: dict[int, list[tuple[int, int] | None]] = {}  # by job: (task, start)
        self.requests: dict[int, list[int | None]] = {}  # p, tr, submitted, started, ended

    def run(self) -> None:
        self.settle(wanted=True)
        while len(self.finished_at) < len(self.runtimes):
            self.cluster.advance(self.cluster.now + 1)
            before = self.learner.estimate
            self.end_tasks()
            self.settle(wanted=self.learner.estimate != before)

    def settle(self, *, wanted: bool) -> None:
        while self.observed() or wanted:
            wanted = self.decide()

    def observed(self) -> bool:
        changed = False
        while self.observe():
            changed = True
        return changed

    def running(self) -> list[int]:
        return [job for job in self.rows if job is not None]

    def deadline(self, job: int) -> int:
        state = self.cluster.outside_job(job)
        return state.started + state.tr

    def end_tasks(self) -> None:
        now = self.cluster.now
        for job in self.running():
            for place, held in enumerate(self.slots[job]):
                if held and held[1] + self.runtimes[held[0]] == now:
                    task = held[0]
                    self.slots[job][place] = None
                    assert task not in self.finished_at
                    self.finished_at[task] = now
                    self.learner.finished(self.runtimes[task], task)
                    self.fill()

    def start_next(self, job: int, place: int) -> None:
        left = self.deadline(job) - self.cluster.now
        for task in self.waiting:
            if self.learner.estimate_of(task) <= left:
                self.waiting.remove(task)
                self.slots[job][place] = (task, self.cluster.now)
                return

    def fill(self) -> None:
        for job in self.running():
            for place, held in enumerate(self.slots[job]):
                if held is None:
                    self.start_next(job, place)

    def observe(self) -> bool:
        changed = False
        for job in sorted([*self.queued, *self.running()]):
            state = self.cluster.outside_job(job)
            if job in self.queued and state.started is not None:
                self.queued.remove(job)
                self.slots[job] = [None] * state.processors
                self.enter(job)
                changed = True
            if job not in self.queued and state.ended is not None:
                self.rows[self.rows.index(job)] = None
                for task, start in filter(None, self.slots.pop(job)):
                    self.learner.cut(task, self.cluster.now - start)
                    self.waiting.appendleft(task)
                changed = True
        self.fill()
        for job in self.running():
            if not any(self.slots[job]):
                self.cluster.end(job, self.cluster.now)
                changed = True
        return changed

    def enter(self, job: int) -> None:
        if None in self.rows:
            self.rows[self.rows.index(None)] = job
        else:
            self.rows.append(job)

    def view(self, job: int) -> PilotView:
        state = self.cluster.outside_job(job)
        request = Request(state.processors, state.tr)
        if job in self.queued:
            return PilotView(id=job, state=PilotState.QUEUED, request=request)
        return PilotView(
            id=job, state=PilotState.RUNNING, request=request, started=state.started,
            ends=state.started + state.tr, processors=state.processors,
        )  # fmt: skip

    def decide(self) -> bool:
        estimates = [self.learner.estimate_of(task) for task in self.waiting] or [self.learner.estimate]
        demand = Demand(
            waiting=len(self.waiting),
            running=sum(sum(held is not None for held in slots) for slots in self.slots.values()),
            runtime=max(estimates),
            shortest=min(estimates),
        )
        pilots = tuple(self.view(job) for job in sorted([*self.queued, *self.running()]))
        view = SiteView(
            now=self.cluster.now, queue=queue_state(self.cluster), rules=self.terms.rules,
            heuristic=self.terms.heuristic, pilots=pilots, demands=(demand,),
        )  # fmt: skip
        decisions = plan(view)
        for decision in decisions:
            if isinstance(decision, Issue):
                request = decision.crafted.request
                self.queued.append(self.cluster.submit(request.p, request.tr))
            elif isinstance(decision, Withdraw):
                self.cluster.cancel(decision.pilot)
                self.queued.remove(decision.pilot)
        return any(isinstance(decision, Withdraw) for decision in decisions)
