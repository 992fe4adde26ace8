"""`adaptor watch` and `adaptor wait`: until bags have ended, with progress or silently."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import click

from adaptor.api import LONGEST_POLL
from adaptor.cli.follow import Overview, exit_code, follow
from adaptor.cli.json_output import print_json
from adaptor.cli.options import duration, json_option
from adaptor.cli.progress import Narrator, summary
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.sentences import tell_halted


@click.command()
@selector_argument("[SEL]", default="last")
@json_option
def watch(selector: str, as_json: bool) -> int:
    """Show progress until bags (default: last) have ended.

    Ctrl-C stops the display, not the bags. Exit code: 0 all tasks done, 3 some failed, 4 a bag has paused
    by itself.

    \b
    Example:
      adaptor watch 3-5
    """
    return watch_bags([bag.id for bag in Reader().bags(selector)], as_json)


TIME_UP = 124


@click.command(short_help="Wait silently until bags have ended.")
@selector_argument("[SEL]", default="last")
@click.option("--timeout", type=duration, metavar="DURATION", help="Give up after this, with exit code 124.")
@json_option
def wait(selector: str, timeout: float | None, as_json: bool) -> int:
    """Wait silently until bags (default: last) have ended; an open bag ends after it is closed.

    Exit code: 0 all tasks done, 3 some failed, 4 a bag has paused by itself, 124 timeout.

    \b
    Example:
      adaptor wait last --timeout 2h && make figures
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    last: Overview | None = None
    for snapshot in follow([bag.id for bag in Reader().bags(selector)], deadline, LONGEST_POLL):
        last = snapshot
    if as_json:
        print_json({"bags": last.bags if last is not None else []})
    elif last is not None and last.ended:
        tell_halted(last.bags)
    return exit_code(last.bags) if last is not None and last.ended else TIME_UP


def watch_bags(bags: Sequence[int], as_json: bool) -> int:
    """Show the bags' progress until they have ended; the exit code of their tasks.

    Raises:
        NoDaemonError: none runs and the bags have not ended.
    """
    last: Overview | None = None
    for snapshot in _display(as_json)(follow(bags)):
        last = snapshot
    ended = last.bags if last is not None else []
    if as_json:
        print_json({"bags": ended})
    else:
        for bag in ended:
            if not bag.halted:
                click.echo(summary(bag))
        tell_halted(ended)
    return exit_code(ended)


def _display(as_json: bool) -> Callable[[Iterable[Overview]], Iterable[Overview]]:
    """The function that shows snapshots and passes them on."""
    if as_json:
        return iter
    if sys.stdout.isatty():
        from adaptor.cli.daily.live import display

        return display
    return _narrated


def _narrated(snapshots: Iterable[Overview]) -> Iterator[Overview]:
    narrator = Narrator()
    for snapshot in snapshots:
        for line in narrator.lines(snapshot):
            click.echo(line)
        yield snapshot
