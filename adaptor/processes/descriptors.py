"""How many descriptors this process may have open: all it is allowed to, and its children what was usual."""

from __future__ import annotations

import resource
from collections.abc import Sequence

_MOST = 65_536
"""More are of no use to a daemon, and some libraries take memory for each."""
_usual: list[int] = []
"""The soft limit that this process was started with; empty: it has it still."""


def raise_limit() -> int:
    """Raise the soft limit to the hard one; the descriptors that may be open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _MOST if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    _usual.append(soft)
    return wanted


def with_usual_limit(arguments: Sequence[str]) -> list[str]:
    """The command, with the limit that its user knows: Slurm hands it on to the tasks of a job."""
    if not _usual:
        return list(arguments)
    return ["/bin/sh", "-c", 'ulimit -S -n "$0"; exec "$@"', str(_usual[0]), *arguments]
