"""Whether a file of the configuration is still the one that was loaded."""

from __future__ import annotations

import hashlib
from pathlib import Path

from adaptor.config.yaml_lines import MOST_BYTES


def digest_of(path: Path) -> str:
    """Of the file's content; empty: it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(MOST_BYTES + 1)).hexdigest()[:32]
    except OSError:
        return ""
