"""The part of the configuration that says how boldly hosts are bought for what a user prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from adaptor.config.ranges import Share
from adaptor.config.yaml_lines import Fail

if TYPE_CHECKING:
    from adaptor.budget.provisioning.presets import Preset

PresetName = Literal["frugal", "balanced", "fast", "conservative", "aggressive"]
_CHANGED = ("creation_ratio", "increase_ratio", "willing_to_pay")
"""Keys that change what a preset says of the same name."""


class PreferenceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How boldly hosts are bought."""

    preset: PresetName | None = None
    """None: the one that the preference has without a configuration."""
    creation_ratio: Share | None = None
    """Of the hosts that seem necessary, the share that is bought (A²HA §3.3); None: the preset's."""
    increase_ratio: Share | None = None
    """By how much of its distance to 1 that share grows with each finished task; None: the preset's."""
    willing_to_pay: Annotated[float, msgspec.Meta(ge=1, le=1000)] | None = None
    """The most that is paid, as a multiple of the least cost; None: the preset's."""


class PreferencesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `--prefer cheap`, `balanced` and `fast` mean."""

    cheap: PreferenceConfig = PreferenceConfig()
    """What `--prefer cheap` means."""
    balanced: PreferenceConfig = PreferenceConfig()
    """What `--prefer balanced` means."""
    fast: PreferenceConfig = PreferenceConfig()
    """What `--prefer fast` means."""


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
