"""Several calls of one function as one task; its imports are paid for on every node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of `size`; the last one may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def run_chunk(function: Callable[..., Any], many: list[tuple[Any, ...]]) -> list[Any]:
    """Results of the function for each of these arguments."""
    return [function(*arguments) for arguments in many]
