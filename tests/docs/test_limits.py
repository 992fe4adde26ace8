"""The page of limits names each key that is read, and says for each what reads it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from backends.slurm import accounts, parse
from backends.slurm.parse import ASSOCIATION_FIELDS, QOS_FIELDS

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
HEAD = ["key", "free slots", "shape of a request", "at submit", "`site init`", "`site check`", "`when`"]
NO_LIMIT = {
    *("Account", "Partition", "QOS", "DefaultQOS", "Name", "PartitionName", "Default", "State", "TotalCPUs"),
    *("TotalNodes", "PriorityTier", "PreemptMode", "GraceTime", "QoS", "UserName", "ParentAccount"),
}
"""Fields that say what a limit is of, or in what order jobs are considered."""
LONG = {
    "MaxSubmit": "MaxSubmitJobs",
    "MaxTRESPU": "MaxTRESPerUser",
    "MaxTRESPA": "MaxTRESPerAccount",
    "MaxTRESPN": "MaxTRESPerNode",
    "MaxTRESMinsPJ": "MaxTRESMins",
    "MaxJobsPU": "MaxJobsPerUser",
    "MaxJobsPA": "MaxJobsPerAccount",
}
"""As sacctmgr takes what it prints short."""


def read_in(function: object) -> set[str]:
    """The keys of an answer that a function reads."""
    return set(re.findall(r'values(?:\.get\(|\[)"([A-Z]\w+)"', inspect.getsource(function)))  # type: ignore[arg-type]


def tables() -> list[list[list[str]]]:
    found, rows = list[list[list[str]]](), list[list[str]]()
    for line in [*PAGE.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            found.append(rows)
            rows = []
    return found


def test_each_key_that_is_read_is_on_the_page() -> None:
    fields = {*ASSOCIATION_FIELDS.split(","), *QOS_FIELDS.split(",")}
    read = fields | read_in(parse._partition) | read_in(accounts._group)
    assert len(read) > 30
    for key in sorted(read - NO_LIMIT):
        assert f"`{LONG.get(key, key)}" in PAGE, key


@pytest.mark.parametrize("rows", tables(), ids=["partitions", "accounts", "PBS"])
def test_no_cell_is_empty(rows: list[list[str]]) -> None:
    head, _, *keys = rows
    assert head == HEAD
    for row in keys:
        assert len(row) == len(HEAD), row[0]
        assert all(row), row[0]
