"""What the last look had too is not read and not made again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class Remembered(Generic[Made]):
    """What was made of each text of the last look."""

    def __init__(self) -> None:
        self._made: dict[str | bytes, Made] = {}

    def of(self, texts: Iterable[str], make: Callable[[str], Made]) -> list[Made]:
        """What `make` makes of each text; what other texts made is forgotten.

        What `make` raises passes, and nothing is forgotten.

        Args:
            make: the same at each look; the text alone decides what it makes.
        """
        last, now, found = self._made, dict[str | bytes, Made](), list[Made]()
        for text in texts:
            key = text if len(text) < _LONG else _digest(text)
            try:
                made = last[key]
            except KeyError:
                made = make(text)
            now[key] = made
            found.append(made)
        self._made = now
        return found


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


_LONG = 400  # characters from which on a text is remembered by its digest


def lines_of(text: str) -> Iterator[str]:
    """One by one: a list of all would need as much memory again."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield text[begin:end]
        begin = end + 1


class Unchanged(Generic[Made]):
    """What was made of the objects of the last look."""

    def __init__(self) -> None:
        self._made: dict[int | tuple[int, ...], Made] = {}
        self._under: object = None
        self._alive: object = None  # so that no other object gets the id of one that is remembered

    def of(self, make: Callable[..., Made], *columns: Sequence[Any], under: object = None) -> list[Made]:
        """What `make` makes of each row: the first objects of all columns, the second ones, …

        Args:
            make: never makes None.
            under: all else that decides what is made; if it is no longer equal, all is made again.
        """
        if self._under != under:
            self._made = {}
        ids = [map(id, column) for column in columns]
        keys: list[Any] = [*zip(*ids, strict=True)] if len(ids) > 1 else [*ids[0]]
        found: list[Any] = [*map(self._made.get, keys)]
        for place, made in enumerate(found):
            if made is None:
                found[place] = make(*(column[place] for column in columns))
        self._made, self._under, self._alive = dict(zip(keys, found, strict=True)), under, columns
        return found
