"""What the commands of the budget's experiments have in common: options, progress and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from adaptor.replay.exhibits import Exhibit

seed_option = click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
processes_option = click.option("--processes", type=click.IntRange(1), default=2, show_default=True)


def folder_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--output",
        type=click.Path(path_type=Path, file_okay=False),
        default=default,
        show_default=True,
        help="Tables, figures, page.",
    )


@contextmanager
def running(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr; call what is given with the number that has ended."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: tuple[Any, ...] = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


def show(exhibits: Sequence[Exhibit], folder: Path) -> None:
    from adaptor.cli.table import layout

    for each in exhibits:
        click.echo(f"{each.title}")
        for line in layout(each.headings, each.rows):
            click.echo(line)
        click.echo("")
    click.echo(f"The page: {folder / 'report.html'}")
