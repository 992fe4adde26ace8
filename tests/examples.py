"""With how many examples a property is tried: the profiles of hypothesis, and numbers that follow them.

`search`, the usual one, and `quick` try other examples in each run. `ci` tries the same ones every time, so
that a change is judged by what it changes. `campaign` is for the tests marked `fuzz`: together they try a
million examples; with $EXAMPLES, that many each.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

_USUAL = 100
_CAMPAIGN = int(os.environ.get("EXAMPLES", "17000"))


def register_profiles() -> None:
    """Load `ci` where $CI is set, else `search`; `pytest --hypothesis-profile=NAME` loads another."""
    # Nothing depends on time: the machine may be busy.
    timeless: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("search", max_examples=_USUAL, **timeless)
    settings.register_profile("quick", max_examples=_USUAL // 5, **timeless)
    settings.register_profile("ci", max_examples=_USUAL, derandomize=True, **timeless)
    settings.register_profile("campaign", max_examples=_CAMPAIGN, **timeless)
    settings.load_profile("ci" if "CI" in os.environ else "search")


def examples(count: int, **others: Any) -> settings:
    """Settings with `count` examples in the usual profile, and as many times fewer as another has fewer."""
    return settings(max_examples=max(1, count * settings().max_examples // _USUAL), **others)
