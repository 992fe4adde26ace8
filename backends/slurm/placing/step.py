"""The generic resources of a request, read back from its options for the steps of its workers. Pure.

A step that names none gets, of those asked for by task, what one task gets.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from backends.slurm.placing.gres import gres_counts

_OF_NODE = {"--gres": "", "--gpus-per-node": "gpu:"}
_OF_TASK = {"--gpus-per-task": "gpu:"}
"""Options of sbatch, with what their values leave out before each type and number."""


def step_gres(arguments: Sequence[str]) -> str:
    """Words of a bash array: for each resource its name, how many of each node, and how many of each task.

    `gpu:a100: 0 1`: one GPU of this type for each task. What cannot be read is left out: sbatch refuses it.

    Args:
        arguments: of sbatch; as for sbatch, what stands last counts.
    """
    of_node, of_task = _counted(arguments, _OF_NODE), _counted(arguments, _OF_TASK)
    words = []
    for name, type in sorted({*of_node, *of_task}):
        kind = f"{name}:{type}:" if type else f"{name}:"
        words += [shlex.quote(kind), str(of_node[name, type]), str(of_task[name, type])]
    return " ".join(words)


def _counted(arguments: Sequence[str], options: dict[str, str]) -> Counter[tuple[str, str]]:
    given: dict[str, str] = {}
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in options:
            given[name] = value if equals else following
    found: Counter[tuple[str, str]] = Counter()
    for name, value in given.items():
        try:
            items = ",".join(f"{options[name]}{item}" for item in value.split(","))
            found.update(gres_counts(items))
        except ValueError:
            continue
    return found
