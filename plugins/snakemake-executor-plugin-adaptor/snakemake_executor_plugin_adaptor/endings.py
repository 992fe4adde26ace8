"""What people are told of a job that failed, and where its output is. Pure."""

from __future__ import annotations

from pathlib import Path

from adaptor.api import TaskEvent
from adaptor.outputs.names import output_name


def how_it_ended(event: TaskEvent) -> str:
    """In words, such as `failed on n1: exit code 2`."""
    where = f" on {event.node}" if event.node else ""
    if event.error:
        why = event.error
    elif event.signal is not None:
        why = f"signal {event.signal}"
    else:
        why = f"exit code {event.exit_code}"
    return f"{event.state}{where}: {why}"


def log_files(output: str, place: tuple[int, int], attempt: int) -> list[Path]:
    """The standard error and the standard output of an attempt."""
    bag, task = place
    folder = Path(output.replace("{bag}", str(bag)))
    return [folder / output_name(task, attempt, stream) for stream in ("stderr", "stdout")]
