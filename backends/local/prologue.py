"""A site's prologue around the command of a worker."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path

from adaptor.private_files import write_private
from backends.base import PilotOrder

_TEMPLATE = Path(__file__).with_name("pilot.template")


def with_prologue(
    order: PilotOrder, prologue: str, write: Callable[[Path, bytes], None] = write_private
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the environment of an order's worker; writes the script that it may need.

    Args:
        write: how a 0600 file is written where the pilot's folder lies.

    Raises:
        OSError: the pilot's folder cannot be written; or what `write` raises.
    """
    if not prologue.strip():
        return order.worker, order.environment
    script = order.directory / "pilot.sh"
    before = order.directory / "env.before"
    text = string.Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(prologue=prologue.rstrip("\n"))
    write(script, text.encode())
    write(before, b"")  # so that it is ours alone when the script writes to it
    return ("/bin/sh", str(script), *order.worker), {**order.environment, "ADAPTOR_ENV_BEFORE": str(before)}
