"""`adaptor replay derose`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptor.errors import UsageError

if TYPE_CHECKING:
    from adaptor.replay.derose.campaign import Piece
    from adaptor.replay.derose.design import Settings
    from adaptor.replay.derose.store import Store
    from adaptor.replay.derose.table_file import TableFormat

TRACES = ("sdsc-sp2", "sdsc-blue", "ctc-sp2-512", "ctc-sp2-338")
FOLDER = click.Path(path_type=Path, file_okay=False)
NEARBY = Path("../shared/traces")


def some_of(*choices: int) -> Callable[[click.Context, click.Parameter, str | None], tuple[int, ...] | None]:
    """The callback of an option that takes a list such as `1,3,6` out of these."""

    def numbers(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
        if value is None:
            return None
        parts = value.replace(",", " ").split()
        if not parts or not {*parts} <= {str(choice) for choice in choices}:
            raise click.BadParameter(
                f"{value!r} is not a list such as {choices[0]},{choices[-1]}, out of "
                f"{', '.join(map(str, choices))}"
            )
        return tuple(sorted({int(part) for part in parts}))

    return numbers


@click.command(short_help="Repeat the experiment of De Rose et al. 2008.")
@click.option(
    "--output", type=FOLDER, default="derose", show_default=True, help="Results; run again to resume."
)
@click.option("--traces", type=FOLDER, metavar="DIR", help="Where the traces are.")
@click.option("--trace", "names", type=click.Choice(TRACES), multiple=True, help="Only these; repeatable.")
@click.option("--samples", type=click.IntRange(1), help="Submission times per trace.  [default: 100]")
@click.option(
    "--tasks",
    metavar="LIST",
    callback=some_of(100, 1000, 10_000, 100_000),
    help="Only jobs of so many tasks.",
)
@click.option(
    "--mean",
    "means",
    metavar="LIST",
    callback=some_of(100, 1000, 10_000),
    help="Only these mean runtimes, in s.",
)
@click.option(
    "--heterogeneity", "heterogeneities", metavar="LIST", callback=some_of(1, 2, 4), help="Only these."
)
@click.option("--max-pending", metavar="LIST", callback=some_of(1, 2, 3, 4, 5, 6), help="Only these limits.")
@click.option("--static-maximum", is_flag=True, help="Static always asks for the whole machine.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--processes", type=click.IntRange(1), default=2, show_default=True)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="Of the tables of results and cells.",
)
@click.option("--quick", is_flag=True, help="A fair sample: 6 submission times, max-pending 1 and 6.")
def derose(
    output: Path,
    traces: Path | None,
    names: tuple[str, ...],
    samples: int | None,
    processes: int,
    kind: Any,
    quick: bool,
    **part: Any,
) -> None:
    """Repeat the evaluation of De Rose et al. 2008, §4.4, whole or in part.

    36 kinds of grid job, limits of 1 to 6 requests, both heuristics and 100 submission times on each
    trace. Stop it at any time: the same command goes on from there. The tables, the paper's figures
    and a page with both are in the output folder.

    \b
    Example:
      adaptor replay derose --quick --output quick
      adaptor replay derose --trace sdsc-sp2 --tasks 100,1000 --samples 20
      adaptor replay derose --trace ctc-sp2-512 --static-maximum --samples 20 --output maximum
    """
    from adaptor.replay.extra import require_extra

    require_extra("numpy", "numba", "matplotlib")
    if kind == "parquet":
        require_extra("pyarrow", extra="parquet")
    from adaptor.replay.derose.campaign import pieces
    from adaptor.replay.derose.design import WORKLOADS, Settings
    from adaptor.replay.derose.store import Store

    if quick:
        part["max_pending"] = part["max_pending"] or (1, 6)
    settings = Settings(**{name: value for name, value in part.items() if value is not None})
    workloads = [each for each in WORKLOADS if not names or each.key in names]
    wanted = pieces(workloads, _folder(traces), settings, samples or (6 if quick else 100))
    store = Store(output, settings)
    _run(wanted, store, processes, settings)
    _report(wanted, store, settings, kind)


def _folder(traces: Path | None) -> Path:
    if traces is None and not NEARBY.is_dir():
        raise UsageError("where are the traces? Say --traces DIR; `adaptor trace fetch` downloads them")
    return traces or NEARBY


def _run(wanted: list[Piece], store: Store, processes: int, settings: Settings) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from adaptor.replay.derose.campaign import run_missing

    each = settings.jobs_per_sample
    there = sum(store.has(piece.workload, piece.sample) for piece in wanted)
    columns = (TextColumn("grid jobs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as progress:
        task = progress.add_task("", total=len(wanted) * each, completed=there * each)
        run_missing(wanted, store, processes, lambda: progress.advance(task, each))


def _report(wanted: list[Piece], store: Store, settings: Settings, kind: TableFormat) -> None:
    from adaptor.cli.table import layout
    from adaptor.replay.derose.page import table_3
    from adaptor.replay.derose.report import write_report

    click.echo("Table 3: average speedup of adaptive over static, with 95 % confidence intervals")
    for line in layout(*table_3(write_report(wanted, store, settings, kind))):
        click.echo(line)
    click.echo(f"The page: {store.folder / 'report.html'}")
