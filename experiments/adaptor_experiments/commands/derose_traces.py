"""The traces of `adaptor replay derose`: those of the paper by their keys, and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.errors import UsageError

if TYPE_CHECKING:
    from adaptor_experiments.derose.design import Workload


def workloads_named(names: Sequence[str], processors: int | None) -> list[Workload]:
    """Each once, in the order in which they are named; none named: all of the paper.

    Args:
        processors: of the machine of the files; None: as their headers say.

    Raises:
        UsageError: a name is neither a key nor a file, two files have one name, or `processors` has no file.
        TraceError: a file cannot be read or leaves no job.
    """
    from adaptor_experiments.derose.design import WORKLOADS
    from adaptor_experiments.derose.own_trace import own_workload

    known = {each.key: each for each in WORKLOADS}
    files = [name for name in dict.fromkeys(names) if name not in known]
    if processors is not None and not files:
        raise UsageError("--processors is for a --trace FILE; the paper's traces have their machines")
    for name in files:
        if not Path(name).is_file():
            raise UsageError(f"--trace: {name!r} is none of {', '.join(known)}, and no file")
    if not names:
        return list(known.values())
    found: dict[str, Workload] = {}
    for name in dict.fromkeys(names):
        workload = known[name] if name in known else own_workload(Path(name), processors)
        if workload.key in found and workload != found[workload.key]:
            raise UsageError(
                f"--trace: {workload.own} and {found[workload.key].own} have one name; rename one of them"
            )
        found[workload.key] = workload
    return list(found.values())
