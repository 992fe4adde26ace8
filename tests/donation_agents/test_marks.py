"""Which marks count, whatever was marked in whatever order."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_donation_agents.folders import ROOT, RuntimeFolder, UserFolder, open_runtime, own_folder
from adaptor_donation_agents.marks import mark, taken_by, unmark
from adaptor_donation_agents.records import check_job, check_name
from tests.donation_agents.users import USER, needs_root
from tests.examples import examples

NAMES = st.sampled_from(["n1", "n1.taken", "n11", "n-1", "n1.x", "_1"])
JOBS = st.sampled_from(["1", "17", "17[3]", "17.server", "1.n1"])
STEPS = st.lists(st.tuples(st.booleans(), NAMES, JOBS | st.just("")), max_size=12)


@contextmanager
def opened() -> Iterator[tuple[RuntimeFolder, UserFolder]]:
    with tempfile.TemporaryDirectory() as folder:
        runtime, place = own_folder(f"{folder}/runtime")
        with runtime, place:
            yield runtime, place


@examples(40)
@given(STEPS)
def test_a_node_is_taken_as_long_as_a_job_has_it(steps: list[tuple[bool, str, str]]) -> None:
    taken: set[tuple[str, str]] = set()
    with opened() as (runtime, place):
        for takes, node, job in steps:
            if takes and job:
                mark(place, node, job)
                taken.add((node, job))
            elif not takes:
                unmark(place, node, job)
                taken = {(n, j) for n, j in taken if n != node or (job and j != job)}
        for node in ("n1", "n1.taken", "n11", "n-1", "n1.x", "_1"):
            jobs = {job for name, job in taken if name == node}
            found = taken_by(runtime, place, node)
            assert found in jobs if jobs else found == ""


@needs_root
def test_a_mark_of_root_keeps_a_user_away(tmp_path: Path) -> None:
    with open_runtime(str(tmp_path)) as runtime:
        runtime.make_user_folder(USER)
        own = runtime.user_folder(USER)
        assert own is not None
        with own:
            assert taken_by(runtime, own, "n1") == ""
            runtime.make_user_folder(ROOT)
            roots = runtime.user_folder(ROOT)
            assert roots is not None
            with roots:
                mark(roots, "n1", "17")
            assert taken_by(runtime, own, "n1") == "17"
            assert taken_by(runtime, own, "n2") == ""
            mark(own, "n1", "3")
            assert taken_by(runtime, own, "n1") == "3"


@given(st.text(max_size=30))
def test_no_name_leaves_its_folder(name: str) -> None:
    for check in (check_name, check_job):
        try:
            check(name)
        except ValueError:
            continue
        assert name not in (".", "..")
        assert not set(name) & set("/@\0\n ")
        assert not name.startswith(("-", "."))


@examples(40)
@given(st.binary(max_size=200))
def test_no_content_of_a_file_does_harm(content: bytes) -> None:
    with opened() as (_, place):
        place.write("x", {})
        handle = os.open(place_path(place) / "x", os.O_WRONLY | os.O_TRUNC)
        os.write(handle, content)
        os.close(handle)
        with suppress(ValueError):
            assert isinstance(place.read("x"), dict)


def test_what_is_written_is_read_and_ours_alone() -> None:
    with opened() as (_, place):
        assert place.read("x") is None
        place.write("x", {"a": 1})
        place.write("x", {"a": 2})
        assert place.read("x") == {"a": 2}
        assert (place_path(place) / "x").stat().st_mode & 0o777 == 0o600
        assert place.names() == ["x"], "nothing is left of the writing"
        place.remove("x")
        place.remove("x")
        assert not place.has("x")


def test_a_lock_is_held_by_one() -> None:
    with opened() as (_, place):
        held = place.lock("lock")
        assert held is not None
        assert place.lock("lock") is None
        os.close(held)
        assert place.lock("lock") is not None


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_plain_file_is_not_read(kind: str) -> None:
    with opened() as (_, place):
        path = place_path(place) / "x"
        match kind:
            case "link":
                path.symlink_to("/etc/hostname")
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
        with pytest.raises(ValueError, match="x: "):
            place.read("x")


def place_path(place: UserFolder) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{place._handle}"))
