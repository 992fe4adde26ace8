"""Slurm's short form of host names."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.slurm.fields import expand
from tests.clusters.slurm import ThrowawaySlurm

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
