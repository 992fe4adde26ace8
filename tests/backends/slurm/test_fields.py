"""Times, limits and counts as Slurm prints them."""

from __future__ import annotations

import math
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.slurm.fields import expand, fold, parse_count, parse_limit, parse_time
from tests.clusters.slurm import ThrowawaySlurm


@pytest.mark.parametrize("text", ["N/A", "NONE", "None", "Unknown", "(null)", ""])
def test_no_time(text: str) -> None:
    assert parse_time(text) is None


def test_epoch_and_local_time() -> None:
    assert parse_time("1795250485") == 1795250485
    local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(1795250485))
    assert parse_time(local) == 1795250485


@pytest.mark.parametrize("text", ["soon", "2026-11-21", "-5", "12:30"])
def test_bad_times(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30:00", 1800),
        ("0:30", 30),
        ("1:00:00", 3600),
        ("04:00:00", 14400),
        ("1-00:00:00", 86400),
        ("2-12", 2 * 86400 + 12 * 3600),
        ("2-12:30", 2 * 86400 + 12 * 3600 + 1800),
        ("90", 5400),
        ("UNLIMITED", math.inf),
        ("INVALID", math.inf),
        ("", math.inf),
    ],
)
def test_limits(text: str, seconds: float) -> None:
    assert parse_limit(text) == seconds


@pytest.mark.parametrize("text", ["forever", "1:2:3:4", "x-1", "1-", ":"])
def test_bad_limits(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_limit(text)


@given(st.integers(0, 400 * 86400))
def test_every_limit_is_read_back(seconds: int) -> None:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    assert parse_limit(f"{days}-{clock}") == seconds


@pytest.mark.parametrize(("text", "count"), [("12", 12), ("1K", 1024), ("1.5K", 1536), ("1-4", 1), ("0", 0)])
def test_counts(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["", "many", "4X", "-1"])
def test_bad_counts(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_count(text)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("n1 n2 n3 n7", "n[1-3,7]"),
        ("n01 n02 n1", "n1,n[01-02]"),
        ("gpu login1", "login1,gpu"),
        ("r1c1 r1c2 r2c1", "r1c[1-2],r2c1"),
        ("", ""),
    ],
)
def test_lists(names: str, expected: str) -> None:
    assert fold(names.split()) == expected


@given(st.sets(st.from_regex(r"[a-c]{1,2}(-[a-c])?[0-9]{0,4}", fullmatch=True)))
def test_what_is_folded_can_be_taken_apart_again(names: set[str]) -> None:
    assert sorted(expand(fold(names))) == sorted(names)


LISTS = {
    "n1": ["n1"],
    "n[1-3]": ["n1", "n2", "n3"],
    "n[1,3],gpu1": ["n1", "n3", "gpu1"],
    "n[1,03,5-7]": ["n1", "n03", "n5", "n6", "n7"],
    "n[007-010]": ["n007", "n008", "n009", "n010"],
    "rack[1-2]n[1-2]": ["rack1n1", "rack1n2", "rack2n1", "rack2n2"],
}


@pytest.mark.parametrize(("text", "names"), LISTS.items())
def test_expand(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["", "(null)", "None assigned"])
def test_nobody(text: str) -> None:
    assert expand(text) == []


@pytest.mark.parametrize("text", ["n[1-3", "n1]", "n[a-b]", "n[1,]", "n[1 ]", "n[\u0661]", "[1]n[", "n1,,n2"])
def test_not_a_list(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        expand(text)


@given(st.integers(0, 500), st.integers(0, 50), st.integers(1, 4))
def test_a_range_has_all_its_names(first: int, more: int, width: int) -> None:
    names = expand(f"n[{first:0{width}d}-{first + more}]")
    assert names == [f"n{number:0{width}d}" for number in range(first, first + more + 1)]


@pytest.mark.slurm
@pytest.mark.parametrize("text", LISTS)
def test_as_slurm_itself_expands(text: str, slurm: ThrowawaySlurm) -> None:
    said = subprocess.run(["scontrol", "show", "hostnames", text], capture_output=True, text=True, check=True)
    assert expand(text) == said.stdout.split()
