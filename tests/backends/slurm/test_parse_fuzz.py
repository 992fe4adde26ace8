"""Whatever Slurm's commands print: rows, or an error that says which line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from backends.slurm import fields, parse
from backends.slurm.parse import parse_associations, parse_qos
from backends.slurm.placing.gres import gres_counts, parse_license_rows, parse_node_details
from backends.slurm.placing.job_records import JobRecords
from backends.slurm.placing.restriction import parse_licenses
from tests.backends.slurm.answers import MARK, RELEASES
from tests.backends.slurm.answers import recorded as answered
from tests.fuzzing import damaged, fuzz, recorded, survives

TEXTS = recorded("slurm/*/*.txt")
ROWS = {row.id: row for row in parse.parse_queue(answered(RELEASES[0])("queue").encode(), MARK)}
PARSERS: list[Callable[[str], Any]] = [
    lambda text: parse.parse_queue(text.encode(), MARK),
    parse.parse_preempted,
    lambda text: parse.parse_nodes(text.encode()),
    parse.parse_accounting,
    parse.parse_reservations,
    parse.parse_partitions,
    parse.parse_settings,
    parse.job_id_of,
    parse_associations,
    parse_qos,
    lambda text: parse_node_details(text.encode()),
    lambda text: JobRecords().read(text.encode(), ROWS),
    parse_license_rows,
]


@fuzz
@given(damaged(TEXTS))
def test_any_answer_is_rows_or_a_clear_error(text: str) -> None:
    for parser in PARSERS:
        survives(parser, text)


VALUES = [
    *("1795250485", "2026-11-21T08:00:00", "1-02:03:04", "30:00", "UNLIMITED", "4K", "1-4", "0.5G"),
    *("gpu:a100:4(S:0-1)", "gpu:2,gpu:t4:1(IDX:0,2-3)", "bandwidth:lustre:no_consume:4G", "matlab:2,fluent"),
    *("n[1-2]", "n[001-010,12]x", "a,b[1-3]", "r[1-2]c[0-3]", "(null)"),
]


@fuzz
@pytest.mark.parametrize(
    "parse_value",
    [fields.parse_time, fields.parse_limit, fields.parse_count, fields.expand, gres_counts, parse_licenses],
)
@given(damaged(VALUES))
def test_any_value_is_a_number_or_a_value_error(parse_value: Callable[[str], Any], text: str) -> None:
    survives(parse_value, text, errors=(ValueError, OverflowError))
