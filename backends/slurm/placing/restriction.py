"""Nodes on which the requests of a site may run: by its keys, and the same among its `extra_args`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import msgspec

from adaptor.config.schema import SiteConfig
from backends.backend_type import WHERE_KEYS
from backends.slurm.fields import expand
from backends.slurm.placing.features import Expression, parse_features
from backends.slurm.placing.gres import GresCounts, covers, gres_counts

T = TypeVar("T")

_SHORT = {"-C": "constraint", "-x": "exclude", "-w": "nodelist", "-L": "licenses"}

_WITH_VALUE = frozenset({*WHERE_KEYS, "reservation"})

_SHAPING = frozenset(
    {
        *("--begin", "-b", "--clusters", "-M", "--contiguous"),
        *("--core-spec", "-S", "--cores-per-socket", "--cpus-per-gpu", "--cpus-per-task"),
        *("-c", "--dependency", "-d", "--exclusive", "--extra-node-info"),
        *("-B", "--gpus", "-G", "--gpus-per-node", "--gpus-per-socket"),
        *("--gpus-per-task", "--hint", "--hold", "-H", "--mem"),
        *("--mem-per-cpu", "--mem-per-gpu", "--mincpus", "--nodefile", "-F"),
        *("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-core"),
        *("--ntasks-per-gpu", "--ntasks-per-node", "--ntasks-per-socket", "--oversubscribe", "-s"),
        *("--partition", "-p", "--prefer", "--qos", "-q"),
        *("--sockets-per-node", "--spread-job", "--switches", "--thread-spec", "--threads-per-core"),
        *("--tmp", "--use-min-nodes"),
    }
)
"""Options of sbatch that change when or where a request starts; the free slots know nothing of them."""
_BETTER = {
    "--partition": "partition",
    "-p": "partition",
    "--qos": "qos",
    "-q": "qos",
    "--exclusive": "whole_nodes",
}
_LICENSE = re.compile(r"[A-Za-z0-9_.@:/-]+?(?::([0-9]{1,9}))?")


class Restriction(msgspec.Struct, frozen=True, kw_only=True):
    constraint: Expression | None = None
    excluded: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    """Nodes that may be used; None: all but those that are excluded."""
    gres: GresCounts = {}
    """Generic resources that each request gets of each of its nodes."""

    def names(self, node: str) -> bool:
        """Whether its name allows it."""
        return node not in self.excluded and (self.only is None or node in self.only)

    def like(self, features: Collection[str], gres: GresCounts) -> bool:
        """Whether a node with these is one that the requests may have."""
        return covers(gres, self.gres) and (self.constraint is None or self.constraint.fits(features))


EVERYWHERE = Restriction()


def restriction_of(site: SiteConfig) -> Restriction:
    """The restriction by the site's keys and `extra_args`. Unreadable arguments restrict nothing: sbatch
    refuses them."""
    constraint = _chosen(site, "constraint")
    only = site.nodelist
    return Restriction(
        constraint=_readable(parse_features, constraint) if constraint else None,
        excluded=frozenset(_readable(expand, _chosen(site, "exclude") or "") or ()),
        only=frozenset(expand(only)) if only else None,
        gres=_readable(gres_counts, _chosen(site, "gres") or "") or {},
    )


def licenses_of(site: SiteConfig) -> dict[str, int]:
    """Number of licences that each request of the site takes, by name."""
    return _readable(parse_licenses, _chosen(site, "licenses") or "") or {}


def parse_licenses(text: str) -> dict[str, int]:
    """`matlab:2,fluent` as sbatch takes it.

    Raises:
        ValueError: it is none.
    """
    found: dict[str, int] = {}
    for item in filter(None, text.replace(";", ",").split(",")):
        match = _LICENSE.fullmatch(item)
        if match is None:
            raise ValueError(f"{item[:40]!r} is not a licence such as 'matlab' or 'matlab:2'")
        name = item[: match.start(1) - 1] if match[1] else item
        found[name] = found.get(name, 0) + int(match[1] or 1)
    return found


def key_problems(site: SiteConfig) -> Iterator[tuple[str, str]]:
    """Keys that cannot be read, and why."""
    for key, parse in (
        ("constraint", parse_features),
        ("exclude", expand),
        ("nodelist", expand),
        ("gres", gres_counts),
        ("licenses", parse_licenses),
    ):
        text = getattr(site, key)
        if text is None:
            continue
        try:
            if not parse(text):
                yield key, f"{text!r} names nothing"
        except ValueError as error:
            yield key, str(error)
    if site.exclude is not None and site.nodelist is not None:
        yield "exclude", "give either nodelist or exclude: nodelist excludes all other nodes"


def odd_arguments(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options among `extra_args` that the free slots do not know, each with the way out."""
    for name, _ in options(arguments):
        if name == "nodelist":
            yield (
                "--nodelist",
                "Slurm gives each request parts of all these nodes, and others too; write the "
                "key `nodelist` of the site, which keeps its requests to these nodes",
            )
        elif name in _ONE_THREAD and uses_one_thread(arguments):
            continue  # a processor is then a core
        elif name in _SHAPING:
            better = f"; write the key `{_BETTER[name]}` of the site" if name in _BETTER else ""
            yield name, f"free slots do not count it, so a request may wait where a slot is shown{better}"


_ONE_THREAD = {"--hint": ("nomultithread",), "--threads-per-core": ("1",)}


def uses_one_thread(arguments: Sequence[str]) -> bool:
    """Whether each request has the cores of its nodes without their further threads."""
    values = dict(_spelled(arguments, _ONE_THREAD))
    return any(value in _ONE_THREAD[name] for name, value in values.items())


def _spelled(arguments: Sequence[str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Options of these names with their values, behind a sign or as the next word."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name in names:
            yield name, value if equals else following


def options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options and values; those of _WITH_VALUE without dashes, whichever way they are written."""
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            plain = name.removeprefix("--")
            if plain in _WITH_VALUE:
                yield plain, value if equals else next(words, "")
            else:
                yield name, value
        elif word[:2] in _SHORT:
            yield _SHORT[word[:2]], word[2:] or next(words, "")
        elif word.startswith("-"):
            yield word[:2], word[2:]


def _chosen(site: SiteConfig, key: str) -> str | None:
    """The value of an option as sbatch sees it: the last one counts, and `extra_args` stand after the
    keys."""
    named = [value for name, value in options(site.extra_args) if name == key]
    own: str | None = getattr(site, key)
    return named[-1] if named else own


def _readable(parse: Callable[[str], T], text: str) -> T | None:
    """The parsed text; None: it cannot be read."""
    try:
        return parse(text)
    except ValueError:
        return None
