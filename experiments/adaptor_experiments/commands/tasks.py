"""`adaptor replay tasks`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor_experiments.commands.running import (
    FILE,
    count_option,
    own_processors_option,
    processes_option,
    running,
    seed_option,
    traces_option,
)


@click.command(short_help="Compare what users ask for tasks with what earlier bags say.")
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
@traces_option
@click.option(
    "--trace", "names", metavar="KEY|FILE", multiple=True, help="Play the bags on this queue, repeatable."
)
@own_processors_option
@count_option("--samples", 1, 1, "Submission times for each trace.")
@count_option("--most", 1, 1000, "Tasks of a bag on a queue: its first ones.")
@seed_option
@processes_option
def tasks(
    files: tuple[Path, ...],
    traces: Path | None,
    names: tuple[str, ...],
    processors: int | None,
    samples: int,
    most: int,
    seed: int,
    processes: int,
) -> None:
    """Compare what users asked for the tasks of real workflows with what earlier bags of their kinds say.

    FILE: a trace of Nextflow (CSV, also compressed by gzip or xz), an instance of WfCommons (JSON), or a
    folder with such instances of one workflow. Of each kind with ten tasks or more, the first half is an
    earlier bag, and the others are the bag that is judged: the memory that it wastes with `mem=auto` and
    with what its user asked, and its mean runtime next to the foreseen one. A task that needs more than it
    has loses all that it held, and is made again with twice as much.

    With --trace the judged bags run on that queue, too: as job arrays, and by heuristics that know nothing of
    them, or the earlier bag.

    \b
    Example:
      adaptor replay tasks trace_rnaseq.csv.xz trace_mag.csv.xz
      adaptor replay tasks WfInstances/makeflow/blast --trace sdsc-sp2
    """
    from adaptor.cli.printing import layout
    from adaptor_experiments import next_bags, task_bags, task_records, wf_format
    from adaptor_experiments.derose import sample
    from adaptor_experiments.derose.design import Settings, traces_named

    bags = {}
    for path in files:
        read = wf_format.read_instances if wf_format.is_wf_format(path) else task_records.read_records
        records, left_out = read(path)
        name = path.name.split(".")[0]
        bags[name] = next_bags.next_bags(records)
        for note in left_out:
            click.echo(f"{name}: {note}")
    click.echo("\n".join(layout(next_bags.HEADINGS, list(next_bags.table(bags)))))
    if not names:
        return
    workloads, folder = traces_named(names, processors, traces)
    moments = sample.pieces(workloads, folder, Settings(seed=seed), samples)
    every = [task_bags.Bag(name, each, most) for name, its in bags.items() for each in its]
    pieces = [task_bags.Piece(moment, bag) for moment in moments for bag in every]
    with running("bags", len(pieces)) as done:
        rows = task_bags.play_all(pieces, processes, done)
    click.echo("\n".join(["", *layout(task_bags.HEADINGS, list(task_bags.table(rows)))]))
