"""`adaptor replay tasks`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor_experiments.commands.running import FILE


@click.command(short_help="Compare what users ask for tasks with what earlier bags say.")
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
def tasks(files: tuple[Path, ...]) -> None:
    """Compare what users asked for the tasks of real workflows with what earlier bags of their kinds say.

    FILE: a trace of Nextflow (CSV, also compressed by gzip or xz). Of each process with ten tasks or more,
    the first half is an earlier bag, and the others are the bag that is judged: the memory that it
    wastes with `mem=auto` and with what its user asked, and its mean runtime next to the foreseen one. A task
    that needs more than it has loses all that it held, and is made again with twice as much.

    \b
    Example:
      adaptor replay tasks trace_rnaseq.csv.xz trace_mag.csv.xz
    """
    from adaptor.cli.printing import layout
    from adaptor_experiments import task_records

    bags = {}
    for path in files:
        records, left_out = task_records.read_records(path)
        name = path.name.split(".")[0]
        bags[name] = task_records.next_bags(records)
        for note in left_out:
            click.echo(f"{name}: {note}")
    click.echo("\n".join(layout(task_records.HEADINGS, list(task_records.table(bags)))))
