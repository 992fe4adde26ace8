"""The heuristics by the name that a site's configuration gives them."""

from __future__ import annotations

from adaptor.crafting.adaptive import adaptive
from adaptor.crafting.situation import Heuristic
from adaptor.crafting.static import static

HEURISTICS: dict[str, Heuristic] = {"static": static, "adaptive": adaptive}
