"""Root frees a node of several users: one of them that is late or lost hides no answer of the others."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from adaptor_donation_agents import free_node, records
from adaptor_donation_agents.folders import open_runtime
from adaptor_donation_agents.free_node import Reclaim
from tests.donation_agents.users import OTHER, USER, needs_root


def pipe(said: bytes) -> tuple[int, int]:
    """What a process has said until now, to be read; and where it would go on."""
    reader, writer = os.pipe()
    os.write(writer, said)
    return reader, writer


def test_who_is_late_or_lost_is_named_and_the_others_are_heard() -> None:
    late, lost, idle, freed = [
        pipe(said) for said in (b"", b'["x"', b"null", json.dumps(["t.1", True, ["a doubt"]]).encode())
    ]
    for _, writer in (lost, idle, freed):
        os.close(writer)
    waiting = {reader: uid for uid, (reader, _) in enumerate([late, lost, idle, freed], 7)}
    answers, problems = free_node._collect(waiting, time.monotonic() + 1)
    assert answers == [("t.1", True, ["a doubt"])]
    assert problems == [
        "user 7 has not freed it in time",
        "what frees it of user 8 died before it answered",
    ]
    for descriptor in (*waiting, late[1]):
        os.close(descriptor)


@needs_root
def test_for_a_job_root_looks_at_all_users_of_the_node_and_for_a_tag_at_itself(tmp_path: Path) -> None:
    with open_runtime(str(tmp_path)) as runtime:
        for uid, name in ((0, records.lock_file("n1")), (USER, records.use_file("n1")), (OTHER, "use@n2")):
            runtime.make_user_folder(uid)
            folder = runtime.user_folder(uid)
            assert folder is not None
            with folder:
                folder.write(name, {})

        def users(tag: str) -> list[int]:
            return free_node._users(runtime, Reclaim(str(tmp_path), "n1", records.RECLAIMED, "17", tag))

        assert sorted(users("")) == [0, USER]
        assert users("t.1") == [0]
