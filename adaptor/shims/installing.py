"""`adaptor shims`: Slurm's commands in front of bags, in a folder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
import msgspec

from adaptor.cli.options import config_option, of_kind
from adaptor.cli.printing import printable
from adaptor.errors import UsageError
from adaptor.option_kinds import DURATION
from adaptor.private_files import write_atomically
from adaptor.processes.commands import bare_script
from adaptor.protocol.state_directory import private_directory
from adaptor.shims import start
from adaptor.shims.commands import MODULES
from adaptor.shims.real import RULES
from adaptor.shims.rules import USUAL_TIME, Rules


def script(folder: Path, command: str) -> str:
    """Content of the file under the command's name in the folder."""
    return bare_script(start.__name__, str(folder), command)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--max-time",
    metavar="DURATION",
    type=of_kind(DURATION),
    help="The longest --time of a small job (default: 1h).",
)
@click.option(
    "--default-time",
    metavar="DURATION",
    type=of_kind(DURATION),
    help="Time limit of jobs that ask for none (default: they go to the scheduler).",
)
@click.option(
    "--always",
    is_flag=True,
    help="Make tasks of small jobs that the scheduler would start now, too.",
)
@config_option
def shims(
    folder: str, max_time: float | None, default_time: float | None, always: bool, config: str | None
) -> None:
    """Put sbatch, squeue, scancel, sacct, scontrol and sinfo into DIR.

    With DIR first in PATH, small jobs that programs submit by sbatch become tasks of bags, and all others
    go to the real commands.

    \b
    Examples:
      adaptor shims ~/.adaptor-shims
      PATH=~/.adaptor-shims:$PATH snakemake --executor slurm
      adaptor shims ~/.adaptor-shims --max-time 20m --default-time 10m
    """
    rules = Rules(
        max_time=USUAL_TIME if max_time is None else max_time,
        default_time=default_time,
        always=always,
        config=str(Path(config).absolute()) if config is not None else "",
    )
    if default_time is not None and default_time > rules.max_time:
        raise UsageError("--default-time is longer than --max-time")
    _check(folder)
    place = private_directory(Path(folder).absolute())
    for name in MODULES:
        _write(place / name, script(place, name).encode(), 0o700)
    _write(place / RULES, msgspec.json.encode(rules), 0o600)
    click.echo(f"{len(MODULES)} commands in {printable(str(place))}; use them:")
    click.echo(f"  export PATH={printable(shlex.quote(str(place)))}:$PATH")


def _check(folder: str) -> None:
    """Raises UsageError: the folder cannot stand in PATH, or has other files, which tasks would miss."""
    if not folder:
        raise UsageError("name a folder for the commands, such as ~/.adaptor-shims")
    place = Path(folder).absolute()
    if os.pathsep in str(place):
        raise UsageError(f"{place}: PATH cannot have a folder with '{os.pathsep}'")
    if place.is_dir() and not (place / RULES).exists() and (others := sorted(os.listdir(place))):  # noqa: PTH208
        raise UsageError(
            f"{place} has other files, as {others[0]}, and tasks get PATH without this folder: name a new one"
        )


def _write(path: Path, data: bytes, mode: int) -> None:
    write_atomically(path, data, temporary=path.with_name(f".{path.name}.new"), mode=mode)
