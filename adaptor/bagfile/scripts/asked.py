"""A script's options in the words of a bag, and the configured sites that it means (`--partition`, …)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from adaptor.bagfile.scripts.getopt import GivenOption, OptionError, OptionTable
from adaptor.bagfile.scripts.values import ArraySpec
from adaptor.batch_script import Dialect

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig

_AFTER = {"afterok": "after", "afterany": "after_any"}  # by the schedulers' word, the option of the bag
_BAG = re.compile(r"(\d{1,9})(?:\[\])?(?:\.adaptor)?", re.ASCII)
"""A bag's number, as `adaptor submit`, $SLURM_ARRAY_JOB_ID and $PBS_ARRAY_ID have it."""
NOTIFY = "notify"  # key of the wish for messages by mail
RUNS_AGAIN = "a task whose node was lost runs again"


class SiteWish(msgspec.Struct, frozen=True):
    """A setting that a site of the configuration has for all its pilots, such as a partition."""

    key: str
    """Key of the site's configuration; `NOTIFY`; empty: no site says it for itself."""
    given: GivenOption


class Remark(msgspec.Struct, frozen=True):
    """A warning about a line that does not stop the script."""

    line: int
    text: str
    changes: bool = False
    """True if the element finds or does something else than the line says."""


class ScriptOptions(msgspec.Struct, kw_only=True):
    """Options of a script in the words of a bag, filled option by option."""

    ignored: Callable[[str], bool] = lambda _name: False
    """True if the user ignores the option of this name."""
    obstacles: list[OptionError] = []
    """All that stops the script."""
    remarks: list[Remark] = []
    options: dict[str, Any] = {}
    """Options by field of `BagSpec`."""
    written: dict[str, str] = {}
    """Options of a bag as people write them, by key."""
    writers: dict[str, GivenOption] = {}
    """Options of the script from which these come, by the same keys."""
    lines: dict[str, int] = {}
    """Numbers of the lines that set options of the bag, by key or field."""
    variables: dict[str, str] = {}
    """Variables of all elements."""
    wishes: list[SiteWish] = []
    array: ArraySpec | None = None
    at_most: int | None = None
    """Grid Engine: how many elements may run at the same time; None: any number."""
    array_variable: str = ""
    """The variable with the index; empty: the usual one."""
    processes: int | None = None
    """Processes of a job; None: not said."""
    cpus: int | None = None
    """Processors of each process; None: not said."""
    cpus_per_gpu: int | None = None
    memory_per_cpu: int | None = None
    """Bytes."""
    gpus_each: bool = False
    """True if the GPUs are those of each process."""
    memory_per_gpu: int | None = None
    """Bytes."""
    output: str = ""
    """Output file as in the script; empty: the usual name."""
    error: str = ""
    join: str = ""
    """PBS: `oe` if standard error goes where standard output goes, `eo` the other way round."""
    mpiprocs: int | None = None
    """PBS: how often its node stands in $PBS_NODEFILE."""
    append: bool = False
    cwd: str = ""
    export: str = "ALL"
    """Variables to pass on, in the form of sbatch's `--export`."""


def write(asked: ScriptOptions, key: str, text: str, given: GivenOption) -> None:
    """Note an option of the bag that an option of the script stands for."""
    asked.written[key], asked.writers[key] = text, given


def wish(asked: ScriptOptions, key: str, given: GivenOption) -> None:
    """Note what a site says for all its pilots; a later option for the same key wins."""
    name = key or given.name
    others = [other for other in asked.wishes if (other.key or other.given.name) != name]
    asked.wishes = [*others, SiteWish(key, given)]


def depend(asked: ScriptOptions, given: GivenOption, text: str) -> None:
    """Note bags that have to end first: `afterok:7:8,afterany:9`. Raises ValueError or Unsupported."""
    ignore = "" if given.name == "dependency" else "depend"
    bags: dict[str, list[int]] = {}
    for each in filter(None, text.split(",")):
        kind, *numbers = each.split(":")
        if kind not in _AFTER:
            raise Unsupported(f"a bag waits by afterok and afterany, not by {kind}", ignore)
        if not numbers:
            raise ValueError(f"'{each}' names no bag")
        for number in numbers:
            found = _BAG.fullmatch(number)
            if found is None:
                raise Unsupported(f"'{number}' is no number of a bag", ignore)
            bags.setdefault(_AFTER[kind], []).append(int(found[1]))
    for option, ids in bags.items():
        asked.options[option] = tuple(dict.fromkeys(ids))
        shown = ", ".join(map(str, ids))
        warn(asked, given, f"the bag waits for {'bag' if len(ids) == 1 else 'bags'} {shown}, not for jobs")


def qsub_mail(asked: ScriptOptions, given: GivenOption) -> None:
    """Follow the option `-m` of every qsub."""
    if given.value != "n" and not asked.ignored("mail"):
        asked.wishes.append(SiteWish(NOTIFY, given))


Follow = Callable[[ScriptOptions, GivenOption], None]
"""Notes what one option asks for. Raises ValueError: its value is none."""


def field(name: str, parse: Callable[[str], object] = str) -> Follow:
    """Sets a field of `ScriptOptions` to the parsed value."""
    return lambda asked, given: setattr(asked, name, parse(given.value))


def of_bag(name: str, parse: Callable[[str], object] = str) -> Follow:
    """Sets an option of the bag, by field of `BagSpec`, to the parsed value."""
    return lambda asked, given: asked.options.update({name: parse(given.value)})


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """The command of a scheduler that reads a script: what becomes of its options."""

    mark: str
    """Beginning of its lines in a script."""
    table: OptionTable
    followed: Mapping[str, Follow]
    """Options that can be followed, by name."""
    of_sites: Mapping[str, str]
    """Keys of the site's configuration that say the same for all its pilots, by name of the option; empty:
    none."""
    without_effect: Collection[str]
    """Options that change nothing for an element on one node."""
    why_not: Mapping[str, str]
    """Reasons why other options stop the script, by name."""
    not_as_asked: Mapping[str, str] = {}
    """Fate of options that inform or decorate, by name."""
    append: bool = False
    """True if the files of a job are opened to append to them."""

    def read(self, given: Sequence[GivenOption], ignored: Callable[[str], bool]) -> ScriptOptions:
        """The options as a bag has them; later ones win."""
        asked = ScriptOptions(ignored=ignored, append=self.append)
        for each in given:
            if each.name in self.of_sites:
                wish(asked, self.of_sites[each.name], each)
            elif each.name in self.not_as_asked:
                warn(asked, each, self.not_as_asked[each.name])
            elif each.name not in self.without_effect:
                try:
                    if each.name not in self.followed:
                        raise Unsupported(self.why_not.get(each.name, "not supported"))
                    before = _by_option(asked)
                    self.followed[each.name](asked, each)
                    changed = (key for key, value in _by_option(asked).items() if value != before.get(key))
                    asked.lines |= dict.fromkeys(changed, each.line)
                except Unsupported as error:
                    asked.obstacles.append(refuse(each, str(error), ignore=error.ignore or each.name))
                except ValueError as error:
                    asked.obstacles.append(refuse(each, str(error)))
        return asked


def _by_option(asked: ScriptOptions) -> dict[str, object]:
    """All that options of the bag are made of, by key or field."""
    return {
        **asked.options,
        **asked.written,
        "cpus": (asked.processes, asked.cpus, asked.mpiprocs, asked.cpus_per_gpu),
        "memory": (asked.options.get("memory"), asked.memory_per_cpu, asked.memory_per_gpu),
    }


class Unsupported(ValueError):
    """A scheduler could do it, and the script may still be right without."""

    def __init__(self, why: str, ignore: str = "") -> None:
        """`ignore`: the name for `--ignore`; empty: that of the option."""
        super().__init__(why)
        self.ignore = ignore


def refuse(given: GivenOption, why: str, *, ignore: str = "", site: bool = False) -> OptionError:
    """The error for an option that stops the script; `ignore`, `site`: what lets it through."""
    return OptionError(given.line, f"{given.shown}: {why}", ignore=ignore, site=site)


def warn(asked: ScriptOptions, given: GivenOption, what: str, *, changes: bool = False) -> None:
    """Note what becomes of an option that does not stop the script."""
    asked.remarks.append(Remark(given.line, f"{given.shown}: {what}", changes))


def of_site(asked: ScriptOptions, given: GivenOption, name: str, shown: str) -> None:
    """Note a resource of nodes that no bag asks for: the configuration of a site may."""
    asked.wishes.append(
        SiteWish("", msgspec.structs.replace(given, name=name, shown=f"-{given.name} {shown}"))
    )


def usual_dialect(sites: Mapping[str, SiteConfig], chosen: Sequence[str]) -> Dialect:
    """Dialect of a script without lines of any scheduler: that of the sites, if they are of one kind.

    Args:
        chosen: sites that the user has named; empty: any may run it.
    """
    kinds = {site.backend for name, site in sites.items() if not chosen or name in chosen}
    return "pbs" if kinds == {"pbs"} else "gridengine" if kinds == {"gridengine"} else "slurm"


def sites_for(
    asked: ScriptOptions, sites: Mapping[str, SiteConfig], *, chosen: Sequence[str], told: bool
) -> tuple[str, ...]:
    """The sites that fulfil all wishes; empty: any does.

    Notes an obstacle where none of several does, and a remark where the only one does not.

    Args:
        sites: of the configuration.
        chosen: sites that the user has named; then no other is looked for.
        told: whether a message is sent at the bag's end.
    """
    left = list(sites)
    for wish in asked.wishes:
        if wish.key == NOTIFY:
            if not told:
                warn(asked, wish.given, "no message is sent; --notify sends one")
            continue
        found = [name for name in left if _fulfils(sites[name], wish)]
        if chosen or found:
            left = found or left
        elif len(left) == 1:
            warn(asked, wish.given, _instead(sites[left[0]], left[0], wish), changes=True)
        else:
            asked.obstacles.append(_which(wish, sites, left))
    if chosen:
        return tuple(chosen)
    return tuple(left) if len(left) < len(sites) else ()


def _fulfils(site: SiteConfig, wish: SiteWish) -> bool:
    if not wish.key:
        return False
    there = {*_values(site, wish.key)}
    wanted = wish.given.value.split(",") if wish.key == "partition" else [wish.given.value]
    return not there.isdisjoint(
        each.partition("@")[0] if wish.key == "partition" else each for each in wanted
    )


def _value(site: SiteConfig, key: str) -> str:
    return ", ".join(dict.fromkeys(filter(None, _values(site, key)))) or "none"


def _values(site: SiteConfig, key: str) -> list[str]:
    from adaptor.config.schema import sites_of  # loads YAML, which few scripts need

    return [getattr(alone, key) for alone in sites_of(site).values()]


def _instead(site: SiteConfig, name: str, wish: SiteWish) -> str:
    if not wish.key:
        return f"not asked for; the configuration of {name} says what its pilots ask for"
    return f"the configuration of {name} counts, which has {_value(site, wish.key)}"


def _which(wish: SiteWish, sites: Mapping[str, SiteConfig], left: Sequence[str]) -> OptionError:
    ignore = wish.given.name
    if not wish.key:
        why = "a matter of a site's configuration; name a site by --site"
        return refuse(wish.given, why, ignore=ignore, site=True)
    told = ", ".join(f"{name} has {_value(sites[name], wish.key)}" for name in left)
    why = f"no site of the configuration has this `{wish.key}` ({told}); name a site by --site"
    return refuse(wish.given, why, ignore=ignore, site=True)
