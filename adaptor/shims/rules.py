"""Rules by which jobs are small enough for a bag. Pure.

All others go to the scheduler as they are, with one line that says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.bagfile.scripts.getopt import GivenOption, directives
from adaptor.bagfile.scripts.script import SHIM_OFF
from adaptor.bagfile.scripts.values import slurm_time
from adaptor.shims.jobs import Named, named
from adaptor.units import format_duration

USUAL_TIME = 3600.0  # seconds


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of `adaptor shims`."""

    max_time: float = USUAL_TIME  # seconds that a small job may ask for
    default_time: float | None = None  # seconds of a job that asks for none; None: it is not small
    always: bool = False  # whether small jobs that the scheduler would start now become tasks, too
    config: str = ""  # the configuration of a daemon that has to be started; empty: the usual place


OF_SHIM = frozenset({"dependency", "parsable", "quiet", "wait", "wrap"})
"""Options that the shim follows by itself, and the reader of scripts does not see."""
_CHANGED = frozenset({"begin", "cpu-freq", "deadline", "hold", "immediate", "test-only"})
"""Options that a bag would follow in another way."""
_NO_MATTER = frozenset({"SBATCH_DEBUG", "SBATCH_EXPORT_ALL", "SBATCH_NO_REQUEUE", "SBATCH_REQUEUE"})


class TooLarge(Exception):
    """The job is one for the scheduler; the text says why."""


def time_limit(given: Sequence[GivenOption], rules: Rules) -> float:
    """Seconds that a small job has. Raises TooLarge."""
    texts = [each.value for each in given if each.name == "time"]
    try:
        seconds = slurm_time(texts[-1]) if texts else rules.default_time
    except ValueError as error:
        raise TooLarge(f"--time: {error}") from None
    if seconds is None:
        raise TooLarge("--time says no limit" if texts else "no --time says how small it is")
    if not 0 < seconds <= rules.max_time:
        raise TooLarge(
            f"--time is {format_duration(seconds)}, small jobs have up to {format_duration(rules.max_time)}"
        )
    return seconds


def check(given: Sequence[GivenOption], text: str, environment: Mapping[str, str]) -> None:
    """Raises TooLarge: a line, an option or a variable is for the scheduler alone."""
    if any(rest.strip() == SHIM_OFF for _, rest in directives(text, "#ADAPTOR")):
        raise TooLarge(f"the script says #ADAPTOR {SHIM_OFF}")
    for mark in ("#PBS", "#BSUB"):
        if directives(text, mark):
            raise TooLarge(f"the script has {mark} lines, which sbatch reads")
    for each in given:
        if each.name in _CHANGED and (each.name, each.value) != ("begin", "now"):
            raise TooLarge(f"{each.shown}: a bag does not do this")
    for name in environment:
        if name.startswith("SBATCH_") and name not in _NO_MATTER:
            raise TooLarge(f"{name} is set")


class Dependencies(msgspec.Struct, frozen=True):
    """The jobs that have to end first: ours, and with them perhaps some of the scheduler."""

    ok: list[Named] = []
    any: list[Named] = []
    singleton: bool = False
    ok_there: list[str] = []
    any_there: list[str] = []


class DependencyError(Exception):
    """A dependency that cannot be followed; the text says why."""


def dependencies(given: Sequence[GivenOption]) -> Dependencies:
    """Dependencies of a job, by its last `--dependency`.

    Raises:
        TooLarge: the job waits for jobs of the scheduler alone.
        DependencyError: the job waits for ours in a way that bags do not have.
    """
    texts = [each.value for each in given if each.name == "dependency"]
    found: dict[str, list[Named]] = {"afterok": [], "afterany": []}
    there: dict[str, list[str]] = {"afterok": [], "afterany": []}
    singleton, others = False, False
    for part in filter(None, texts[-1].replace("?", ",?,").split(",") if texts else ()):
        kind, *words = part.split(":")
        jobs = {word: named(word.partition("+")[0]) for word in words}
        ours = [job for job in jobs.values() if job is not None and job.ours]
        singleton = singleton or kind == "singleton"
        if ours and (kind not in found or "?" in texts[-1]):
            raise DependencyError(f"{part}: tasks wait by afterok and afterany, for all that are named")
        if kind in found:
            found[kind] += ours
            there[kind] += [word for word, job in jobs.items() if job is None or not job.ours]
        elif kind != "singleton" and part != "?":
            others = True
    known = bool(found["afterok"] or found["afterany"])
    if others and known:
        raise DependencyError(f"{texts[-1]}: tasks wait by afterok and afterany")
    if others or (any(there.values()) and not known):
        raise TooLarge(f"it waits for jobs of the scheduler: {texts[-1]}")
    return Dependencies(found["afterok"], found["afterany"], singleton, there["afterok"], there["afterany"])
