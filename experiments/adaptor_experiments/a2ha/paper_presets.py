"""The presets of both papers, with the rules of Silva et al. 2008 where they differ from those of 2011."""

from __future__ import annotations

from typing import Literal

from adaptor.budget.provisioning import a2ha
from adaptor.budget.provisioning.a2ha import Situation
from adaptor.budget.provisioning.presets import AGGRESSIVE, CONSERVATIVE, Preset


class PaperPreset(Preset, frozen=True, kw_only=True):
    """A preset as a paper prints it."""

    published: Literal[2008, 2011] = 2011
    """Whose rules hold where the papers differ. 2008: int(n·r)+1 hosts, even where n is 0 (Fig. 3a, lines
    12 to 17), the periodic step keeps the ratio (Fig. 3b), and every host ends at its unit (§4)."""
    beside_hint: bool = False
    """§3.6 of 2011 bounds the hosts by half the tasks. Its Table 2 (154 and 179 hosts for 256 tasks) goes
    beyond that by half of the hosts that were hinted at: half of the tasks that those leave counts."""

    def part(self, missing: int, ratio: float) -> int:
        """Hosts to buy of those that seem necessary."""
        if self.published == 2008 and ratio < 1:
            return int(missing * ratio) + 1
        return super().part(missing, ratio)


class HintedSituation(Situation, frozen=True, kw_only=True):
    """A situation with the hosts that were bought by a hint and do not count in the bound of §3.6."""

    hinted: int = 0

    @property
    def most(self) -> int:
        """Hosts: the hinted ones, and half of the tasks that they leave."""
        return max(1, (self.tasks + self.hinted) // 2)


def by_2008(preset: Preset) -> bool:
    """Whether the rules of 2008 hold where they differ."""
    return isinstance(preset, PaperPreset) and preset.published == 2008


def goes_on(seen: Situation, preset: Preset, ran: float) -> bool:
    """As `a2ha.goes_on`; by the rules of 2008 no host goes on, except for a task that has no time on any."""
    if not by_2008(preset):
        return a2ha.goes_on(seen, preset, ran)
    alone = not any(host.count and host.time_left(seen.now) for host in seen.hosts)
    return alone or ran >= seen.terms.usable


def _of_2008(preset: Preset) -> PaperPreset:
    return PaperPreset(
        name=f"{preset.name}-2008",
        creation_ratio=preset.creation_ratio,
        increase_ratio=preset.increase_ratio,
        published=2008,
    )


CONSERVATIVE_2008, AGGRESSIVE_2008 = _of_2008(CONSERVATIVE), _of_2008(AGGRESSIVE)
HALF_FILLED = PaperPreset(
    name="conservative, half filled", creation_ratio=0.5, increase_ratio=0.5, beyond_half="fill"
)
AS_THE_TABLE = PaperPreset(
    name="conservative, as the table",
    creation_ratio=0.5,
    increase_ratio=0.5,
    beyond_half="fill",
    beside_hint=True,
)
