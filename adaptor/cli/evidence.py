"""Why a bag is paused, with the end of what one of its failed tasks wrote to standard error."""

from __future__ import annotations

from collections.abc import Iterable

import click

from adaptor.api import BagView
from adaptor.cli.words import printable
from adaptor.outputs.finding import Outputs
from adaptor.outputs.tails import tail

LINES = 5


def pause_lines(bag: BagView) -> list[str]:
    """Nothing for a bag that is not paused."""
    if not bag.paused:
        return []
    return [printable(bag.paused), *(f"  | {printable(line)}" for line in _told(bag).splitlines())]


def tell_halted(bags: Iterable[BagView]) -> None:
    """Say on standard error which bags have paused by themselves."""
    for bag in bags:
        if bag.halted:
            for line in pause_lines(bag):
                click.echo(line, err=True)


def _told(bag: BagView) -> str:
    shown = bag.evidence
    if shown is None:
        return ""
    outputs = Outputs(bag.output, packed=bag.output_files == "packed")
    return tail(outputs.find_one(shown.task, shown.attempt, "stderr", shown.stderr), LINES)
