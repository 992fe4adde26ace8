"""Batch scripts of PBS as people write them."""

from __future__ import annotations

from lab.campaign.scripts.cases import Case, script

_HERE = "cd $PBS_O_WORKDIR"
_ENVIRONMENT = 'env -0 > "env-${PBS_ARRAY_INDEX:-none}"'

CASES = (
    Case("one job, the usual output", script("echo out; echo err >&2", _HERE, _ENVIRONMENT)),
    Case(
        "an array, the usual output",
        script("#PBS -J 1-3", "echo $PBS_ARRAY_INDEX; echo err >&2", _HERE, _ENVIRONMENT),
        elements=(1, 2, 3),
    ),
    Case(
        "a name and joined output",
        script("#PBS -N sim -j oe", "echo a; echo b >&2"),
    ),
    Case(
        "an array with steps and joined output",
        script("#PBS -N sweep", "#PBS -J 10-20:5", "#PBS -j oe", "echo $PBS_ARRAY_INDEX of it"),
        elements=(10, 15, 20),
    ),
    Case(
        "names of files",
        script("#PBS -o out.txt", "#PBS -e err.txt", "echo a; echo b >&2"),
    ),
    Case(
        "names of files of an array",
        script("#PBS -J 1-2", "#PBS -o out-^array_index^.txt -e err-^array_index^.txt", "echo a; echo b >&2"),
        elements=(1, 2),
    ),
    Case(
        "a folder for output",
        script("#PBS -N sim", "#PBS -o logs/ -e logs/", "echo a; echo b >&2"),
        folders=("logs",),
    ),
    Case(
        "a folder for the output of an array",
        script("#PBS -N sim -J 1-2", "#PBS -o logs/ -j oe", "echo a; echo b >&2"),
        elements=(1, 2),
        folders=("logs",),
    ),
    Case(
        "errors with output",
        script("#PBS -N sim -j eo", "echo a; echo b >&2"),
    ),
    Case(
        "exit codes",
        script("#PBS -J 0-3", "#PBS -N codes -j oe", "exit $PBS_ARRAY_INDEX"),
        elements=(0, 1, 2, 3),
    ),
    Case("a signal", script("#PBS -j oe -o out", "echo before", "kill -TERM $$", "sleep 5", "echo after")),
    Case("where it begins", script("#PBS -j oe -o out", "pwd; echo $HOME; echo $PBS_O_WORKDIR")),
    Case(
        "a chunk",
        script("#PBS -l select=1:ncpus=2:mem=200mb", "#PBS -j oe -o out", "echo $NCPUS", _HERE, _ENVIRONMENT),
    ),
    Case(
        "threads and processes",
        script(
            "#PBS -l select=1:ncpus=4:ompthreads=2:mpiprocs=2",
            "#PBS -l walltime=00:05:00",
            "#PBS -j oe -o out",
            "echo $OMP_NUM_THREADS; wc -l < $PBS_NODEFILE",
            _HERE,
            _ENVIRONMENT,
        ),
    ),
    Case(
        "resources one by one",
        script(
            "#PBS -l ncpus=2,mem=100mb,walltime=300",
            "#PBS -j oe -o out",
            "echo $NCPUS; wc -l < $PBS_NODEFILE",
        ),
    ),
    Case(
        "variables",
        script("#PBS -v SHAPE=round,COLOUR", "#PBS -j oe -o out", "echo [$COLOUR] [$SHAPE]"),
    ),
    Case(
        "directives that are none",
        script(
            "# PBS -o wrong1",
            "##PBS -o wrong2",
            "#PBS -o right",
            "",
            "echo a",
            "#PBS -o wrong4",
        ),
    ),
    Case(
        "the command line wins",
        script("#PBS -J 1-9", "#PBS -N one -j oe", "echo $PBS_ARRAY_INDEX"),
        options=("-J", "2-4:2", "-N", "two"),
        elements=(2, 4),
    ),
    Case(
        "a line of a file for each element",
        script(
            "#PBS -J 1-3",
            "#PBS -N lines -j oe",
            _HERE,
            'input=$(sed -n "${PBS_ARRAY_INDEX}p" inputs.txt)',
            "for letter in x y; do",
            '  echo "$input $letter" >> \\',
            "    results-$PBS_ARRAY_INDEX.txt",
            "done",
            "cat <<END",
            "done with $input",
            "END",
        ),
        elements=(1, 2, 3),
        files=(("inputs.txt", "apple\nbanana\ncherry pie\n"),),
    ),
    Case(
        "Python",
        script(
            "#PBS -j oe -o out",
            "import os",
            "print(os.environ['PBS_JOBNAME'])",
            interpreter="/usr/bin/env python3",
        ),
    ),
    Case(
        "children and the end",
        script("#PBS -j oe -o out", "(sleep 0.2; echo child) &", "wait", "echo end"),
    ),
)
