"""What `scontrol update` is told of a queued request, and what its answer means."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.model import Request
from adaptor.resources import TaskSize
from backends.base import ChangeRefused, PilotOrder, SchedulerError
from backends.slurm.placing.shape import SlurmShape
from backends.slurm.submitting import changes, check_changed
from tests.backends.answering import answer_of

ORDER = PilotOrder(
    tag="adaptor-x.hpc.1",
    request=Request(6, 3540),
    task=TaskSize(processors=2),
    directory=Path("/p"),
    worker=("w",),
    environment={},
)


def test_tasks_and_processors_go_together_and_nodes_never() -> None:
    of_tasks = SlurmShape(count=3, part=TaskSize(processors=2))
    asked = changes("7", ORDER, of_tasks, shrinks=False)
    assert asked == ["update", "JobId=7", "TimeLimit=59", "NumTasks=3", "NumCPUs=6"]
    of_nodes = SlurmShape(count=3, part=TaskSize(processors=2), whole_nodes=True)
    assert changes("7", ORDER, of_nodes, shrinks=False) == ["update", "JobId=7", "TimeLimit=59", "NumTasks=3"]


def test_the_least_time_goes_with_the_limit_and_is_taken_back() -> None:
    """Slurm refuses a limit below the least time of the job."""
    part = SlurmShape(count=3, part=TaskSize(processors=2), whole_nodes=True)
    assert changes("7", ORDER, part, shrinks=True)[2:4] == ["TimeLimit=59", "TimeMin=0"]
    order = msgspec.structs.replace(ORDER, request=Request(6, 3540, 601))
    assert changes("7", order, part, shrinks=True)[2:4] == ["TimeLimit=59", "TimeMin=11"]


@pytest.mark.parametrize(
    ("status", "words", "refused"),
    [
        (1, "Job is no longer pending execution for job 7", True),
        (1, "Access/permission denied for job 7", True),
        (1, "Requested partition configuration not available now for job 7", True),
        (1, "Invalid job id specified for job 7", True),
        (1, "slurm_update error: Unable to contact slurm controller (connect failure)", False),
        (1, "slurm_update error: Socket timed out on send/recv operation", False),
        (-9, "", False),
    ],
)
def test_what_an_answer_means(status: int, words: str, refused: bool) -> None:
    with pytest.raises(SchedulerError) as raised:
        check_changed(answer_of(status, "", words))
    assert isinstance(raised.value, ChangeRefused) == refused


def test_silence_is_consent() -> None:
    check_changed(answer_of(0, "", ""))
