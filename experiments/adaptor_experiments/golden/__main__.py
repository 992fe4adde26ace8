"""`python -m adaptor_experiments.golden`: recompute the recorded outcomes and name every difference."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from adaptor_experiments.commands.running import processes_option, traces_option
from adaptor_experiments.derose.design import folder_of_traces
from adaptor_experiments.golden.cases import CASES
from adaptor_experiments.golden.record import FOLDER, differences, read, record_of, write


@click.command()
@click.option("--only", type=click.Choice(list(CASES)), multiple=True, help="Only these, repeatable.")
@click.option("--write", "rewrite", is_flag=True, help="Record what is found.")
@traces_option
@processes_option
def golden(only: tuple[str, ...], rewrite: bool, traces: Path | None, processes: int) -> None:
    """Recompute the outcomes in fixtures/golden; exit code 1 if one differs."""
    recorded = read(FOLDER) if (FOLDER / "hashes.json").exists() else {}
    same = True
    for name in only or CASES:
        found = record_of(name, folder_of_traces(traces), processes)
        lines = list(differences(recorded[name], found)) if name in recorded else ["not recorded yet"]
        same = same and not lines
        for line in lines or ["as recorded"]:
            click.echo(f"{name}: {line}")
        if rewrite:
            recorded[name] = found
            write(FOLDER, recorded)
    sys.exit(0 if same or rewrite else 1)


if __name__ == "__main__":
    golden()
