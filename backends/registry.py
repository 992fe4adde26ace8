"""Installed types of batch scheduler, by the name that sites give as their `backend`, and installed agents.

From a site's configuration and its scheduler come the rules by which requests are shaped (`site_rules`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from adaptor.config.donation import DonationConfig
from adaptor.config.policy import policy_of
from adaptor.config.registered import ELSEWHERE, backend_names, load_backend
from adaptor.config.schema import SiteConfig
from adaptor.crafting.situation import SiteRules
from adaptor.errors import AdaptorError, ConfigError
from adaptor.model import Limits
from adaptor.plugins import AGENTS, DONATION, loaded_if_there, needs
from backends.backend_type import BackendType
from backends.base import Backend, SchedulerError
from backends.machines.base import Machine
from backends.traits import Traits

GRID_ENGINE = "Grid Engine"


class MakeAgents(Protocol):
    """The object that a package registers as `agent` in the group `adaptor.donation`."""

    def __call__(
        self,
        scheduler: Backend,
        site: SiteConfig,
        donation: DonationConfig,
        folder: Path,
        python: str,
        machine: Machine,
    ) -> Backend:
        """The scheduler, with workers on the nodes that it leaves idle.

        Args:
            folder: for notes on them, which the nodes share; on a distant machine below the home directory.
            python: the interpreter on the nodes, where the package is installed for it.
            machine: where the launcher is called.
        """


def backend_type(name: str) -> BackendType:
    """The type of a scheduler. Raises ConfigError: it is not installed, cannot be loaded, or is something
    else."""
    found: object = load_backend(name)
    if not isinstance(found, BackendType):
        raise ConfigError(f"the package registers {found!r} as backend {name!r}, which is not a BackendType")
    return found


def backend_types() -> list[BackendType]:
    """All that are installed, in the order in which `adaptor site init` asks them.

    Raises ConfigError: one of them cannot be loaded.
    """
    return sorted(map(backend_type, backend_names()), key=lambda each: each.discovery_order)


def answering() -> str:
    """The title of the batch scheduler of this machine; empty: no batch scheduler answers here.

    Its type need not be installed. Raises ConfigError: a type cannot be loaded.
    """
    batch = (each for each in backend_types() if not each.on_this_machine)
    return next((each.title for each in batch if each.answers()), "") or (GRID_ENGINE if _needed() else "")


def described_here(tell: Callable[[str], object] = lambda _text: None) -> str:
    """The YAML text of a configuration for the first type that answers on this machine.

    `tell`: gets a line where this is no batch scheduler.

    Raises AdaptorError: none answers, or one needs a package that is not installed.
    """
    silent: list[str] = []
    for each in backend_types():
        try:
            text = each.describe_sites()
        except SchedulerError as error:
            silent.append(f"no {each.title} answers here ({error})")
            continue
        if text is not None:
            if each.on_this_machine:
                if message := _needed():
                    raise AdaptorError(message)
                tell(f"{' and '.join(silent)}, so a {each.title} is described")
            return text
    raise AdaptorError(f"no batch scheduler answers here: {'; '.join(silent)}")


def _needed() -> str:
    """The message about what to install, where this machine belongs to a Grid Engine; empty: nothing."""
    if "SGE_ROOT" not in os.environ or "gridengine" in backend_names():
        return ""
    return needs(f"{GRID_ENGINE}, which SGE_ROOT names here,", ELSEWHERE["gridengine"])


def agents() -> MakeAgents:
    """The installed agents. Raises ConfigError: the package is not installed, or cannot be loaded."""
    return cast(MakeAgents, loaded_if_there(DONATION, "agent", "donation by agents", AGENTS))


def site_rules(config: SiteConfig, traits: Traits, limits: Limits, pad: float) -> SiteRules:
    """Rules by which requests are shaped at a site, live or simulated.

    `traits`: those of its backend or of its type; `pad`: seconds, configured or learned.
    """
    allowed, type = policy_of(config).keys, backend_type(config.backend)
    return SiteRules(
        limits=limits,
        time_resolution=traits.time_resolution,
        slot_margin=traits.slot_margin,
        shrink_margin=traits.shrink_margin,
        ours_alone=type.ours_alone,
        pad=pad,
        granularity=(config.processors_per_node or 1) if config.whole_nodes else 1,
        max_submissions=_least(config.max_submissions or type.max_submissions, allowed.max_submissions),
        max_withdrawals=_least(config.max_withdrawals, allowed.max_withdrawals),
        may_withdraw=config.withdraw,
        may_reshape=config.withdraw and traits.can_reshape,
        most_in_array=traits.most_in_array,
        backfilled=traits.backfilled,
    )


def _least(*bounds: int | None) -> int | None:
    """The least of the bounds; None: none of them bounds anything."""
    return min((bound for bound in bounds if bound is not None), default=None)
