"""Answers of commands, as texts."""

from __future__ import annotations

from backends.commands import CommandAnswer


def answer_of(status: int, output: str, errors: str) -> CommandAnswer:
    return CommandAnswer(status, output.encode(), errors)
