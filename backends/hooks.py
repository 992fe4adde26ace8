"""Scripts by which a scheduler takes donated nodes back, and what an administrator does with them."""

from __future__ import annotations

import math

import msgspec

from adaptor.config.donation import DonationConfig


class Script(msgspec.Struct, frozen=True):
    """One file."""

    name: str
    text: str
    mode: int = 0o755


class Hooks(msgspec.Struct, frozen=True):
    """What a site's scheduler needs."""

    scripts: tuple[Script, ...]
    instructions: tuple[str, ...]
    """For the administrator, line by line; `{folder}` stands for where the scripts lie."""
    folder: str
    """Where they usually lie."""


class Wanted(msgspec.Struct, frozen=True):
    """What all hooks are made from."""

    site: str
    python: str
    """The interpreter on the nodes, absolute."""
    user: int
    """Who uses the donated nodes, by number."""
    donation: DonationConfig

    @property
    def options(self) -> list[str]:
        """Of `python -m adaptor.node_agent.reclaim`, for prolog and epilog."""
        donation = self.donation
        return [
            f"--timeout={donation.reclaim_timeout:g}",
            f"--runtime={donation.runtime_directory}",
            f"--user={self.user}",
        ]

    @property
    def bound(self) -> int:
        """Seconds after which a hook is given up: the reclaim gives up before."""
        return math.ceil(float(self.donation.reclaim_timeout)) + 1
