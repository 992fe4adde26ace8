"""The machine of a site, and what is started there."""

from __future__ import annotations

import sys

from adaptor.config.schema import SiteConfig
from backends.machines.base import Machine
from backends.machines.distant import Distant
from backends.machines.here import Here


def make_machine(config: SiteConfig) -> Machine:
    """The machine where a site's commands run and its pilots' files lie. Opens no connection yet."""
    if config.ssh is None:
        return Here(config.environment)
    return Distant(config.ssh, config.environment, float(config.command_timeout), python_of(config))


def python_of(config: SiteConfig) -> str:
    """The interpreter for what runs at the site; this package is installed for it."""
    return config.python or (sys.executable if config.ssh is None else "python3")
