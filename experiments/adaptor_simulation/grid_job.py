"""The grid job: a bag of tasks with given runtimes, and the terms on which it is run."""

from __future__ import annotations

import msgspec

from adaptor.crafting.heuristics import HEURISTICS, HeuristicName, Traits
from adaptor.crafting.situation import SiteRules
from adaptor.donation.situation import Allocation, DonationRules
from adaptor.resources import TaskSize
from adaptor.runtimes.known import EarlierTasks
from adaptor_simulation.files import ReplayError
from adaptor_simulation.kernels import Array


class WorkerTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour of the workers in the pilots; seconds."""

    last: int
    """Before its pilot's end at which a worker ends its tasks."""
    idle_timeout: int
    """After which a worker without work leaves; one for which no task is left leaves at once."""
    latency: float
    """Seconds that a message between the daemon and a worker takes."""
    reserve: float
    """Seconds of work that a worker holds in reserve; 0: none."""
    boot: int = 0
    """From the start of a pilot until its worker takes tasks."""

    @property
    def compiled(self) -> bool:
        """Whether the compiled kernel knows such workers."""
        return not (self.latency or self.reserve or self.boot)


INSTANT_WORKERS = WorkerTerms(last=0, idle_timeout=0, latency=0.0, reserve=0.0)
"""Workers of the papers' experiments: they use their pilots to the last second, and never wait for work."""


class GridTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms on which requests are made for a grid job."""

    rules: SiteRules
    heuristic: HeuristicName
    workers: WorkerTerms
    initial_tr: float = 3600.0
    """The estimated runtime before any task has finished (De Rose §4.4)."""
    earlier: EarlierTasks | None = None
    """Runtimes of earlier bags of the same kind; None: none are known."""
    growth_factor: int = 2
    """The "integer factor" of §4.3.1, for which the paper gives no number."""
    task: TaskSize = TaskSize()
    """Processors and memory of each task."""
    sees_nodes: bool = True
    """Whether the planner sees the nodes of the cluster, where it has any; else it counts processors."""
    static_maximum: bool = False
    """Whether static asks for max_proc processors always, as §4.4 says of its requests on CTC, and not for
    the share of the tasks that Algorithm 1 says."""
    poll_interval: int = 0
    """The site steps at multiples of this number of seconds after the submission; 0: whenever something
    happens."""

    replicas: int = 0
    """Replicas of a running task at the same time, at most. A task takes as long in one place as in another,
    so they help only those that the end of a pilot would cut."""
    donation: DonationRules | None = None
    """By which idle nodes are used, of one processor each; None: none are."""
    allocation: Allocation = "mixed"

    @property
    def compiled(self) -> bool:
        """Whether the compiled kernel knows all that is asked for; else the scheduling core is used."""
        plain = self.workers.compiled and self.task == TaskSize() and not self.replicas
        return plain and self.donation is None

    @property
    def assumed(self) -> float:
        """Seconds that a task is taken to need before any has finished (see `scheduling.bag.assumed_at`)."""
        return self.initial_tr if self.earlier is None else self.earlier.high

    @property
    def traits(self) -> Traits:
        return HEURISTICS[self.heuristic]

    @property
    def possible(self) -> float:
        """Seconds of the longest task that a request can hold."""
        return self.rules.longest_task


class GridRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was made for a grid job; times are seconds of the trace."""

    job: int
    """The simulation's number of it."""
    p: int
    tr: int
    submitted: int
    predicted_start: float | None
    started: int | None = None
    """None where it was withdrawn before."""
    ended: int | None = None
    tasks: int = 0
    """Tasks that finished in it."""
    work: int = 0
    """Processor-seconds of these tasks; the others that it held are wasted."""
    reason: str = ""
    reshaped: int = 0
    """Number of changes while it waited."""

    @property
    def held(self) -> int:
        """Processor-seconds."""
        return 0 if self.started is None or self.ended is None else self.p * (self.ended - self.started)


class DonatedTime(msgspec.Struct, frozen=True, kw_only=True):
    """Use of donated nodes, in processor-seconds."""

    work: int = 0
    """Work of tasks that finished there."""
    lost: int = 0
    """Work of tasks that were ended because their node was taken, or its pilot's time was up."""
    reclaims: int = 0
    """Nodes that were taken by a job."""

    @property
    def used(self) -> int:
        """Whether a task finished there or not."""
        return self.work + self.lost


class GridResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a grid job."""

    submitted: int
    turnaround: int
    """From the submission to the end of the last task, in seconds."""
    requests: tuple[GridRequest, ...]
    """The formal ones."""
    work: int
    """Processor-seconds of the tasks that were done, each once."""
    failed: int = 0
    """Tasks that were given up, since they were cut although they had all the time that a request gives."""
    donated: DonatedTime = DonatedTime()

    @property
    def held(self) -> int:
        """Processor-seconds that the requests held."""
        return sum(request.held for request in self.requests)

    def holes(self, within: int) -> tuple[int, int]:
        """Requests made for a free slot that was there at once, and those of them that started in time.

        Args:
            within: seconds that the start may be late.
        """
        made = [request for request in self.requests if request.predicted_start == request.submitted]
        late = [request.started - request.submitted for request in made if request.started is not None]
        return len(made), sum(seconds <= within for seconds in late)

    @property
    def wasted(self) -> int:
        """Processor-seconds that were held and in which no task ran that finished there."""
        return self.held - (self.work - self.donated.work)


def check_grid_job(runtimes: Array, terms: GridTerms, processors: int) -> None:
    """Refuse at once what could only be simulated for ever.

    Raises:
        ReplayError: there is no task, or one that no request can hold.
    """
    limits = terms.rules.limits
    if not len(runtimes) or runtimes.min() < 1:
        raise ReplayError("a grid job needs a task, and each task at least a second")
    if min(limits.max_proc, processors, limits.max_pending_requests) < 1 or limits.max_tr < 1:
        raise ReplayError(f"no request is possible: the limits are {limits}, the machine has {processors}")
    if terms.task.processors > min(limits.max_proc, processors):
        raise ReplayError(
            f"a task of {terms.task.processors} processors fits into no request: max_proc is"
            f" {limits.max_proc}, the machine has {processors}; ask for fewer cpus"
        )
    longest = int(runtimes.max())
    if longest > terms.possible:
        raise ReplayError(
            f"a task of {longest:,} s fits into no request: max_tr less the pad leaves"
            f" {terms.possible:,.0f} s; raise max_tr or make the tasks shorter"
        )
    if terms.workers.last > terms.rules.pad:
        raise ReplayError(
            f"workers end their tasks {terms.workers.last} s before the end of a pilot, and the pad is"
            f" {terms.rules.pad:g} s: no task of {terms.possible:,.0f} s could run; raise the pad"
        )
