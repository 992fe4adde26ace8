"""Small pieces of the sentences in which decisions say why."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 task`, `3 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
