"""The words for values of a wrong type."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from adaptor.did_you_mean import type_words


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, "two", "needs a whole number, not text"),
        (int | None, [], "needs a whole number, not a list"),
        (int, 1.5, "needs a whole number, not a fraction"),
        (str | int, {}, "needs a whole number or text, not a mapping of keys to values"),
        (Annotated[int, msgspec.Meta(ge=1)], 0, "needs a whole number of 1 or more"),
        (Annotated[float, msgspec.Meta(gt=0)], -1.0, "needs a number above 0"),
        (bool, None, "needs true or false, not nothing"),
        (msgspec.Struct, 3, "needs a mapping of keys to values, not a whole number"),
        (Annotated[str, msgspec.Meta(pattern="x")], "y", "Expected `str` matching regex 'x'"),
    ],
)
def test_what_msgspec_says_of_types_in_plain_words(kind: Any, value: object, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(value, kind)
    assert type_words(str(error.value)) == words
