"""A comment that looks like a directive is refused with its line; an ordinary comment is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.bagfile.comments import directive_in_list
from adaptor.bagfile.parse import parse_shell_lines
from adaptor.bagfile.scripts.script import Submission, script_bag
from adaptor.errors import AdaptorError, BagFileError


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("#adaptor cpus=2", "#adaptor is a comment, and looks like options: write '#ADAPTOR key=value'"),
        ("# ADAPTOR cpus=2 mem=4G", "write '#ADAPTOR key=value'"),
        ("#Adaptor", "write '#ADAPTOR key=value'"),
        ("#ADAPTOR: cpus=2", "write '#ADAPTOR key=value'"),
        ("#  adaptor: retries=1", "write '#ADAPTOR key=value'"),
        ("#DISBATCH PREFIX cd /data ; ", "#DISBATCH is a directive of disBatch, which is not followed"),
        ("#DISBATCH REPEAT 5", "put a space behind '#' to keep it as a comment"),
        ("#HQ --cpus=2", "#HQ is a directive of HyperQueue"),
        ("#sbatch --mem=4G", "#sbatch is a directive of sbatch"),
        ("#BSUB -n 4", "#BSUB is of a batch script"),
        ("#flux: -n4", "is a directive of flux"),
        ("#$ -l h_rt=1:00:00", "is of a batch script"),
        ("[# 1 #] ./b", "begins with what GREASY reads as dependencies"),
        ("[#-1#] ./b", "write JSON Lines with the keys 'id' and 'after'"),
    ],
)
def test_a_directive_of_another_tool_is_refused_with_its_line(line: str, why: str) -> None:
    with pytest.raises(BagFileError) as caught:
        parse_shell_lines(f"./a\n\n{line}\n./c\n", "tasks.bag", 0.0)
    assert str(caught.value).startswith("tasks.bag:3: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "# adaptor of the second kind", "# the adaptor: cpus=2 was too few", "#TODO --now", "#",
        "##SBATCH -n 2", "# DISBATCH PREFIX", "#adaptors", "#hqx", "# $ -l x", "#!x", "#ADAPTOR",
    ],
)  # fmt: skip
def test_an_ordinary_comment_is_skipped(line: str) -> None:
    assert directive_in_list(line, "") is None


@given(st.text(max_size=30))
def test_a_comment_with_a_space_in_front_of_prose_is_skipped(words: str) -> None:
    if "adaptor" not in words.lower():
        assert directive_in_list(f"# {words}", "") is None


@pytest.mark.parametrize("line", ["#adaptor retries=2", "# ADAPTOR mem=4G"])
def test_a_script_names_the_line_too(line: str) -> None:
    given = Submission(folder="/x", user="u", host="h", home="/home/u", environment={})
    with pytest.raises(AdaptorError) as caught:
        script_bag(f"#!/bin/sh\n#SBATCH -c 2\n{line}\ntrue\n".encode(), "job.sh", "job.sh", given)
    assert str(caught.value).startswith("job.sh:3: ")
    assert "write '#ADAPTOR key=value'" in str(caught.value)
    script_bag(
        f"#!/bin/sh\ntrue\n{line}\n".encode(), "job.sh", "job.sh", given
    )  # behind a command: a comment


def test_a_script_for_another_scheduler_alone_is_refused() -> None:
    """One for several schedulers, whose other lines are read, is not."""
    given = Submission(folder="/x", user="u", host="h", home="/home/u", environment={})
    lines = "#BSUB -n 4\n#HQ --cpus=2\n"
    with pytest.raises(AdaptorError) as caught:
        script_bag(f"#!/bin/sh\n{lines}true\n".encode(), "job.sh", "job.sh", given)
    assert "'#BSUB' is of bsub, which is not read: write '#SBATCH' or '#ADAPTOR' lines" in str(caught.value)
    assert "'#HQ' is of HyperQueue" in str(caught.value)
    script_bag(f"#!/bin/sh\n#SBATCH -n 1\n{lines}true\n".encode(), "job.sh", "job.sh", given)
    script_bag(b"#!/bin/sh\n# BSUB -n 4\ntrue\n", "job.sh", "job.sh", given)


def test_a_script_has_its_own_shell() -> None:
    given = Submission(
        folder="/x", user="u", host="h", home="/home/u", environment={}, options={"shell": "zsh"}
    )
    with pytest.raises(BagFileError, match="the '#!' line of a batch script names its shell"):
        script_bag(b"#!/bin/sh\ntrue\n", "job.sh", "job.sh", given)
