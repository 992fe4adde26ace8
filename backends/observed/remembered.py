"""Cache of parsed rows: what the last look had too is not read and not made again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")

_NOT_THERE: Any = object()


class Remembered(Generic[Made]):
    """Rows made of each text of the last look.

    A text is remembered by its hash: 64 bits with a key of this process, so that no user can make another
    text with the same hash.
    """

    def __init__(self) -> None:
        self._made: dict[int, Made] = {}

    def of(self, blocks: Iterable[list[bytes]], make: Callable[[str], Made]) -> list[Made]:
        """The row that `make` makes of each text; rows of all other texts are forgotten.

        Raises what `make` raises; then nothing is forgotten.

        Args:
            blocks: the texts, some at a time.
            make: the same at each look; the text alone decides what it makes.
        """
        last, hashes, found = self._made, list[int](), list[Made]()
        for texts in blocks:
            keys = [*map(hash, texts)]
            made: list[Any] = [*map(last.get, keys, repeat(_NOT_THERE))]
            for place, each in enumerate(made):
                if each is _NOT_THERE:
                    made[place] = make(decoded(texts[place]))
            hashes += keys
            found += made
        self._made = dict(zip(hashes, found, strict=True))
        return found


def decoded(text: bytes) -> str:
    """The text as the answer of a command is decoded."""
    return text.decode(errors="replace")


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage within: what a look makes stays and has no cycles, but would be searched for
    some."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_BLOCK = 2**19  # bytes of a block: less than the processor keeps at hand


def blocks_of(printed: bytes, begin: int = 0, end: bytes = b"\n") -> Iterator[list[bytes]]:
    """The pieces between the ends, some at a time: a list of all would need as much memory again."""
    while begin < len(printed):
        stop = printed.find(end, begin + _BLOCK)
        block = printed[begin : stop if stop >= 0 else len(printed)]
        begin += len(block) + len(end)
        yield (block if stop >= 0 else block.removesuffix(end)).split(end)


def lines_of(printed: bytes) -> Iterator[list[bytes]]:
    """All lines but blank ones, some at a time."""
    for block in blocks_of(printed):
        yield [*filter(bytes.strip, block)]


class Unchanged(Generic[Made]):
    """Rows made of the objects of the last look."""

    def __init__(self) -> None:
        self._columns: tuple[Sequence[Any], ...] = ()
        self._made: list[Made] = []
        self._under: object = None

    def of(self, make: Callable[..., Made], *columns: Sequence[Any], under: object = None) -> list[Made]:
        """The result of `make` for each row: the first objects of all columns, the second ones, …

        Args:
            columns: most of the first one stands in the order of the last look.
            under: all else that decides what is made; if it is no longer equal, all is made again.
        """
        first, found = columns[0], list[Made]()
        old = self._columns if self._columns and self._under == under else ((),) * len(columns)
        for begin, place, count in _stretches(first, old[0]):
            if count and all(
                column[begin : begin + count] == last[place : place + count]
                for column, last in zip(columns[1:], old[1:], strict=True)
            ):
                found += self._made[place : place + count]
                continue
            for step in range(max(1, count)):
                row = [column[begin + step] for column in columns]
                stays = count and all(each is last[place + step] for each, last in zip(row, old, strict=True))
                found.append(self._made[place + step] if stays else make(*row))
        self._columns, self._made, self._under = columns, found, under
        return found


def _stretches(new: Sequence[Any], old: Sequence[Any]) -> Iterator[tuple[int, int, int]]:
    """All places of `new` in order: from which on, from where in `old` on, and how many are the same.

    The number is 0 for one object that is not in `old`.
    """
    places: dict[int, int] = {}
    begin = place = 0
    while begin < len(new):
        if count := _alike(new, begin, old, place):
            yield begin, place, count
            begin, place = begin + count, place + count
            continue
        for near in range(place + 1, place + _NEAR):
            if near < len(old) and old[near] is new[begin]:
                place = near
                break
        else:
            places = places or {id(each): number for number, each in enumerate(old)}
            found = places.get(id(new[begin]))
            if found is None:
                yield begin, place, 0
                begin += 1
            else:
                place = found


_NEAR = 8  # objects in a row that may be gone before all are searched


def _alike(new: Sequence[Any], begin: int, old: Sequence[Any], place: int) -> int:
    """Number of objects that are the same from these places on. Lists compare the same object at once."""
    most, count, size = min(len(new) - begin, len(old) - place), 0, 64
    while size and count < most:
        size = min(size, most - count)
        ours = new[begin + count : begin + count + size]
        if ours == old[place + count : place + count + size]:
            count, size = count + size, 2 * size
        else:
            most, size = min(most, count + size - 1), size // 2
    return count
