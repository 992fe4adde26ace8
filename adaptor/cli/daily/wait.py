"""`adaptor wait`: silence until bags have ended."""

from __future__ import annotations

import time

import click

from adaptor.cli.following import Snapshot, exit_code, follow
from adaptor.cli.jsonout import print_json
from adaptor.cli.options import duration, json_option
from adaptor.cli.reading import Reader
from adaptor.cli.selectors import selector_argument

TIME_UP = 124


@click.command()
@selector_argument("[SEL]", default="last")
@click.option("--timeout", type=duration, metavar="DURATION", help="Give up after this, with exit code 124.")
@json_option
def wait(selector: str, timeout: float | None, as_json: bool) -> int:
    """Wait in silence until bags (default: last) have ended.

    Exit code: 0 all tasks done, 3 some failed, 124 time-out.

    \b
    Example:
      adaptor wait last --timeout 2h && make figures
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    last: Snapshot | None = None
    for snapshot in follow([bag.id for bag in Reader().bags(selector)], deadline):
        last = snapshot
    if as_json:
        print_json({"bags": last.bags if last is not None else []})
    return exit_code(last.bags) if last is not None and last.ended else TIME_UP
