"""What the commands of the experiments have in common: options, progress and tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from adaptor.errors import UsageError

if TYPE_CHECKING:
    from adaptor_experiments.figures.exhibits import Report


Choice = TypeVar("Choice")
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

_FOLDER = click.Path(path_type=Path, file_okay=False)
_NEARBY = Path("../shared/traces")
_REMEMBERED = 600.0  # seconds by whose speed the time that is left is estimated: some pieces take minutes


def folder_option(default: str) -> Decorator:
    """`--output DIR`."""
    return click.option(
        "--output",
        type=_FOLDER,
        metavar="DIR",
        default=default,
        show_default=True,
        help="Tables, figures, page.",
    )


def count_option(flag: str, least: int, default: int, about: str) -> Decorator:
    """An option that takes a whole number."""
    return click.option(
        flag, type=click.IntRange(least), metavar="N", default=default, show_default=True, help=about
    )


demo_option = click.option(
    "--demo",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Measured runtimes, a column `seconds`.  [default: those of `make demo`]",
)
seed_option = count_option("--seed", 0, 1, "Of what is drawn at random.")
processes_option = count_option("--processes", 1, 2, "At the same time.")


def chosen(value: str | None, choices: Collection[Choice]) -> tuple[Choice, ...] | None:
    """Those that a list such as `1,3,6` names, in the order of the choices; None: no list is given.

    Raises BadParameter: the list is empty, or names something else.
    """
    if value is None:
        return None
    wanted = {*value.replace(",", " ").split()}
    if not wanted or not wanted <= {str(choice) for choice in choices}:
        raise click.BadParameter(f"{value!r} is not a list out of {', '.join(map(str, choices))}")
    return tuple(choice for choice in choices if str(choice) in wanted)


def list_option(flag: str, name: str, choices: Collection[Choice], about: str) -> Decorator:
    """An option that takes a list out of these: see `chosen`."""
    told = f"{about}: {', '.join(map(str, choices))}."
    return click.option(
        flag, name, metavar="LIST", callback=lambda _, __, value: chosen(value, choices), help=told
    )


tasks_option = list_option("--tasks", "tasks", (100, 1000, 10_000, 100_000), "Only bags of this many tasks")
mean_option = list_option("--mean", "means", (100, 1000, 10_000), "Only these mean runtimes, in s")


def folder_of_traces(value: Path | None) -> Path:
    """As named, else the one nearby. Raises UsageError: neither is there."""
    if value is None and not _NEARBY.is_dir():
        raise UsageError("where are the traces? Say --traces DIR; `adaptor trace fetch` downloads them")
    return value or _NEARBY


def _traces_option(callback: Callable[..., Path] | None) -> Decorator:
    return click.option(
        "--traces", type=_FOLDER, metavar="DIR", callback=callback, help="Where the traces are."
    )


traces_option = _traces_option(lambda _ctx, _param, value: folder_of_traces(value))
named_traces_option = _traces_option(None)  # for a command that may do without: see `folder_of_traces`


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


def show(report: Report, folder: Path, names: tuple[str, ...] = ("",)) -> None:
    """Print what the page begins with, the tables whose names begin so, and where the page is."""
    from adaptor.cli.printing import layout

    click.echo("\n".join((*report.conclusion, "")))
    for exhibit in (each for each in report.exhibits if each.name.startswith(names)):
        click.echo("\n".join((exhibit.title, *layout(exhibit.headings, exhibit.rows), "")))
    click.echo(f"The page: {folder / 'report.html'}")


FILE = click.Path(path_type=Path)
MOST_PROCESSORS = 10**8
PROCESSORS = click.IntRange(1, MOST_PROCESSORS)
"""As in `adaptor_simulation.traces.swf`, which is not imported for the sake of help alone."""

processors_option = click.option(
    "--processors", type=PROCESSORS, metavar="N", help="Of the machine; else as the header says."
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
        from adaptor_simulation.traces.repairs import Choices

        choices = Choices(**{field: values.pop(f"choice_{field}") for field in _CHOICES})
        return command(*args, choices=choices, **values)

    for field, (flag, allowed, about) in reversed(_CHOICES.items()):
        kind = click.Choice(allowed)
        option = click.option(
            flag, f"choice_{field}", type=kind, default=allowed[0], show_default=True, help=about
        )
        chosen = option(chosen)
    return chosen
