"""Options of sbatch, qsub, GNU parallel and xargs that people type here, and what they are called here."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SITE = "sites of the configuration say it: --site NAME (see adaptor site --help)"
_AT_ONCE = "write --max-running N for how many tasks run at the same time, or --cpus N for each task"
_LENGTH = "write --time for how long a task takes, or --timeout for when it is ended"
_OUTPUT = "write --output DIR; each task has a file of its own there"
_VALUES = "write the command and its values: adaptor run gzip {} ::: *.txt"
_SIZES = "write --cpus, --mem, --gpus and --time for what each task needs"
_MESSAGES = "write --notify NAME"
_GPUS = "write --gpus N for each task"
_WATCH = "adaptor run and adaptor watch show the progress"
_PASSED = "tasks get this shell's environment, unless --no-env is given"

OPTIONS: Mapping[str, str] = {
    "-p": "write -P NAME=VALUES for a parameter, --cpus N for processors, --site NAME for a partition",
    **dict.fromkeys(("-q", "-A", "-C", "-w", "-x", "-M"), _SITE),
    **dict.fromkeys(("--partition", "--queue", "--account", "--qos", "--constraint"), _SITE),
    **dict.fromkeys(("--nodelist", "--exclude", "--clusters", "--reservation"), _SITE),
    **dict.fromkeys(("-n", "-j", "--ntasks", "--jobs", "--max-procs", "--ntasks-per-node"), _AT_ONCE),
    **dict.fromkeys(("-c", "--cpus-per-task", "--procs", "--threads"), "write --cpus N"),
    **dict.fromkeys(("-t", "--time-limit", "--walltime"), _LENGTH),
    **dict.fromkeys(("-J", "--job-name"), "write --name TEXT"),
    **dict.fromkeys(("-o", "-e", "--error", "--outputasfiles", "--results", "--joblog"), _OUTPUT),
    **dict.fromkeys(("-I", "-i", "-L", "--max-args", "--max-lines", "-0", "--null"), _VALUES),
    **dict.fromkeys(("-m", "--mem-per-cpu"), "write --mem SIZE for each task"),
    **dict.fromkeys(("-G", "--gres", "--gpus-per-task", "--gpus-per-node", "--gpus-per-job"), _GPUS),
    **dict.fromkeys(("--mail-type", "--mail-user"), _MESSAGES),
    **dict.fromkeys(("-d", "-W", "--dependency"), "write --after BAG"),
    **dict.fromkeys(("--eta", "--bar", "--progress"), _WATCH),
    **dict.fromkeys(("-V", "--export"), _PASSED),
    **dict.fromkeys(("-k", "--keep-order"), "write adaptor run --stdout"),
    **dict.fromkeys(("-H", "-h", "--hold"), "adaptor pause BAG holds a bag"),
    "-l": _SIZES,
    "-a": "write --array INDICES for a batch script; a FILE of tasks needs no option",
    "-D": "write --cwd DIR",
    "-r": "write --retries N",
    "-u": "adaptor results and adaptor run --stdout show what tasks write",
    "--chdir": "write --cwd DIR",
    "--wd": "write --cwd DIR",
    "--workdir": "write --cwd DIR",
    "--colsep": "write --template LINE --csv FILE",
    "--arg-file": "write :::: FILE behind the command",
    "--delay": "tasks start as soon as processors are free; --begin TIME delays the whole bag",
    "--dry-run": "write adaptor plan --commands",
    "--exclusive": "write --cpus with all processors of a node",
    "--halt": "write adaptor run --halt, or --max-fails N",
    "--requeue": "tasks that a pilot loses run again by themselves; --retries N is for failed ones",
    "--resume-failed": "write adaptor retry BAG",
    "--retry-failed": "write adaptor retry BAG",
    "--shuf": "write --order random",
    "--stdout": "write adaptor run --stdout",
    "--tag": "write adaptor run --tag",
    "--test-only": "write adaptor plan",
    "--wait": "adaptor run waits for the end of the bag; so does adaptor watch",
    "--wrap": "write the command behind --: adaptor submit -- ./prog a b",
}
"""The words to write here, by option."""


HALT_VALUE = re.compile(r"(now|soon),(fail|success|done)=")
"""The value of GNU parallel's `--halt`, which has none here."""


def hint(option: str) -> str:
    """The words to write in place of an option that is not there; empty: no known tool has it."""
    return OPTIONS.get(option, "")
