"""`adaptor site init`: a configuration for the cluster that answers here."""

from __future__ import annotations

import os
from pathlib import Path

import click

from adaptor.cli.jsonout import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.config.schema import default_config_path, parse_config
from adaptor.errors import AdaptorError, UsageError
from backends.base import SchedulerError

LOCAL = """\
# Written by `adaptor site init`: no batch scheduler answered, so this machine's processors serve.
# Durations are seconds, '1h 30m' or 'HH:MM:SS'.

sites:
  local:
    backend: local
    processors: {processors}
    initial_tr: 10m
    pad: 10s
    idle_timeout: 10s
"""


@click.command()
@click.option("-o", "--output", metavar="FILE", help="Where to write it; - is stdout (default: --config).")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@config_option
@json_option
def init(output: str | None, force: bool, config: str | None, as_json: bool) -> None:
    """Write a configuration for the cluster here.

    Takes the partitions (or queues), their limits and node sizes from Slurm or PBS; where none answers,
    this machine becomes a local site. The file goes to --output, else to --config, else to the XDG place.

    \b
    Example:
      adaptor site init && adaptor site check
    """
    text = _described()
    if output == "-":
        click.echo(text, nl=False)
        return
    path = Path(output or config or default_config_path()).expanduser().absolute()
    sites = list(parse_config(text, str(path)).sites)
    _write(path, text, force)
    if as_json:
        print_json({"file": str(path), "sites": sites})
    else:
        click.echo(f"{path}: {', '.join(sites)} (adaptor site check compares it with the cluster)")


def _described() -> str:
    from backends.pbs import discover as pbs
    from backends.slurm import discover as slurm

    silent = []
    for scheduler, describe in (("Slurm", slurm.describe_sites), ("PBS", pbs.describe_sites)):
        try:
            return describe()
        except SchedulerError as error:
            silent.append(f"no {scheduler} answers here ({error})")
    click.echo(f"adaptor: {' and '.join(silent)}, so a local site is described", err=True)
    return LOCAL.format(processors=len(os.sched_getaffinity(0)))


def _write(path: Path, text: str, force: bool) -> None:
    """Raises UsageError: the file is there and must not be written over; AdaptorError: it cannot be."""
    if path.exists() and not force:
        raise UsageError(f"{path}: is there already; --force writes over it, --output elsewhere")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be written: {error.strerror}") from error
