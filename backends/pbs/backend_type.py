"""PBS as a type of batch scheduler: OpenPBS and PBS Professional."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backends.backend_type import BatchType
from backends.pbs.margins import SLOT_MARGIN, TIME_RESOLUTION

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig


class PbsType(BatchType):
    title = "PBS"
    apart = ("-l", "place=scatter")
    can_reshape = can_follow = True
    time_resolution = TIME_RESOLUTION
    slot_margin = SLOT_MARGIN
    package = "backends.pbs"
    donation_modes = ("preemptible", "agent")
    discovery_order = 20

    def key_problems(self, site: SiteConfig) -> Iterable[tuple[str, str]]:
        from backends.pbs.constraints import key_problems

        return key_problems(site)


PBS = PbsType()
