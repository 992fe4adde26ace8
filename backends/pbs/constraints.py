"""Where a site's requests may run: its own words for nodes, as what each chunk of a request asks for. Pure.

PBS gives a chunk a node that has all of several values. It knows no "one of these" and no "none of these".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from adaptor.config.schema import SiteConfig
from adaptor.plugins import PBS_DIALECTS, TORQUE, installed, needs
from backends.base import SchedulerError

_KEYS = ("constraint", "nodelist", "exclude")
HOST = "host"
"""The resource that names a machine."""
_WORD = re.compile(r"[A-Za-z0-9_][\w.-]*")
_PAIR = re.compile(r"([A-Za-z_]\w*)=([\w./-]+)")
_OWN_GROUP = "have them marked by a resource (or a queue) of their own and name that"


def openpbs_traits(
    constraint: str | None, nodelist: str | None = None, exclude: str | None = None
) -> dict[str, str]:
    """Resources and their values, of `gpu_type=a100&bigmem` and a node.

    Raises:
        SchedulerError: OpenPBS cannot be asked for that.
    """
    found = _host(nodelist)
    for word in _words(constraint):
        pair = _PAIR.fullmatch(word)
        found[pair[1] if pair else _plain("constraint", word)] = pair[2] if pair else "True"
    _refuse_exclude(exclude)
    return found


def torque_traits(
    constraint: str | None, nodelist: str | None = None, exclude: str | None = None
) -> dict[str, str]:
    """A property of the nodes, of `fast`, and a node.

    Raises:
        SchedulerError: Torque cannot be asked for that.
    """
    found = _host(nodelist)
    words = [_plain("constraint", word) for word in _words(constraint)]
    if len(words) > 1:
        raise SchedulerError(f"constraint: {constraint}: only one property can be asked for on Torque")
    if words:
        found["neednodes"] = words[0]
    _refuse_exclude(exclude)
    return found


def site_traits(dialect: str, site: SiteConfig) -> dict[str, str]:
    """What each chunk of a site's requests asks of its node.

    Raises:
        SchedulerError: this dialect of PBS cannot be asked for that.
    """
    traits = torque_traits if dialect == "Torque" else openpbs_traits
    return traits(site.constraint, site.nodelist, site.exclude)


def key_problems(site: SiteConfig) -> Iterator[tuple[str, str]]:
    """Each key that no dialect of PBS can be asked for, and why; `dialect` where its package is missing."""
    if site.dialect == "torque" and "torque" not in installed(PBS_DIALECTS):
        yield "dialect", needs("torque", TORQUE)
    for key in _KEYS:
        try:
            openpbs_traits(**{name: getattr(site, name) if name == key else None for name in _KEYS})
        except SchedulerError as problem:
            yield key, str(problem).removeprefix(f"{key}: ")
    for key in ("gres", "licenses"):
        if getattr(site, key) is not None:
            yield key, "is not known to PBS; write what qsub takes as extra_args"


def in_words(traits: Mapping[str, str]) -> str:
    """For people: `gpu_type=a100, host=n3`."""
    return ", ".join(f"{name}={value}" for name, value in sorted(traits.items()))


def _words(constraint: str | None) -> list[str]:
    return [word.strip() for word in re.split("[&,]", constraint)] if constraint else []


def _host(nodelist: str | None) -> dict[str, str]:
    if not nodelist:
        return {}
    if not _WORD.fullmatch(nodelist):
        raise SchedulerError(
            f"nodelist: {nodelist}: PBS can be asked for one node only, or for all; "
            f"{_OWN_GROUP} as `constraint`"
        )
    return {HOST: nodelist}


def _plain(key: str, word: str) -> str:
    if not _WORD.fullmatch(word):
        raise SchedulerError(
            f"{key}: {word or 'a word is missing'}: PBS can be asked for nodes that have all of several "
            f"values (`name=value&name`), nothing else; {_OWN_GROUP}"
        )
    return word


def _refuse_exclude(exclude: str | None) -> None:
    if exclude:
        raise SchedulerError(
            f"exclude: {exclude}: PBS cannot be asked to leave nodes out; {_OWN_GROUP} as `constraint`"
        )
