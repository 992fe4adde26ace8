"""Lines as sbatch 22.05 was seen to read them."""

from __future__ import annotations

import pytest

from adaptor.bagfile.scripts.getopt import OptionError, directives, words_of
from adaptor.bagfile.scripts.sbatch import SBATCH


def test_directives_stop_at_the_first_command() -> None:
    none = "# SBATCH -b\n##SBATCH -c\n  #SBATCH -d\n#SBATCHED\n"
    text = f"#!/bin/sh\n\n#SBATCH -a 1\n{none}#SBATCH-e\nls\n#SBATCH -f\n"
    assert directives(text, "#SBATCH") == [(3, " -a 1"), (8, "-e")]


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        (" -J 'my job' --time=5 # note", ["-J", "my job", "--time=5"]),
        (' -J "a#b" -c 2#3', ["-J", "a#b", "-c", "2"]),
        (r' --output="%x \n"', [r"--output=%x n"]),
        (r" -J a\ b\\", ["-J", "a b\\"]),
        (r" -J it\'s", ["-J", "it's"]),
        (" -J ''", ["-J", ""]),
        ("\t-c2 \\", ["-c2", ""]),
        ("", []),
    ],
)
def test_words(rest: str, words: list[str]) -> None:
    assert [word.text for word in words_of(rest, 1)] == words


def test_leading_options_end_at_the_first_other_word() -> None:
    given, rest = SBATCH.table.leading(["-J", "x y", "--parsable", "--arr=1-3", "-c2", "job.sh", "-n", "5"])
    assert [(each.name, each.value) for each in given] == [
        ("job-name", "x y"), ("parsable", ""), ("array", "1-3"), ("cpus-per-task", "2")
    ]  # fmt: skip
    assert rest == ["job.sh", "-n", "5"]
    assert SBATCH.table.leading(["-W", "--", "-x"])[1] == ["-x"]
    with pytest.raises(OptionError, match="--nonsense"):
        SBATCH.table.leading(["--nonsense"])
