"""What the last look had too is not read and not made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class Remembered(Generic[Made]):
    """What was made of each text of the last look."""

    def __init__(self) -> None:
        self._made: dict[str, Made] = {}

    def of(self, texts: Sequence[str], make: Callable[[str], Made]) -> list[Made]:
        """What `make` makes of each text; what other texts made is forgotten.

        What `make` raises passes, and nothing is forgotten.

        Args:
            make: the same at each look; the text alone decides what it makes.
        """
        last = self._made
        last |= {text: make(text) for text in dict.fromkeys(texts) if text not in last}
        found = [*map(last.__getitem__, texts)]
        self._made = dict(zip(texts, found, strict=True))
        return found


class Unchanged(Generic[Made]):
    """What was made of the objects of the last look."""

    def __init__(self) -> None:
        self._made: dict[int | tuple[int, ...], Made] = {}
        self._under: object = None
        self._alive: object = None
        """So that no other object gets the id of one that is remembered."""

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
