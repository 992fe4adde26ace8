"""What is shared so that no room imports another for it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("adaptor_donation_agents.reclaim", ["msgspec", "yaml", "adaptor.config"]),
        ("adaptor.config.loading", ["adaptor_donation_agents", "adaptor.daemon", "adaptor.cli", "click"]),
    ],
)
def test_a_room_does_not_import_another(module: str, absent: list[str]) -> None:
    code = f"import {module}, sys; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
