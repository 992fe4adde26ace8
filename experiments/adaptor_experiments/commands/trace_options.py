"""What the commands that read a trace have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)
MOST_PROCESSORS = 10**8
PROCESSORS = click.IntRange(1, MOST_PROCESSORS)
"""As in `adaptor.simulation.traces.swf`, which is not imported for the sake of help alone."""

processors_option = click.option(
    "--processors",
    type=PROCESSORS,
    metavar="N",
    help="Of the machine; else as the header says.",
)
lenient_option = click.option("--lenient", is_flag=True, help="Skip damaged lines and count them.")
scheduler_option = click.option(
    "--scheduler",
    type=click.Choice(["conservative", "easy"]),
    default="conservative",
    show_default=True,
    help="The policy of the simulated cluster.",
)
_CHOICES = {
    "processors": (
        "--processors-from",
        ("allocated", "requested"),
        "Which field counts; the other stands in where it is unknown.",
    ),
    "missing_request": (
        "--missing-request",
        ("drop", "run", "longest"),
        "Jobs without a requested time: leave out, or take the run time or the longest request.",
    ),
    "zero_run": ("--zero-run", ("drop", "second"), "Jobs of 0 s: leave out, or let them run a second."),
    "larger": (
        "--larger",
        ("drop", "clamp", "refuse"),
        "Jobs larger than the machine: leave out, cut to it, or stop.",
    ),
    "overrun": (
        "--overrun",
        ("cut", "raise"),
        "Run times above the request: cut them, or raise the request.",
    ),
}
"""By the field of `Choices`: option, values of which the first is the default, and help."""


def choices_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a trace is repaired: the parameter `choices`, of type `Choices`."""

    @functools.wraps(command)
    def chosen(*args: Any, **values: Any) -> Any:
        from adaptor.simulation.traces.repairs import Choices

        choices = Choices(**{field: values.pop(f"choice_{field}") for field in _CHOICES})
        return command(*args, choices=choices, **values)

    for field, (flag, allowed, about) in reversed(_CHOICES.items()):
        kind = click.Choice(allowed)
        option = click.option(
            flag, f"choice_{field}", type=kind, default=allowed[0], show_default=True, help=about
        )
        chosen = option(chosen)
    return chosen
