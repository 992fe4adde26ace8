"""What a script asks for, in the words of a bag."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from adaptor.bagfile.scripts.getopt import GivenOption, OptionError
from adaptor.bagfile.scripts.values import ArraySpec

NOTIFY = "notify"
"""Key of the wish for messages by mail."""


class SiteWish(msgspec.Struct, frozen=True):
    """Something that a site of the configuration says for all its pilots, such as a partition."""

    key: str
    """Of the site's configuration; `NOTIFY`; empty: no site says it for itself."""
    given: GivenOption


class ScriptOptions(msgspec.Struct, kw_only=True):
    """Filled option by option."""

    options: dict[str, Any] = {}
    """By field of `BagSpec`."""
    written: dict[str, str] = {}
    """Options of a bag as people write them, by key."""
    writers: dict[str, GivenOption] = {}
    """By the same keys: which option of the script it is."""
    variables: dict[str, str] = {}
    """Of all elements."""
    wishes: list[SiteWish] = []
    array: ArraySpec | None = None
    array_variable: str = ""
    """The variable with the index; empty: the usual one."""
    processes: int | None = None
    """Processes of a job; None: not said."""
    cpus: int | None = None
    """Processors of each process; None: not said."""
    cpus_per_gpu: int | None = None
    memory_per_cpu: int | None = None
    """Bytes."""
    memory_per_gpu: int | None = None
    """Bytes."""
    output: str = ""
    """As the script has it; empty: the usual name."""
    error: str = ""
    join: str = ""
    """PBS: `oe` if standard error goes where standard output goes, `eo` the other way round."""
    mpiprocs: int | None = None
    """PBS: how often its node stands in $PBS_NODEFILE."""
    append: bool = False
    cwd: str = ""
    export: str = "ALL"
    """As sbatch's `--export`."""


def write(asked: ScriptOptions, key: str, text: str, given: GivenOption) -> None:
    """Note an option of the bag that an option of the script stands for."""
    asked.written[key], asked.writers[key] = text, given


def wish(asked: ScriptOptions, key: str, given: GivenOption) -> None:
    """Note what a site says for all its pilots; a later option for the same key wins."""
    asked.wishes = [other for other in asked.wishes if other.key != key] + [SiteWish(key, given)]


def qsub_mail(asked: ScriptOptions, given: GivenOption) -> None:
    """`-m` of every qsub."""
    if given.value != "n":
        asked.wishes.append(SiteWish(NOTIFY, given))


Follow = Callable[[ScriptOptions, GivenOption], None]
"""Notes what one option asks for. Raises ValueError: its value is none."""


def field(name: str, parse: Callable[[str], object] = str) -> Follow:
    """Sets a field of `ScriptOptions` to the parsed value."""
    return lambda asked, given: setattr(asked, name, parse(given.value))


def of_bag(name: str, parse: Callable[[str], object] = str) -> Follow:
    """Sets an option of the bag, by field of `BagSpec`, to the parsed value."""
    return lambda asked, given: asked.options.update({name: parse(given.value)})


def only(allowed: Collection[str], why: str) -> Follow:
    """Takes these values, which change nothing; `why` no others."""

    def checked(_asked: ScriptOptions, given: GivenOption) -> None:
        if given.value not in allowed:
            raise ValueError(why)

    return checked


def follow(
    asked: ScriptOptions, given: GivenOption, known: Mapping[str, Follow], why_not: Mapping[str, str]
) -> None:
    """Note what an option asks for.

    Args:
        known: by name, the options that can be followed.
        why_not: by name, why others cannot.

    Raises:
        OptionError: it cannot be followed, or its value is none.
    """
    if given.name not in known:
        raise refuse(given, why_not.get(given.name, "not supported"))
    try:
        known[given.name](asked, given)
    except OptionError:
        raise
    except ValueError as error:
        raise refuse(given, str(error)) from None


def refuse(given: GivenOption, why: str) -> OptionError:
    """The error for an option that cannot be followed."""
    return OptionError(given.line, f"{given.shown}: {why}; --ignore {given.name} submits it without")
