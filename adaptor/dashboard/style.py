"""The style sheet that all pages share."""

from __future__ import annotations

from importlib import resources


def stylesheet() -> str:
    return (resources.files("adaptor.dashboard") / "style.css").read_text(encoding="utf-8")
