"""What the commands that read a trace have in common."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(path_type=Path)

processors_option = click.option(
    "--processors", type=click.IntRange(1), metavar="N", help="Of the machine; else as the header says."
)
lenient_option = click.option("--lenient", is_flag=True, help="Skip damaged lines and count them.")
scheduler_option = click.option(
    "--scheduler",
    type=click.Choice(["conservative", "easy"]),
    default="conservative",
    show_default=True,
    help="The policy of the simulated cluster.",
)
