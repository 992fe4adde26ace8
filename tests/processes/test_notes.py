"""Notes that are damaged are a ValueError that names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.processes.notes import read_note


@pytest.mark.parametrize(
    "text", ["NaN", '{"since": Infinity}', '{"since": -Infinity}', "1e999", "", '{"since": ', "[" * 100_000]
)
def test_what_no_note_says_is_a_value_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "1.start.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"1\.start\.json"):
        read_note(path)


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "1.start.json"
    path.write_text('{"since": 1.5, "p": 4}')
    assert read_note(path) == {"since": 1.5, "p": 4}
