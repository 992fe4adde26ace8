"""Which sites of the configuration are what a script asks for by `--partition`, `--account` and the like."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.bagfile.scripts.asked import NOTIFY, SiteWish, refuse
from adaptor.bagfile.scripts.getopt import OptionError
from adaptor.batch_script import Dialect
from adaptor.config.loading import config_path, load_config
from adaptor.config.schema import SiteConfig
from adaptor.errors import BagFileError


def usual_dialect(path: str | None, chosen: Sequence[str]) -> Dialect:
    """Of a script without lines of sbatch or qsub: that of the sites, as far as they are of one kind.

    Args:
        path: of the configuration; None: the usual place.
        chosen: sites that the user has named; empty: any may run it.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    sites = load_config(config_path(path)).sites
    kinds = {site.backend for name, site in sites.items() if not chosen or name in chosen}
    return "pbs" if kinds == {"pbs"} else "gridengine" if kinds == {"gridengine"} else "slurm"


def check_wishes(
    wishes: Sequence[SiteWish], source: str, path: str | None, *, chosen: Sequence[str], told: bool
) -> tuple[str, ...]:
    """The sites that fulfil all wishes; empty: any does.

    Args:
        source: the script, for messages.
        path: of the configuration; None: the usual place.
        chosen: sites that the user has named; then no other is looked for.
        told: whether the bag tells somebody of its end.

    Raises:
        BagFileError: there is none; the message names the line and the way out.
        ConfigError: the configuration cannot be read.
    """
    if not wishes:
        return tuple(chosen)
    config = load_config(config_path(path))
    left = list(config.sites)
    try:
        for wish in wishes:
            if wish.key == NOTIFY:
                if not (told or config.notify.default):
                    raise refuse(wish.given, "name who is told by --notify (docs/bags.md#messages)")
            elif not chosen:
                found = [name for name in left if _fulfils(config.sites[name], wish)]
                if not found:
                    raise _nowhere(wish, config.sites, left)
                left = found
    except OptionError as error:
        raise BagFileError(f"{source}:{error.line}: {error}") from None
    return tuple(chosen or (left if len(left) < len(config.sites) else ()))


def _fulfils(site: SiteConfig, wish: SiteWish) -> bool:
    if not wish.key:
        return False
    is_there = getattr(site, wish.key)
    wanted = wish.given.value.split(",") if wish.key == "partition" else [wish.given.value]
    return is_there in [each.partition("@")[0] if wish.key == "partition" else each for each in wanted]


def _nowhere(wish: SiteWish, sites: dict[str, SiteConfig], left: Sequence[str]) -> OptionError:
    if not wish.key:
        return refuse(wish.given, "a matter of a site's configuration; name a site by --site")
    told = ", ".join(f"{name} has {getattr(sites[name], wish.key) or 'none'}" for name in left)
    return refuse(
        wish.given,
        f"no site of the configuration has this `{wish.key}` ({told}); add one, or choose by --site",
    )
