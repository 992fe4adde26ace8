"""The jobs of a trace as a simulated cluster takes them."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor_simulation.files import TraceError

Seconds = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


class Jobs(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One entry per job in each array, in the order of submission; all int64."""

    number: Counts
    """The job's number in the trace; names it in the output, need not be unique."""
    submit: Seconds
    """Since the start of the trace."""
    run: Seconds
    """Real runtime: at least 1, at most `estimate`."""
    estimate: Seconds
    """Runtime that the scheduler knows: the time limit."""
    processors: Counts
    memory: Counts | None = None
    """Bytes for each processor, 0 where that is not known; None: the trace says nothing of it."""
    user: Counts | None = None
    """Number of the user, -1 where that is not known; None: the trace says nothing of it."""

    @classmethod
    def none(cls) -> Jobs:
        """A cluster without local users."""
        nothing = np.zeros(0, np.int64)
        return cls(number=nothing, submit=nothing, run=nothing, estimate=nothing, processors=nothing)

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def area(self) -> int:
        """Processor-seconds that the jobs use."""
        # As floating point: exact for any real trace, and without overflow for an absurd one.
        return int(np.dot(self.run.astype(np.float64), self.processors.astype(np.float64)))

    def only(self, chosen: npt.NDArray[np.bool_]) -> Jobs:
        """The marked jobs."""
        return Jobs(
            number=self.number[chosen],
            submit=self.submit[chosen],
            run=self.run[chosen],
            estimate=self.estimate[chosen],
            processors=self.processors[chosen],
            memory=None if self.memory is None else self.memory[chosen],
            user=None if self.user is None else self.user[chosen],
        )

    def on_whole_nodes(self, node: int) -> Jobs:
        """With all processors of the nodes that they need; `node`: processors of each."""
        return msgspec.structs.replace(self, processors=-(-self.processors // node) * node)

    def stretched(self, factor: float) -> Jobs:
        """With their interarrival times multiplied: below 1 the load is higher (De Rose 2008, §4.4)."""
        first = int(self.submit[0])
        submit = first + np.rint((self.submit - first) * factor).astype(np.int64)
        return msgspec.structs.replace(self, submit=submit)

    def offered_load(self, processors: int) -> float:
        """The work that the jobs bring, as a share of the processors while jobs come."""
        return self.area / (processors * max(1, int(self.submit[-1] - self.submit[0])))

    def table(self) -> npt.NDArray[np.int64]:
        """(n, 4) int64, C order: submit, run, estimate, processors."""
        columns = (self.submit, self.run, self.estimate, self.processors)
        return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int64)


def check_jobs(jobs: Jobs, processors: int) -> None:
    """Refuse jobs that no cluster of this size can run.

    Raises:
        TraceError: a job is larger than the machine, runs beyond its estimate, or comes out of order.
    """
    for wrong, what in (
        (jobs.submit < 0, "is submitted before the start of the trace"),
        (np.diff(jobs.submit, prepend=0) < 0, "is submitted before the job in front of it"),
        (jobs.run < 1, "runs for less than a second"),
        (jobs.run > jobs.estimate, "runs longer than its estimate"),
        (jobs.processors < 1, "needs no processor"),
        (jobs.processors > processors, f"needs more than the {processors} processors of the machine"),
    ):
        if wrong.any():
            number = jobs.number[int(np.argmax(wrong))]
            raise TraceError(f"job {number} {what}; normalise the trace for {processors} processors first")
