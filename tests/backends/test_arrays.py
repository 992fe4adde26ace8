"""The names of pilot arrays, and how a job of one finds out which pilot it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from adaptor.units import folded
from backends.arrays import job_name, script_of, tag_of
from backends.scripts import render
from tests.backends.orders import order

TAG = "adaptor-0a.hpc-2.12"


def test_a_pilot_alone_is_named_as_always() -> None:
    alone = order(tag=TAG)
    assert job_name(alone) == TAG
    assert script_of(alone) == alone.directory / "pilot.sh"


@given(st.integers(1, 10**9), st.integers(2, 1000), st.data())
def test_each_job_of_an_array_has_the_tag_of_its_pilot(first: int, pilots: int, data: st.DataObject) -> None:
    array = order(tag=f"adaptor-0a.hpc-2.{first}", pilots=pilots)
    index = data.draw(st.integers(0, pilots - 1))
    assert tag_of(job_name(array), index) == f"adaptor-0a.hpc-2.{first + index}"


def test_what_is_no_array_of_ours_has_no_pilots() -> None:
    name = job_name(order(tag=TAG, pilots=40))
    assert name == "adaptor-0a.hpc-2.12-51"
    assert tag_of(name, 40) == name
    assert tag_of(TAG, 3) == TAG
    assert tag_of("any name", 3) == "any name"
    assert tag_of("adaptor-0a.hpc.12-x", 3) == "adaptor-0a.hpc.12-x"


def test_arrays_with_a_common_folder_have_scripts_of_their_own() -> None:
    """PBS reads the script when a job starts: it may not be another array's by then."""
    parts = [order(tag=f"adaptor-0a.hpc.{first}", pilots=20) for first in (12, 32)]
    assert len({script_of(part) for part in parts}) == 2


@given(st.sets(st.integers(0, 50)))
def test_folded_numbers_are_the_same_numbers(numbers: set[int]) -> None:
    words = [word.split("-") for word in folded(numbers).split(",") if word]
    assert numbers == {number for word in words for number in range(int(word[0]), int(word[-1]) + 1)}
    assert folded([3, 1, 2, 7]) == "1-3,7"


def test_a_job_has_its_own_number_and_a_private_folder_of_its_own(tmp_path: Path) -> None:
    template = tmp_path / "template"
    template.write_text(
        '@@exports\necho "$ADAPTOR_PILOT" >number\n# @@processors @@command @@prologue @@worker\n'
    )
    text = render(
        template,
        processors=1,
        command=["sbatch"],
        environment={"ADAPTOR_PILOT": "12", "ADAPTOR_DIRECTORY": str(tmp_path)},
        prologue="",
        worker=["worker"],
        index="INDEX",
    )
    for index in (3, 3):  # a job that is put back into the queue starts again
        subprocess.run(["bash", "-c", text], env={"INDEX": str(index), "PATH": "/usr/bin:/bin"}, check=True)
    assert (tmp_path / "15" / "number").read_text() == "15\n"
    assert (tmp_path / "15").stat().st_mode & 0o777 == 0o700
