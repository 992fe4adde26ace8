"""Names in a spool: what we write we read again, and nothing else counts as ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.spool.layout import (
    Connection,
    address_of,
    daemon_file_name,
    folder_at,
    parse_connection,
    parse_daemon_file,
    parse_worker_file,
    worker_file_name,
)

tokens = st.text("0123456789abcdef", min_size=8, max_size=8)
numbers = st.integers(1, 10**12 - 1)


@given(st.integers(0, 10**18 - 1), tokens, st.integers(1, 10**9 - 1), numbers)
def test_worker_files_are_found_again(pilot: int, token: str, n: int, number: int) -> None:
    connection = Connection(pilot, token, n)
    assert parse_connection(connection.name) == connection
    assert parse_worker_file(worker_file_name(connection.name, number)) == (connection, number)


@given(tokens, numbers)
def test_answers_are_found_again(run: str, number: int) -> None:
    assert parse_daemon_file(daemon_file_name(run, number)) == (run, number)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "7-01234567-1",
        "../7-01234567-1.00000001",
        ".7-01234567-1.00000001",
        "7-01234567-1.1",
        "a.b",
        "7-0123456Z-1.00000001",
        "7-01234567-1.00000001.bak",
        "7-01234567-1.00000001\n",
        "٧-01234567-1.00000001",
    ],
)
def test_other_names_are_not_ours(name: str) -> None:
    assert parse_worker_file(name) is None
    assert parse_daemon_file(name) is None


@pytest.mark.parametrize("name", ["", "..", "x", "1-2-3", "1-01234567-1/..", "1-01234567-1\n"])
def test_other_folders_are_not_ours(name: str) -> None:
    assert parse_connection(name) is None


def test_addresses(tmp_path: Path) -> None:
    odd = tmp_path / "with spaces, #, ? and %"
    assert folder_at(address_of(odd)) == odd


@pytest.mark.parametrize("address", ["spool://relative", "tcp://here:1", "/plain", "spool://"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ValueError, match="not spool://"):
        folder_at(address)
