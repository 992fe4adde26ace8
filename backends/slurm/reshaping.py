"""Changing a queued job in its place: what `scontrol update` is told, and what its answer means.

Seen on Slurm 22.05, 24.11 and 26.05: an owner may change both ways, and the job keeps its age. `NumTasks` is
always among the keys, for Slurm then leaves a job that has started as it is; alone, `TimeLimit` would be
lowered. `NumNodes` is never: Slurm changes the processors and then refuses the nodes. Where Slurm says no, it
may still have changed the job ("Requested partition configuration not available now").
"""

from __future__ import annotations

from backends.base import ChangeRefused, PilotOrder, SchedulerError
from backends.commands import Answer
from backends.slurm.placing.shape import Shape
from backends.slurm.submitting import gave_no_answer, minutes_of


def changes(id: str, order: PilotOrder, shape: Shape) -> list[str]:
    """The arguments of `scontrol`; of whole nodes only the time limit changes."""
    keys = [f"TimeLimit={minutes_of(order)}", f"NumTasks={shape.count}"]
    if not shape.whole_nodes:
        keys.append(f"NumCPUs={shape.count * shape.part.processors}")
    return ["update", f"JobId={id}", *keys]


def check_changed(answer: Answer) -> None:
    """
    Raises:
        ChangeRefused: Slurm said no.
        SchedulerError: Slurm may have changed the job, or was not reached.
    """
    if answer.status == 0:
        return
    problem = f"scontrol failed with status {answer.status}: {answer.complaint}"
    if answer.status < 0 or gave_no_answer(answer.errors):
        raise SchedulerError(problem)
    raise ChangeRefused(f"Slurm did not change the request: {answer.complaint}")
