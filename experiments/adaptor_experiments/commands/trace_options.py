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
_CHOICES = (
    click.option(
        "--processors-from",
        "processors_field",
        type=click.Choice(["allocated", "requested"]),
        default="allocated",
        show_default=True,
        help="Which field counts; the other stands in where it is unknown.",
    ),
    click.option(
        "--missing-request",
        type=click.Choice(["drop", "run", "longest"]),
        default="drop",
        show_default=True,
        help="Jobs without a requested time: leave out, or take the run time or the longest request.",
    ),
    click.option(
        "--zero-run",
        type=click.Choice(["drop", "second"]),
        default="drop",
        show_default=True,
        help="Jobs of 0 s: leave out, or let them run a second.",
    ),
    click.option(
        "--larger",
        type=click.Choice(["drop", "clamp", "refuse"]),
        default="drop",
        show_default=True,
        help="Jobs larger than the machine: leave out, cut to it, or stop.",
    ),
    click.option(
        "--overrun",
        type=click.Choice(["cut", "raise"]),
        default="cut",
        show_default=True,
        help="Run times above the request: cut them, or raise the request.",
    ),
)


def choices_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a trace is repaired: the parameter `choices`, of type `Choices`."""

    @functools.wraps(command)
    def chosen(
        *args: Any,
        processors_field: Any,
        missing_request: Any,
        zero_run: Any,
        larger: Any,
        overrun: Any,
        **others: Any,
    ) -> Any:
        from adaptor.simulation.traces.repairs import Choices

        choices = Choices(
            processors=processors_field,
            missing_request=missing_request,
            zero_run=zero_run,
            larger=larger,
            overrun=overrun,
        )
        return command(*args, choices=choices, **others)

    for option in reversed(_CHOICES):
        chosen = option(chosen)
    return chosen
