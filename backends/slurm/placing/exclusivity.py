"""Exclusive use of nodes by jobs, in the words of each release. Pure.

Since 26.05 `Exclusive=` of a job or a partition says it. Before, `OverSubscribe=` and, of partitions,
`ExclusiveUser=` and `ExclusiveTopo=` say it; recorded from 22.05, 24.11 and 26.05. Squeue and sinfo print a
word (`%h`) that means something else since 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NOTHING = ""  # jobs of others may run next to it
NODE = "NODE"
KNOWN = frozenset({NOTHING, NODE, "USER", "MCS", "TOPO"})
"""Whole nodes; nodes shared only with jobs of the same user, of the same label of MCS, or whole segments of
the topology. Any other word stands for itself: nothing is known of it."""

_OVERSUBSCRIBE = {"NO": NODE, "OK": NOTHING, "YES": NOTHING}
_EXCLUSIVE = {"NO": NOTHING}


def of_job(values: Mapping[str, str]) -> str:
    """Unit that a job does not share, from the fields of `scontrol show job`."""
    word = values.get("Exclusive")
    if word is not None:
        return _EXCLUSIVE.get(word, word)
    word = values.get("OverSubscribe", "no answer")
    return _OVERSUBSCRIBE.get(word, word)


def of_partition(values: Mapping[str, str]) -> str:
    """Unit that a partition's jobs do not share, from the fields of `scontrol show partition`."""
    word = values.get("Exclusive")
    if word is not None:
        return _EXCLUSIVE.get(word, word)
    if values.get("OverSubscribe", "").startswith("EXCLUSIVE"):
        return NODE
    held = [kind for kind in ("USER", "TOPO") if values.get(f"Exclusive{kind.capitalize()}") == "YES"]
    return held[0] if held else NOTHING


def jobs_on_a_processor(values: Mapping[str, str]) -> int:
    """Jobs on a processor of a partition, from `OverSubscribe=FORCE:4`; with `YES:4` only jobs that ask for
    it share."""
    found = re.fullmatch(r"FORCE(?::([0-9]{1,5}))?", values.get("OverSubscribe", ""))
    return int(found[1] or 4) if found else 1
