"""What is made of an answer is the same whether an earlier one was read or not; what stays is made once."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.observed.remembered import Remembered
from backends.slurm import parse
from backends.slurm.questions import Questions
from backends.slurm.rows import QueueRow
from tests.backends.slurm.answers import MARK, RELEASES, Answers, recorded

Changes = st.lists(st.sampled_from(["PENDING", "physics", "n1", "n2", "1", "batch", "30:00"]), max_size=4)


def changed(text: str, words: list[str], seed: int) -> str:
    """Other values in some lines, in another order of lines."""
    draw = random.Random(seed)
    lines = text.splitlines(keepends=True)
    for word in words:
        place = draw.randrange(len(lines))
        lines[place] = lines[place].replace(word, f"{word}0", 1)
    return "".join(lines)


@pytest.mark.parametrize("release", RELEASES)
@given(words=Changes, seed=st.integers(0, 99))
def test_a_second_look_reads_what_a_first_one_would(release: str, words: list[str], seed: int) -> None:
    text_of = recorded(release)
    texts = {question: changed(text_of(question), words, seed) for question in ("nodes", "job_details")}
    again, anew = Questions(Answers(text_of)), Questions(Answers(text_of, replaced=texts))
    again.nodes()
    again.job_details(again.queue())
    again._commands = anew._commands
    assert [row.node for row in again.nodes()] == [row.node for row in anew.nodes()]
    rows = again.queue()
    assert rows == anew.queue()
    assert again.job_details(rows) == anew.job_details(rows)


def test_a_row_that_stays_is_made_once(answered: Callable[[str], str]) -> None:
    known, text = Remembered[QueueRow](), answered("queue")
    before = {row.id: row for row in parse.parse_queue(text.encode(), MARK, known)}
    changed = text.replace("PENDING", "RUNNING", 1)
    after = parse.parse_queue(changed.replace(MARK, "<other>").encode(), "<other>", known)
    assert sum(before[row.id] is not row for row in after) == 1
    assert after == parse.parse_queue(changed.encode(), MARK)


def test_a_name_that_begins_with_a_line_break_ends_no_row(answered: Callable[[str], str]) -> None:
    text = answered("queue")
    rows = parse.parse_queue(text.encode(), MARK)
    name = next(row.name for row in rows if row.name)
    broken = parse.parse_queue(text.replace(f"|{name}{MARK}", f"|\n{name}{MARK}", 1).encode(), MARK)
    assert [row.id for row in broken] == [row.id for row in rows]
    assert f"\n{name}" in {row.name for row in broken}
