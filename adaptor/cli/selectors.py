"""Bags and tasks that a user names: `last`, `all`, `recent`, `7`, `1-10`, `1,3,5-7`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import click

from adaptor import api
from adaptor.client import reading
from adaptor.errors import UsageError
from adaptor.journal.selectors import WORDS, check_selector

_ITEM = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def selector(text: str) -> str:
    """Bags; checked here for a clear error, and sent to the daemon as text."""
    try:
        check_selector(text.strip())
    except UsageError as error:
        raise click.BadParameter(str(error)) from None
    return text.strip()


def selector_argument(metavar: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The argument `selector` (`more`: of click.argument); shells complete it by its words."""
    return click.argument(
        "selector",
        metavar=metavar,
        type=selector,
        shell_complete=lambda _ctx, _param, begun: [w for w in WORDS if w.startswith(begun)],
        **more,
    )


def selected(selector: str) -> list[int]:
    """The numbers of these bags; asked first, so that a wrong selector starts no daemon."""
    return [bag.id for bag in Reader().bags(selector)]


def numbers(text: str) -> list[range]:
    """Task numbers: `7`, `1-10`, `1,3,5-7`."""
    return [_range(item.strip()) for item in text.split(",")]


def _range(item: str) -> range:
    match = _ITEM.fullmatch(item) if item.isascii() else None
    if match is None:
        raise click.BadParameter(f"'{item}' is not a number or a range; write 7, 1-10 or 1,3,5-7")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise click.BadParameter(f"'{item}' runs backwards; write {last}-{first}")
    return range(first, last + 1)


class Reader(reading.Reader):
    """Says once on stderr that it reads the journal."""

    def __init__(self) -> None:
        say = "adaptor: no daemon is running; reading the journal"
        super().__init__(time.time, tell=lambda: click.echo(say, err=True))

    def bags(self, selector: str) -> list[api.BagView]:
        """The bags of a selector, at least one.

        Raises:
            UsageError: there is no such bag.
        """
        found = self.get(api.GetBags(selector)).bags
        if not found:
            named = "" if selector in ("last", "all") else f" {selector}"
            raise UsageError(f"there is no bag{named}; submit one: adaptor submit FILE")
        return found

    def bag(self, selector: str) -> api.BagView:
        """The only bag of a selector.

        Raises:
            UsageError: there is none, or more than one.
        """
        found = self.bags(selector)
        if len(found) > 1:
            raise UsageError(f"'{selector}' selects {len(found)} bags; select one")
        return found[0]
