"""Which sites of the configuration are what a script asks for by `--partition`, `--account` and the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adaptor.bagfile.scripts.asked import NOTIFY, ScriptOptions, SiteWish, refuse, warn
from adaptor.bagfile.scripts.getopt import OptionError
from adaptor.batch_script import Dialect
from adaptor.config.schema import SiteConfig, sites_of


def usual_dialect(sites: Mapping[str, SiteConfig], chosen: Sequence[str]) -> Dialect:
    """Of a script without lines of any scheduler: that of the sites, as far as they are of one kind.

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
            warn(asked, wish.given, _instead(sites[left[0]], left[0], wish))
        else:
            asked.obstacles.append(_which(wish, sites, left))
    if chosen:
        return tuple(chosen)
    return tuple(left) if len(left) < len(sites) else ()


def _fulfils(site: SiteConfig, wish: SiteWish) -> bool:
    if not wish.key:
        return False
    there = {getattr(alone, wish.key) for alone in sites_of(site).values()}
    wanted = wish.given.value.split(",") if wish.key == "partition" else [wish.given.value]
    return not there.isdisjoint(
        each.partition("@")[0] if wish.key == "partition" else each for each in wanted
    )


def _value(site: SiteConfig, key: str) -> str:
    found = dict.fromkeys(filter(None, (getattr(alone, key) for alone in sites_of(site).values())))
    return ", ".join(found) or "none"


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
