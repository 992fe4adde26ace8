"""The documentation's own modules are on the path, as they are for Sphinx."""

from __future__ import annotations

import sys

from tests.source_tree import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
