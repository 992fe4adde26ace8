"""A new version knows that it can read the state before it ends the daemon that runs."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adaptor.daemon.ground.takeover import check_takeover
from adaptor.errors import AdaptorError
from adaptor.journal import database
from adaptor.journal.database import open_for_writing
from adaptor.protocol.access import Access, write_access
from adaptor.protocol.keys import load_or_make_keys


@pytest.fixture
def state(tmp_path: Path) -> Path:
    open_for_writing(tmp_path).close()
    keys = load_or_make_keys(tmp_path)
    write_access(
        tmp_path / "access-client.json",
        Access(addresses=("tcp://127.0.0.1:1",), server=keys.server.certificate, own=keys.client),
    )
    site = tmp_path / "sites" / "here"
    site.mkdir(parents=True)
    (site / "1.job.json").write_text(json.dumps({"format": 1, "id": 1}))
    return tmp_path


def test_a_state_of_this_version_can_be_taken_over_while_its_daemon_runs(state: Path, tmp_path: Path) -> None:
    with closing(open_for_writing(state)):
        check_takeover(state)
    empty = tmp_path / "empty"
    empty.mkdir()
    check_takeover(empty)


@pytest.mark.parametrize("name", ["keys.json", "access-client.json", "sites/here/1.job.json"])
def test_a_newer_file_is_named_with_both_numbers_and_the_way_out(state: Path, name: str) -> None:
    content: dict[str, Any] = json.loads((state / name).read_text())
    (state / name).write_text(json.dumps(content | {"format": 3}))
    with pytest.raises(AdaptorError, match=rf"{name}: has format 3, .*newer version.*up to 1.*ADAPTOR_DIR"):
        check_takeover(state)


def test_a_newer_journal_is_named(state: Path) -> None:
    with closing(open_for_writing(state)) as db:
        db.execute(f"PRAGMA user_version = {database.FORMAT + 1}")
    with pytest.raises(AdaptorError, match=f"format {database.FORMAT + 1}"):
        check_takeover(state)


def test_a_file_without_a_number_has_the_first_format(state: Path) -> None:
    for path in (state / "keys.json", state / "access-client.json"):
        content = json.loads(path.read_text())
        del content["format"]
        path.write_text(json.dumps(content))
    check_takeover(state)


def test_an_access_file_that_the_next_daemon_writes_anew_is_no_obstacle(state: Path) -> None:
    (state / "access-client.json").write_text("")
    check_takeover(state)
