"""What users prefer, as the configuration says."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.budget.provisioning.presets import AGGRESSIVE, PREFERENCES
from adaptor.config.loading import load_config
from adaptor.config.preferences import presets_of
from adaptor.config.schema import Config
from adaptor.errors import ConfigError

SITE = "sites:\n  here: {backend: local}\n"


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "site.yaml"
    path.write_text(SITE + text)
    return load_config(path)


def test_without_a_word_they_are_the_usual_ones(tmp_path: Path) -> None:
    assert presets_of(load(tmp_path, "").preferences) == PREFERENCES


def test_a_preset_and_its_ratios_are_chosen_by_preference(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "preferences:\n"
        "  balanced: {creation_ratio: 0.4}\n"
        "  fast: {preset: aggressive, increase_ratio: 1, willing_to_pay: 2}\n",
    )
    found = presets_of(config.preferences)
    assert found["cheap"] == PREFERENCES["cheap"]
    assert (found["balanced"].creation_ratio, found["balanced"].increase_ratio) == (0.4, 0.5)
    fast = found["fast"]
    assert (fast.name, fast.beyond_half) == (AGGRESSIVE.name, AGGRESSIVE.beyond_half)
    assert (fast.creation_ratio, fast.increase_ratio, fast.willing_to_pay) == (0.75, 1.0, 2.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  balanced: {creation_ratio: 1.5}\n", r"balanced.creation_ratio.*from 0 to 1"),
        ("  fast: {willing_to_pay: 0.5}\n", r"fast.willing_to_pay: must be from 1"),
        ("  fast: {preset: bold}\n", r"fast.preset"),
        (
            "  cheap: {creation_ratio: 0.5}\n",
            r"site.yaml:4: preferences.cheap.creation_ratio: .* frugal has none",
        ),
        ("  dear: {}\n", r"preferences.*dear"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, "preferences:\n" + text)
