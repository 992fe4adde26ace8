"""What Slurm printed that this backend does not know: it says so, and counts carefully. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from adaptor.reports import JobState
from backends.slurm.nodes import is_known
from backends.slurm.placing.exclusivity import KNOWN
from backends.slurm.questions import MOST_DISPUTED, Reading
from backends.slurm.rows import Partition
from backends.slurm.states import job_state

OLDEST, NEWEST = "22.05", "26.05"
"""The releases of which answers are recorded in the tests; 24.11 is the third."""


def unknown_answers(settings: Mapping[str, str], seen: Reading, partitions: Iterable[Partition]) -> list[str]:
    """One sentence for each kind of answer, with its consequence."""
    release = unknown_release(settings)
    return [*([release] if release else []), *_states(seen), *_exclusivity(seen, partitions), *_records(seen)]


def unknown_release(settings: Mapping[str, str]) -> str:
    """One sentence where this Slurm is older or newer than all that were tried; else empty."""
    version = settings.get("SLURM_VERSION", "")
    release = ".".join(version.split(".")[:2])
    if not release or OLDEST <= release <= NEWEST:
        return ""
    side, last = ("older", OLDEST) if release < OLDEST else ("newer", NEWEST)
    return (
        f"Slurm {version} is {side} than {last}, the last release tried: run `adaptor site check --live`, "
        "and compare `adaptor site slots` with sinfo"
    )


def _states(seen: Reading) -> Iterator[str]:
    for state in sorted({row.state for row in seen.jobs if job_state(row.state) is JobState.UNKNOWN}):
        yield (
            f"unknown job state {state[:40]!r} (squeue): what such jobs hold counts as held without an end, "
            "and what they wait for does not count"
        )
    for state in sorted({row.state for row in seen.nodes if not is_known(row)}):
        yield f"unknown node state {state[:40]!r} (sinfo): such nodes count as out of service"


def _exclusivity(seen: Reading, partitions: Iterable[Partition]) -> Iterator[str]:
    for word in sorted({detail.exclusive for detail in seen.job_details.found.values()} - KNOWN):
        yield f"unknown exclusivity {word[:40]!r} (scontrol show job): such jobs count as holding whole nodes"
    for word in sorted({partition.exclusive for partition in partitions} - KNOWN):
        yield (
            f"unknown exclusivity {word[:40]!r} (scontrol show partition): nodes of such partitions count as "
            "not shared with jobs of others"
        )


def _records(seen: Reading) -> Iterator[str]:
    if seen.job_details.unread:
        yield (
            "unknown form of records (scontrol show job): such jobs count as having the same number of "
            "processors on each of their nodes, and their memory and GPUs as held without an end"
        )
    if len(seen.job_details.disputed) > MOST_DISPUTED:
        yield (
            f"more than {MOST_DISPUTED} jobs seem to have several records (scontrol show job): the name, "
            "comment or command of a job imitates them; the memory and GPUs of these jobs count as held "
            "without an end"
        )
