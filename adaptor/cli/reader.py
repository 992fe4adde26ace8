"""The bags that a user has named, by the daemon or its journal."""

from __future__ import annotations

import time

import click

from adaptor import api
from adaptor.client import reading
from adaptor.errors import UsageError


class Reader(reading.Reader):
    """Says once on stderr that it reads the journal."""

    def __init__(self) -> None:
        super().__init__(time.time, tell=_say_offline)

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


def _say_offline() -> None:
    click.echo("adaptor: no daemon is running; reading the journal", err=True)
