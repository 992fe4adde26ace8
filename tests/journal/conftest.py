"""Fixtures of the tests of the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.journal.journal import Journal
from tests.scheduling.conftest import world as world


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path)
    yield journal
    journal.close()
