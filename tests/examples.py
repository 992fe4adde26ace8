"""With how many examples a property is tried: the profiles of hypothesis, and numbers that follow them.

`usual`, which holds unless another is named, and `quick` try the same examples in each run, so that a change
is judged by what it changes. `search`, each night by `make search`, tries other ones in each run, and more of
them. `campaign` is for the tests marked `fuzz`: together they try a million examples; with $EXAMPLES, that
many each.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

_SEARCH = 100
_CAMPAIGN = int(os.environ.get("EXAMPLES", "17000"))


def register_profiles() -> None:
    """Load `usual`; `pytest --hypothesis-profile=NAME` loads another."""
    # Nothing that depends on how long an example takes: the machine may be busy.
    patient: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("usual", max_examples=_SEARCH // 4, derandomize=True, **patient)
    settings.register_profile("quick", max_examples=_SEARCH // 5, derandomize=True, **patient)
    settings.register_profile("search", max_examples=_SEARCH, print_blob=True, **patient)
    settings.register_profile("campaign", max_examples=_CAMPAIGN, print_blob=True, **patient)
    settings.load_profile("usual")


def examples(count: int, **others: Any) -> settings:
    """Settings with `count` examples in `search`, and as many times fewer as another profile has fewer."""
    return settings(max_examples=max(1, count * settings().max_examples // _SEARCH), **others)
