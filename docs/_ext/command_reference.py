"""The reference of all commands: the sections of `adaptor --help`, each command by sphinx-click."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click
from sphinx.application import Sphinx

from adaptor.cli.main import program

PAGE = "reference/commands"
PLACE = "<!-- commands -->"

_COMMAND = """
```{{eval-rst}}
.. click:: {place}
   :prog: adaptor {name}
   :nested: full
```
"""


def sections() -> str:
    """A heading for each section of the help, and below it its commands."""
    lines = []
    for heading, commands in program.sections.items():
        lines.append(f"## {heading}\n")
        lines += [_COMMAND.format(place=place, name=name) for name, place in commands.items()]
    return "\n".join(lines)


def description(text: str) -> Iterator[str]:
    r"""A command's help as reStructuredText: paragraphs, and what stands after a `\b` line as it is."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            yield from _as_it_is(paragraph.splitlines()[1:])
        else:
            yield from _plain(paragraph).splitlines()
        yield ""


def _as_it_is(lines: list[str]) -> Iterator[str]:
    if lines and not lines[0].startswith(" "):
        yield _plain(lines.pop(0))
        yield ""
    yield ".. code-block:: text"
    yield ""
    yield from (f"   {line}" for line in inspect.cleandoc("\n" + "\n".join(lines)).splitlines())


def _plain(text: str) -> str:
    """Words in backticks are code, and no other character is markup."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"`{part}`" if part[:1] == "`" else re.sub(r"([\\*|_])", r"\\\1", part) for part in parts)


def _fill(_app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = source[0].replace(PLACE, sections())


def _describe(_app: Sphinx, ctx: click.Context, lines: list[str]) -> None:
    lines[:] = description(ctx.command.help or "")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _fill)
    app.connect("sphinx-click-process-description", _describe)
    return {"parallel_read_safe": True}
