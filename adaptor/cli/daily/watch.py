"""`adaptor watch`: progress until bags have ended."""

from __future__ import annotations

import click

from adaptor.cli.daily.watching import watch_bags
from adaptor.cli.options import json_option
from adaptor.cli.reading import Reader
from adaptor.cli.selectors import selector_argument


@click.command()
@selector_argument("[SEL]", default="last")
@json_option
def watch(selector: str, as_json: bool) -> int:
    """Show progress until bags (default: last) have ended.

    Ctrl-C stops the watching, not the bags. Exit code: 0 all tasks done, 3 some failed.

    \b
    Example:
      adaptor watch 3-5
    """
    return watch_bags([bag.id for bag in Reader().bags(selector)], as_json)
