from __future__ import annotations

import pytest

from adaptor.bagfile.parse import parse_shell_lines, script_part
from adaptor.errors import BagFileError


@pytest.mark.parametrize(
    "line",
    [
        "./simulate --steps 1000 \\",
        "for i in 1 2 3; do",
        "for i in 1 2 3",
        "while read line",
        "if [ -f x ]; then",
        "case $1 in",
        "do",
        "done < list.txt",
        "done",
        "fi",
        "elif true; then",
        "}",
        "prepare() {",
        "cat <<EOF",
        "cat > x <<- 'END'",
        "module load gcc/12",
        "ml purge",
        "cd $SLURM_SUBMIT_DIR",
        "cd",
        "set -euo pipefail",
        "export OMP_NUM_THREADS=4",
        "source venv/bin/activate",
        ". ./env.sh",
        "conda activate mine",
        "OUT=/scratch/x",
        'NAME="two words"',
    ],
)
def test_a_part_of_a_script(line: str) -> None:
    assert script_part(line)
    with pytest.raises(BagFileError, match=r"tasks\.bag:2: .*#!/bin/bash"):
        parse_shell_lines(f"echo a\n{line}\n", "tasks.bag", 0.0)


@pytest.mark.parametrize(
    "line",
    [
        "for i in 1 2 3; do ./a $i; done",
        "if [ -f x ]; then ./a; fi",
        "cd run7 && ./simulate",
        "cd run7; ./simulate",
        "module load gcc && ./simulate",
        "export A=1; ./simulate",
        "OMP_NUM_THREADS=4 ./simulate",
        "A=1 B=2 ./simulate",
        "source env.sh && ./simulate",
        "./simulate '<<EOF' \"for x\"",
        "cat <<< word",
        "echo $((1 << 4))",
        "echo a\\\\",
        "./do done",
        "foreach x",
        "echo 'it is done'",
        "time ./a",
        "{ ./a; ./b; }",
        "(cd x && ./a)",
    ],
)
def test_a_task(line: str) -> None:
    assert script_part(line) is None


def test_directives_in_a_list_are_of_a_script() -> None:
    with pytest.raises(BagFileError, match=r"f:1: #SBATCH is of a batch script"):
        parse_shell_lines("#SBATCH --array=1-3\n./a\n", "f", 0.0)
    with pytest.raises(BagFileError, match="#PBS"):
        parse_shell_lines("#PBS -N a\n./a\n", "f", 0.0)
