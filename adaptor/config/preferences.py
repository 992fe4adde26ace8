"""The part of the configuration that says how boldly hosts are bought for what a user prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from adaptor.config.ranges import Share
from adaptor.config.yaml_lines import Fail

if TYPE_CHECKING:
    from adaptor.budget.provisioning.presets import Preset

PresetName = Literal[
    "frugal", "balanced", "fast", "conservative", "aggressive", "conservative-2008", "aggressive-2008"
]


_CHANGED = ("creation_ratio", "increase_ratio", "willing_to_pay")
"""Keys that change what a preset says of the same name."""


class PreferenceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None: as the preset has it."""

    preset: PresetName | None = None
    """None: the one that the preference has without a configuration."""
    creation_ratio: Share | None = None
    increase_ratio: Share | None = None
    willing_to_pay: Annotated[float, msgspec.Meta(ge=1, le=1000)] | None = None


class PreferencesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cheap: PreferenceConfig = PreferenceConfig()
    balanced: PreferenceConfig = PreferenceConfig()
    fast: PreferenceConfig = PreferenceConfig()


def check_preferences(config: PreferencesConfig, fail: Fail) -> None:
    """Check that nothing is set that the preset does not look at."""
    for word, preset in presets_of(config).items():
        if preset.certainty is None:
            continue
        chosen: PreferenceConfig = getattr(config, word)
        for key in _CHANGED:
            if getattr(chosen, key) is not None:
                fail(
                    f"$.preferences.{word}.{key}",
                    f"the preset {preset.name} has none: it buys what will be charged anyway; "
                    "choose another one by `preset`, such as conservative",
                )


def presets_of(config: PreferencesConfig) -> dict[str, Preset]:
    """By what users prefer: how boldly hosts are bought."""
    from adaptor.budget.provisioning.presets import PREFERENCES, PRESETS

    found = {}
    for word, usual in PREFERENCES.items():
        chosen: PreferenceConfig = getattr(config, word)
        changes = {key: value for key in _CHANGED if (value := getattr(chosen, key)) is not None}
        found[word] = msgspec.structs.replace(PRESETS[chosen.preset] if chosen.preset else usual, **changes)
    return found
