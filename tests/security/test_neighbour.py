"""Another Unix user of the same machine tries what he can: every probe of SECURITY.md's table, live."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security import file_probes, output_probes, port_probes, process_probes
from tests.security.probe import PROBES
from tests.security.world import World
from tests.source_tree import ROOT

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user as well")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="neighbours-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        root.chmod(0o755)  # the neighbour can look around up to the doors
        world = World(root)
        yield world
        world.lab.close()


MODULES = (file_probes, output_probes, port_probes, process_probes)
"""They register their probes."""


@needs_root
@pytest.mark.parametrize("name", list(PROBES))
def test_the_neighbour_gets_nowhere(world: World, name: str) -> None:
    PROBES[name].run(world)


def test_the_table_of_security_md_is_what_is_tried() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| tried \| what holds \|\n\|---\|---\|\n((?:\|.*\|\n)+)", text)
    assert table.splitlines() == [probe.row for probe in PROBES.values()]
    assert len(PROBES) >= 40
