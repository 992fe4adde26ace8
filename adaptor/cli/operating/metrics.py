"""`adaptor metrics`: numbers for Prometheus, once or into a file for node_exporter."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from adaptor.atomic_file import write_atomically
from adaptor.cli.options import duration
from adaptor.errors import AdaptorError, UsageError
from adaptor.extras import require_extra

_READABLE = 0o644
"""node_exporter runs as another user."""


@click.command(short_help="Print numbers for Prometheus.")
@click.option(
    "--textfile",
    "file",
    metavar="FILE",
    help="Write FILE, for node_exporter's textfile collector.",
)
@click.option("--every", type=duration, metavar="DURATION", help="Write it again and again, until Ctrl-C.")
def metrics(file: str | None, every: float | None) -> None:
    """Print numbers for Prometheus: tasks, pilots, queues, starts, waste, credits, forecast errors.

    The page's server (adaptor dashboard) has the same under /metrics.

    \b
    Examples:
      adaptor metrics
      adaptor metrics --textfile /var/lib/node_exporter/adaptor.prom --every 30s
    """
    require_extra("web", "prometheus_client")
    if every is not None and file is None:
        raise UsageError("--every needs --textfile FILE")
    from adaptor.client.reading import PAGE_TIMEOUT, Reader
    from adaptor.dashboard.numbers import NumbersReader
    from adaptor.dashboard.openmetrics import textfile as encode

    reader = NumbersReader(Reader(time.time, PAGE_TIMEOUT), time.time)
    if file is None:
        click.echo(encode(reader.read(), reader.ended), nl=False)
        return
    while True:
        try:
            _write(Path(file), encode(reader.read(), reader.ended))
        except AdaptorError as error:
            if every is None:
                raise
            click.echo(f"adaptor: {error}", err=True)  # the next time may do; the file stays as it was
        if every is None:
            return
        time.sleep(max(1.0, every))


def _write(path: Path, content: bytes) -> None:
    """Raises AdaptorError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # node_exporter reads *.prom only
    try:
        write_atomically(path, content, temporary=temporary, mode=_READABLE, sync=False)
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be written: {error.strerror}") from error
