"""The bar and the numbers of a bag in `adaptor watch`, in one line or two by the width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.text import Text

from adaptor import api
from adaptor.cli.printing import plural, printable
from adaptor.cli.sentences import counts, percent_ended, title

_LONGEST, _SHORTEST = 40, 10  # cells of a bar
_SHARE = len(" 100%")
_WAITS = "bright_black"


def bars(bags: Sequence[api.BagView], width: int, room: int, *, ascii_only: bool = False) -> list[Text]:
    """The lines of all bags, at most `room`.

    If there are more, those that have ended are counted, those that run come first, and the rest is counted.
    """
    columns = _columns(bags, width)
    lines = {bag.id: [*_bag_lines(bag, columns, width, ascii_only=ascii_only)] for bag in bags}
    if sum(map(len, lines.values())) <= room:
        return [line for each in lines.values() for line in each]
    going = running_first(bag for bag in bags if bag.ended is None)
    found = _ended([bag for bag in bags if bag.ended is not None])
    for place, bag in enumerate(going):
        rest = going[place:]
        if len(found) + len(lines[bag.id]) + (len(rest) > 1) > room:
            run = sum(bag.running > 0 for bag in rest)
            which = f"{run} of them run" if run else "none of them runs"
            return [*found, Text(f"{plural(len(rest), 'more bag')}, {which}: adaptor status")]
        found += lines[bag.id]
    return found


def running_first(bags: Iterable[api.BagView]) -> list[api.BagView]:
    """The bags of which tasks run, then the others, each in their order."""
    return sorted(bags, key=lambda bag: bag.running == 0)


def _ended(bags: Sequence[api.BagView]) -> list[Text]:
    if not bags:
        return []
    failed = sum(bag.failed > 0 for bag in bags)
    text = Text(f"{plural(len(bags), 'bag')} ended")
    return [text.append(f", {failed} with failures", style="red") if failed else text]


class _Columns(NamedTuple):
    """Widths of columns, the same for all bags, so that their bars stand below each other."""

    head: int  # cells
    bar: int
    one_line: bool  # whether the numbers have room behind the bar


def _columns(bags: Sequence[api.BagView], width: int) -> _Columns:
    head = max((len(title(bag)) for bag in bags), default=0)
    # What the numbers take in most moments of a bag: its bar keeps its length meanwhile.
    words = len(" of  done,  running,  waiting, mean 59m 59s")
    numbers = max((max(len(counts(bag)), 4 * len(f"{bag.tasks:,}") + words) for bag in bags), default=0)
    beside = width - _SHARE - numbers - 3
    one_line = head <= beside - _SHORTEST
    if not one_line:
        head = min(head, max(1, width - _SHARE - _SHORTEST - 1))
        beside = width - _SHARE - 1
    return _Columns(head, min(_LONGEST, beside - head), one_line)


def _bag_lines(
    bag: api.BagView, columns: _Columns, width: int, *, ascii_only: bool = False
) -> Iterator[Text]:
    """One bag in lines of at most `width` cells: its bar and its share in per cent are never left out."""
    head, drawn = printable(title(bag), columns.head), bar(bag, columns.bar, ascii_only=ascii_only)
    numbers = ["  ", counts(bag)] if columns.one_line else []
    yield Text.assemble(head.ljust(columns.head), " ", drawn, f" {percent_ended(bag):3}%", *numbers)
    if not columns.one_line:
        yield Text(printable(f"  {counts(bag)}", width))


def bar(bag: api.BagView, cells: int, *, ascii_only: bool = False) -> Text:
    """The tasks of a bag in the colours of what became of them: done, failed or cancelled, running, waiting.

    What has failed is seen even where it is less than a cell.
    """
    parts = (
        (bag.done, "green"),
        (bag.failed + bag.cancelled, "red"),
        (bag.running, "blue"),
        (bag.waiting + bag.blocked, _WAITS),
    )
    full, empty = ("#", "-") if ascii_only else ("━", "─")
    total, reached, drawn = max(1, bag.tasks), 0, 0
    text = Text()
    for count, colour in parts:
        reached += count
        until = max(cells * reached // total, drawn + 1 if colour == "red" and count else drawn)
        until = min(cells, until)
        text.append((empty if colour == _WAITS else full) * (until - drawn), style=colour)
        drawn = until
    return text.append(empty * (cells - drawn), style=_WAITS)
