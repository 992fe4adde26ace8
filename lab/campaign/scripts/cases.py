"""Batch scripts as people write them."""

from __future__ import annotations

from dataclasses import dataclass

_ENVIRONMENT = 'env -0 > "env-${SLURM_ARRAY_TASK_ID:-none}"'
_ARRAY = "$SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP $SLURM_ARRAY_TASK_COUNT"


@dataclass(frozen=True)
class Case:
    """One script, and how it is submitted."""

    name: str
    text: str
    options: tuple[str, ...] = ()
    """Options of sbatch, before the script's name; `submit` takes them too."""
    arguments: tuple[str, ...] = ()
    """Arguments of the script."""
    elements: tuple[int, ...] = ()
    """Indices of its array; empty: no array."""
    folders: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Names and texts of what is there before."""
    shared: bool = False
    """Whether elements write to the same file, so that its lines come in any order."""


def script(*lines: str, interpreter: str = "/bin/bash") -> str:
    return "".join(f"{line}\n" for line in (f"#!{interpreter}", *lines))


CASES = (
    Case("one job, the usual output", script("echo out; echo err >&2; pwd", _ENVIRONMENT)),
    Case(
        "an array, the usual output",
        script("#SBATCH --array=1-3", "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT", _ENVIRONMENT),
        elements=(1, 2, 3),
    ),
    Case(
        "steps and a limit",
        script("#SBATCH -a 10-20:5%1", "#SBATCH -o out-%a.txt", f"echo {_ARRAY}"),
        elements=(10, 15, 20),
    ),
    Case(
        "a list of indices",
        script("#SBATCH --array=0,7,12-13 --output=out-%a", f"echo {_ARRAY}", _ENVIRONMENT),
        elements=(0, 7, 12, 13),
    ),
    Case(
        "names with ids and zeros",
        script(
            "#SBATCH --array=1-2 --job-name=sim",
            "#SBATCH -o %x-%A_%4a.%u.txt -e %x-%a.err%%",
            "echo a; echo b >&2",
        ),
        elements=(1, 2),
    ),
    Case("names of one job", script("#SBATCH -J 'two words' -o %x-%j-%J-%n-%t-%s.txt", "echo a")),
    Case(
        "exit codes",
        script("#SBATCH --array=0-3", "#SBATCH -o out-%a", "exit $SLURM_ARRAY_TASK_ID"),
        elements=(0, 1, 2, 3),
    ),
    Case("a signal", script("#SBATCH -o out", "echo before", "kill -TERM $$", "sleep 5", "echo after")),
    Case(
        "processors and memory",
        script(
            "#SBATCH --cpus-per-task=2 --mem=200M",
            "#SBATCH -o out",
            "echo $SLURM_CPUS_PER_TASK",
            _ENVIRONMENT,
        ),
    ),
    Case(
        "memory per processor",
        script("#SBATCH -c 2 --mem-per-cpu=100", "#SBATCH -o out", "echo $SLURM_MEM_PER_CPU", _ENVIRONMENT),
    ),
    Case(
        "another folder",
        script("#SBATCH --chdir=below", "#SBATCH -o out", "pwd; echo $SLURM_SUBMIT_DIR"),
        folders=("below",),
    ),
    Case(
        "no environment",
        script("#SBATCH --export=NONE", "#SBATCH -o out", "echo [$COLOUR]; echo $HOME"),
    ),
    Case(
        "chosen variables",
        script("#SBATCH --export=COLOUR,SHAPE=round", "#SBATCH -o out", "echo [$COLOUR] [$SHAPE] [$FLAVOUR]"),
    ),
    Case(
        "arguments",
        script("#SBATCH -o out", "printf '<%s>' \"$@\""),
        arguments=("a", "two words", "$HOME", "*"),
    ),
    Case(
        "srun of one process",
        script("#SBATCH -o out", "srun echo hello", "srun -n1 -c 1 --output=step printenv SLURM_PROCID"),
    ),
    Case(
        "srun in an array, its exit code",
        script(
            "#SBATCH --array=3,4 -o out-%a",
            _ENVIRONMENT,
            "srun --ntasks=1 bash -c 'exit $SLURM_ARRAY_TASK_ID'",
        ),
        elements=(3, 4),
    ),
    Case(
        "Python",
        script(
            "#SBATCH -o out",
            "import os, sys",
            "print(os.environ['SLURM_JOB_NAME'], sys.argv)",
            interpreter="/usr/bin/env python3",
        ),
    ),
    Case(
        "directives that are none",
        script(
            "# SBATCH -o wrong1",
            "##SBATCH -o wrong2",
            "  #SBATCH -o wrong3",
            "#SBATCH -o 'right one' # a note",
            "",
            "echo a",
            "#SBATCH -o wrong4",
        ),
    ),
    Case(
        "the command line wins",
        script("#SBATCH --array=1-9 --mem=3G -o out-%a", f"echo {_ARRAY}"),
        options=("--array=2-4:2",),
        elements=(2, 4),
    ),
    Case(
        "a line of a file for each element",
        script(
            "#SBATCH --array=1-3",
            "#SBATCH --output=logs/%a.log",
            "mkdir -p results",
            "cd $SLURM_SUBMIT_DIR",
            'input=$(sed -n "${SLURM_ARRAY_TASK_ID}p" inputs.txt)',
            "for letter in x y; do",
            '  echo "$input $letter" >> \\',
            "    results/$SLURM_ARRAY_TASK_ID.txt",
            "done",
            "cat <<END",
            "done with $input",
            "END",
        ),
        elements=(1, 2, 3),
        folders=("logs",),
        files=(("inputs.txt", "apple\nbanana\ncherry pie\n"),),
    ),
    Case(
        "output behind what is there, and children",
        script(
            "#SBATCH --open-mode=append --output=out --error=/dev/null",
            "(sleep 0.2; echo child) &",
            "wait",
            "echo end",
            "echo gone >&2",
        ),
        files=(("out", "before\n"),),
    ),
    Case(
        "several processes on one node",
        script("#SBATCH -n 2 -N 1 --ntasks-per-node=2 -o out", "echo $SLURM_NTASKS", _ENVIRONMENT),
    ),
)

_BOTH = "touch ${1}_$SLURM_ARRAY_TASK_ID; until [ -e ${1}_1 ] && [ -e ${1}_2 ]; do sleep 0.1; done"
_TOGETHER = f"together() {{ {_BOTH}; }}"
"""Elements 1 and 2 go on once both have come there."""
_FIVE = "for line in 1 2 3 4 5; do echo $SLURM_ARRAY_TASK_ID $line; done"
_PROCESS = (
    "echo $SLURM_PROCID $SLURM_LOCALID of $SLURM_NTASKS $SLURM_STEP_NUM_TASKS > process-$1-$SLURM_PROCID"
)

DANGEROUS = (
    Case(
        "two elements, one file",
        script("#SBATCH --array=1-2 --output=%A.out", _TOGETHER, "together a", _FIVE),
        elements=(1, 2),
        shared=True,
    ),
    Case(
        "one file, one element after the other",
        script("#SBATCH --array=1-2%1 --output=shared.out --job-name=x", _FIVE),
        elements=(1, 2),
    ),
    Case(
        "one file that is appended to",
        script("#SBATCH --array=1-2%1 --output=%x.out --job-name=x --open-mode=append", _FIVE),
        elements=(1, 2),
        files=(("x.out", "before\n"),),
    ),
    Case(
        "standard error of all in one file",
        script(
            "#SBATCH --array=1-2 -o out-%a -e %x.err -J x", _TOGETHER, "together a", f"{{ {_FIVE}; }} >&2"
        ),
        elements=(1, 2),
        shared=True,
    ),
    Case(
        "$SLURM_TMPDIR",
        script(
            "#SBATCH --array=1-2 --output=out-%a",
            _TOGETHER,
            'cd "$SLURM_TMPDIR" || exit 3',
            "ls -A; touch mine_$SLURM_ARRAY_TASK_ID; cd $SLURM_SUBMIT_DIR; together a",
            'ls "$SLURM_TMPDIR"; together b; rm -rf "$SLURM_TMPDIR"/*; together c; ls "$SLURM_TMPDIR"',
            'stat -c %a "$SLURM_TMPDIR"',
        ),
        elements=(1, 2),
    ),
    Case(
        "the folder of $0",
        script(
            "#SBATCH --array=1-2 --output=out-%a",
            'case "$(dirname "$0")" in */job[0-9]*) echo the copy of slurmd;; *) echo no;; esac',
            'cd "$(dirname "$0")"; ls; ./helper.sh || echo $?',
        ),
        elements=(1, 2),
        files=(("helper.sh", "#!/bin/sh\necho never\n"),),
    ),
    Case(
        "steps behind an ampersand",
        script(
            "#SBATCH --ntasks=2 --output=out",
            "for i in 1 2 3 4 5; do srun -n 1 --exclusive ./step $i & done; wait",
        ),
        files=(("step", f"#!/bin/sh\n{_PROCESS}\n"),),
    ),
    Case(
        "a step of several processes",
        script(
            "#SBATCH -n 3 --output=out",
            "srun ./step a; echo $?; srun -n 2 ./step b; echo $?; srun -n 4 ./step c; echo $?",
            "srun -n 2 --output=file_%t hostname > nothing; echo in | srun -n 2 cat",
        ),
        files=(("step", f"#!/bin/sh\n{_PROCESS}\nexit $SLURM_PROCID\n"),),
    ),
)
"""Cases that would differ without a word if an element were any other task. A site with $SLURM_TMPDIR."""
