"""Watching bags to their end: what `run` and `watch` have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import click

from adaptor.cli.following import Snapshot, exit_code, follow
from adaptor.cli.jsonout import print_json
from adaptor.cli.progress import Narrator, summary


def watch_bags(bags: Sequence[int], as_json: bool) -> int:
    """Show the bags' progress until they have ended; the exit code of their tasks.

    Raises:
        NoDaemonError: none runs and the bags have not ended.
    """
    last: Snapshot | None = None
    for snapshot in _display(as_json)(follow(bags)):
        last = snapshot
    ended = last.bags if last is not None else []
    if as_json:
        print_json({"bags": ended})
    else:
        for bag in ended:
            click.echo(summary(bag))
    return exit_code(ended)


def _display(as_json: bool) -> Callable[[Iterable[Snapshot]], Iterable[Snapshot]]:
    """What hands snapshots on and shows them meanwhile."""
    if as_json:
        return iter
    if sys.stdout.isatty():
        from adaptor.cli.daily.live import display

        return display
    return _narrated


def _narrated(snapshots: Iterable[Snapshot]) -> Iterator[Snapshot]:
    narrator = Narrator()
    for snapshot in snapshots:
        for line in narrator.lines(snapshot):
            click.echo(line)
        yield snapshot
