"""Common parts of the commands of the experiments: options and progress."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import click

from adaptor.errors import UsageError
from adaptor.units import parse_duration

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

_REMEMBERED = 600.0  # seconds by whose speed the time that is left is estimated: some pieces take minutes


def count_option(flag: str, least: int, default: int, about: str) -> Decorator:
    """An option that takes a whole number."""
    return click.option(
        flag, type=click.IntRange(least), metavar="N", default=default, show_default=True, help=about
    )


def duration_option(flag: str, about: str) -> Decorator:
    """An option that takes seconds, as `parse_duration` reads them."""

    def seconds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
        try:
            return None if value is None else parse_duration(value)
        except ValueError as error:
            raise UsageError(f"{flag}: {error}") from error

    return click.option(flag, metavar="TIME", callback=seconds, help=about)


def choice_option(flag: str, choices: Sequence[str], about: str, name: str | None = None) -> Decorator:
    """An option that takes one of these, the first by default."""
    names = (flag,) if name is None else (flag, name)
    kind = click.Choice(choices)
    return click.option(*names, type=kind, default=choices[0], show_default=True, help=about)


seed_option = count_option("--seed", 0, 1, "Of what is drawn at random.")
processes_option = count_option("--processes", 1, 2, "At the same time.")


def experiment_options(folder: str) -> Decorator:
    """`--output`, `--seed` and `--processes`; `folder`: what is written goes there by default."""
    kind, about = click.Path(path_type=Path, file_okay=False), "Tables, figures, page."
    output = click.option("--output", type=kind, metavar="DIR", default=folder, show_default=True, help=about)
    return lambda command: output(seed_option(processes_option(command)))


def list_option(flag: str, name: str, choices: Collection[Any] | str, about: str) -> Decorator:
    """An option that takes a list such as `1,3,6` out of these, and gives them in the order of the choices.

    Args:
        choices: or where they are, as `module:attribute`; then the help does not list them.
    """

    def some(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        module, _, attribute = choices.partition(":") if isinstance(choices, str) else ("", "", "")
        every = getattr(importlib.import_module(module), attribute) if module else choices
        known = {str(choice): choice for choice in every}
        wanted = [*dict.fromkeys(value.replace(",", " ").split())]
        unknown = [choice for choice in wanted or [value] if choice not in known]
        if unknown:
            raise UsageError(f"{flag}: {unknown[0]!r} is none of {', '.join(known)}")
        return tuple(choice for text, choice in known.items() if text in wanted)

    told = about if isinstance(choices, str) else f"{about}: {', '.join(map(str, choices))}."
    return click.option(flag, name, metavar="LIST", callback=some, help=told)


tasks_option = list_option("--tasks", "tasks", (100, 1000, 10_000, 100_000), "Only bags of this many tasks")
mean_option = list_option("--mean", "means", (100, 1000, 10_000), "Only these mean runtimes, in s")


traces_option = click.option(
    "--traces", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Where the traces are."
)


@contextmanager
def running(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr; call what is given with the number that has ended."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: tuple[Any, ...] = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, speed_estimate_period=_REMEMBERED) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


FILE = click.Path(path_type=Path)
MOST_PROCESSORS = 10**8
PROCESSORS = click.IntRange(1, MOST_PROCESSORS)
"""Number of processors; the bound is that of `adaptor_simulation.traces.swf`, which help alone does not
import."""

trace_option = click.option(
    "--trace",
    "names",
    metavar="KEY|FILE",
    multiple=True,
    help="Only these, repeatable: sdsc-sp2, sdsc-blue, ctc-sp2-512, ctc-sp2-338, or a trace (SWF).",
)
own_processors_option = click.option(
    "--processors", type=PROCESSORS, metavar="N", help="Of the machine of a FILE; else as its header says."
)
processors_option = click.option(
    "--processors", type=PROCESSORS, metavar="N", help="Of the machine; else as the header says."
)
lenient_option = click.option("--lenient", is_flag=True, help="Skip damaged lines and count them.")
scheduler_option = choice_option(
    "--scheduler", ("conservative", "easy"), "The policy of the simulated cluster."
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
    """Options on repairs of a trace: the parameter `choices`, of type `Choices`."""

    @functools.wraps(command)
    def chosen(*args: Any, **values: Any) -> Any:
        from adaptor_simulation.traces.repairs import Choices

        choices = Choices(**{field: values.pop(f"choice_{field}") for field in _CHOICES})
        return command(*args, choices=choices, **values)

    made: Callable[..., Any] = chosen
    for field, (flag, allowed, about) in reversed(_CHOICES.items()):
        made = choice_option(flag, allowed, about, f"choice_{field}")(made)
    return made
