"""Common parts of the commands of the experiments: options, progress and tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
import msgspec

from adaptor.errors import UsageError
from adaptor.units import parse_duration

if TYPE_CHECKING:
    from adaptor_experiments.derose.design import Workload
    from adaptor_experiments.figures.exhibits import Report
    from adaptor_experiments.resumable import Piece
    from adaptor_experiments.tables import Runs


AnyPiece = TypeVar("AnyPiece", bound="Piece")
Row = TypeVar("Row", bound=msgspec.Struct)
Settings = TypeVar("Settings", bound=msgspec.Struct)
Choice = TypeVar("Choice")
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

_FOLDER = click.Path(path_type=Path, file_okay=False)
_NEARBY = Path("../shared/traces")
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

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        output = click.option(
            "--output",
            type=_FOLDER,
            metavar="DIR",
            default=folder,
            show_default=True,
            help="Tables, figures, page.",
        )
        return output(seed_option(processes_option(command)))

    return with_options


def quick_option(about: str) -> Decorator:
    return click.option("--quick", is_flag=True, help=about)


def chosen(flag: str, value: str | None, choices: Collection[Choice]) -> tuple[Choice, ...] | None:
    """Choices that a list such as `1,3,6` names, in the order of the choices; None: no list is given.

    Raises:
        UsageError: the list names something else, or nothing.
    """
    if value is None:
        return None
    known = {str(choice): choice for choice in choices}
    wanted = [*dict.fromkeys(value.replace(",", " ").split())]
    unknown = [name for name in wanted or [value] if name not in known]
    if unknown:
        raise UsageError(f"{flag}: {unknown[0]!r} is none of {', '.join(known)}")
    return tuple(choice for name, choice in known.items() if name in wanted)


def list_option(flag: str, name: str, choices: Collection[Choice], about: str) -> Decorator:
    """An option that takes a list out of these."""
    return click.option(
        flag,
        name,
        metavar="LIST",
        callback=lambda _ctx, _param, value: chosen(flag, value, choices),
        help=f"{about}: {', '.join(map(str, choices))}.",
    )


tasks_option = list_option("--tasks", "tasks", (100, 1000, 10_000, 100_000), "Only bags of this many tasks")
mean_option = list_option("--mean", "means", (100, 1000, 10_000), "Only these mean runtimes, in s")


def folder_of_traces(value: Path | None) -> Path:
    """Folder as named, else the one nearby. Raises UsageError: neither is there."""
    if value is None and not _NEARBY.is_dir():
        raise UsageError("where are the traces? Say --traces DIR; `adaptor trace fetch` downloads them")
    return value or _NEARBY


def traces_named(
    names: Sequence[str], processors: int | None, traces: Path | None
) -> tuple[list[Workload], Path]:
    """Traces that `--trace`, `--processors` and `--traces` name, and the folder of the paper's traces.

    Raises:
        UsageError: a name is no trace, or the folder that is needed is not there.
        TraceError: a file cannot be read or leaves no job.
    """
    from adaptor_experiments.derose.own_trace import workloads_named

    workloads = workloads_named(names, processors)
    own = all(workload.own for workload in workloads)
    return workloads, Path() if own else folder_of_traces(traces)


traces_option = click.option("--traces", type=_FOLDER, metavar="DIR", help="Where the traces are.")


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


def measure(
    run: Callable[[AnyPiece], list[Row]],
    pieces: Sequence[AnyPiece],
    kind: type[Row],
    settings: Settings,
    report_of: Callable[[Runs[Row], Settings, Path], Report],
    output: Path,
    processes: int,
    tables: tuple[str, ...] = ("",),
) -> Runs[Row]:
    """Run the pieces that have no file in the output folder; write the page, and print what it begins with.

    Args:
        kind: of the rows.
        tables: how the names of those begin that are printed.
    """
    from adaptor.cli.printing import layout
    from adaptor_experiments.figures import exhibits
    from adaptor_experiments.resumable import resumed
    from adaptor_experiments.tables import Runs

    with running("pieces", len(pieces)) as done:
        rows = Runs(resumed(run, pieces, kind, output, settings, processes, done))
    report = report_of(rows, settings, output)
    exhibits.write(report, rows, output)
    click.echo("\n".join((*report.conclusion, "")))
    for exhibit in (each for each in report.exhibits if each.name.startswith(tables)):
        click.echo("\n".join((exhibit.title, *layout(exhibit.headings, exhibit.rows), "")))
    click.echo(f"The page: {output / 'report.html'}")
    return rows


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
