"""`adaptor site init`: a configuration for the cluster that answers here."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.config.loading import configured_place, parse_config
from adaptor.errors import AdaptorError, UsageError
from backends.base import SchedulerError


@click.command()
@click.option("-o", "--output", metavar="FILE", help="The file to write; - is stdout (default: --config).")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@config_option
@json_option
def init(output: str | None, force: bool, config: str | None, as_json: bool) -> None:
    """Write a configuration for the cluster of this machine.

    Reads partitions (or queues), their limits and node sizes from Slurm or PBS; if none answers, this
    machine becomes a local site. Writes to --output, else --config, $ADAPTOR_CONFIG or
    ~/.config/adaptor/config.yaml.

    \b
    Example:
      adaptor site init && adaptor site check
    """
    text = _described()
    if output == "-":
        click.echo(text, nl=False)
        return
    path = Path(output).expanduser() if output else configured_place(config)[0]
    path = path.absolute()
    sites = list(parse_config(text, str(path)).sites)
    _write(path, text, force)
    if as_json:
        print_json({"file": str(path), "sites": sites})
    else:
        click.echo(f"{path}: {', '.join(sites)} (compare it with the cluster: adaptor site check)")


def _described() -> str:
    """By the first type of batch scheduler that answers here."""
    from backends.registry import backend_types

    silent: list[str] = []
    for each in backend_types():
        try:
            text = each.describe_sites()
        except SchedulerError as error:
            silent.append(f"no {each.title} answers here ({error})")
            continue
        if text is not None:
            if each.on_this_machine:
                click.echo(f"adaptor: {' and '.join(silent)}, so a {each.title} is described", err=True)
            return text
    raise AdaptorError(f"no batch scheduler answers here: {'; '.join(silent)}")


def _write(path: Path, text: str, force: bool) -> None:
    """Raises UsageError: the file exists; AdaptorError: it cannot be written."""
    if path.exists() and not force:
        raise UsageError(f"{path}: exists already; --force overwrites it, --output writes elsewhere")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be written: {error.strerror}") from error
