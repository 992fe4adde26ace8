"""`python -m lab.ablation [FILE[:NAME]]...`: what constants of the rules bring.

Bags run in a copy of the tree with another value of one constant: without its rule, then with half and twice
the value. Rows stay in `--rows`, so what is stopped goes on; the first runs are of the tree as it is. With
`--together` all named constants have their first value of "without" at once: single effects may mask each
other.
With `--page` nothing runs, and the tables of the rows that are there are printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from lab.ablation.losses import loss
from lab.ablation.measures import Row
from lab.ablation.page import page
from lab.ablation.running import Job, Run, Variant, read, run, variant
from lab.ablation.table import named
from lab.mutants.rooms import ROOT


@click.command()
@click.argument("names", nargs=-1)
@click.option("--rows", type=click.Path(path_type=Path), default=ROOT / "build" / "ablation.csv")
@click.option("--processes", default=2, show_default=True)
@click.option("--together", is_flag=True, help="All named constants at once.")
@click.option("--only-without", is_flag=True, help="Not half and twice the values.")
@click.option("--measure", "others", multiple=True, help="Instead of those in the table.")
@click.option("--page", "prints_page", is_flag=True, help="Print the tables.")
def main(
    names: tuple[str, ...],
    rows: Path,
    processes: int,
    others: tuple[str, ...],
    *,
    together: bool,
    only_without: bool,
    prints_page: bool,
) -> None:
    """Run the measures of constants with other values, and print what each value loses."""
    try:
        found = named(names)
    except LookupError as error:
        raise click.UsageError(str(error)) from None
    chosen = [msgspec.structs.replace(each, measures=others or each.measures) for each in found]
    if prints_page:
        click.echo("\n".join(page(chosen, read(rows))))
        return
    measures = list(dict.fromkeys(measure for each in chosen for measure in each.measures))
    variants: list[tuple[Variant, tuple[str, ...]]] = []
    if together:
        joint = [(each.file, each.name, each.rule.without[0]) for each in chosen if each.rule.without]
        variants = [(Variant(tuple(joint)), tuple(measures))]
    else:
        variants = [(variant(each, value), each.measures) for each in chosen for value in each.rule.without]
        if not only_without:
            variants += [
                (variant(each, value), each.measures) for each in chosen for value in each.half_and_twice
            ]
    jobs: list[Job] = [(Variant(), measure) for measure in measures]
    jobs += [(changed, measure) for changed, by in variants for measure in by]
    there = read(rows)
    for done in run(jobs, rows, processes):
        if not done.variant:
            there["", done.measure] = done.rows
        elif base := there.get(("", done.measure)):
            click.echo(line(done, base))


def line(done: Run, base: Sequence[Row]) -> str:
    found = loss(base, done.rows)
    return (
        f"{done.variant} | {done.measure} | {found.goal:+.1%} | "
        f"time × cost {found.both:+.1%} | {-found.kept:+} kept | {found.exceeded:+} over the budget | "
        f"{found.differing} of {len(base)} differ"
    )


if __name__ == "__main__":
    main()
