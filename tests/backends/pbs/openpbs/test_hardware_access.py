"""Access control lists of queues; what reservations have alone."""

from __future__ import annotations

import pytest

from backends.pbs.fields import parse_long
from backends.pbs.openpbs.hardware import queues_of, reservations_of, shuts_out, submit_hosts
from tests.backends.pbs.openpbs_recordings import SITUATIONS, recorded


@pytest.mark.parametrize(
    ("entries", "admitted"),
    [
        ("bob", False),
        ("bob,alice", True),
        ("bob, alice@login1", True),
        ("+alice", True),
        ("-alice,+", False),
        ("-bob,+", True),
        ("+,-alice", False),
        ("-alice@elsewhere,alice", True),
        ("*@login1", True),
        ("-*@*,alice", False),
        ("", False),
    ],
)
def test_the_first_entry_that_names_a_user_decides(entries: str, admitted: bool) -> None:
    values = {"acl_user_enable": "True", "acl_users": entries}
    assert shuts_out(values, "alice", None) == ("" if admitted else "its acl_users do not admit alice")
    assert shuts_out({**values, "acl_user_enable": "False"}, "alice", None) == ""


def test_one_group_of_a_user_is_enough() -> None:
    values = {"acl_group_enable": "True", "acl_groups": "staff,physics"}
    assert shuts_out(values, "alice", ["users", "physics"]) == ""
    assert shuts_out(values, "alice", None) == ""
    assert "none of the groups of alice (guests, users)" in shuts_out(values, "alice", ["users", "guests"])


def test_the_machines_that_may_submit_are_known() -> None:
    assert submit_hosts({"acl_host_enable": "True", "acl_hosts": "login1, *.hpc"}) == ("login1", "*.hpc")
    assert submit_hosts({"acl_hosts": "login1"}) == ()


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_recorded_queue_of_bob_is_for_bob(situation: str) -> None:
    records = parse_long(recorded(f"{situation}-qstat-Qf"), "Queue: ")
    for user, closed in (("alice", ["vip"]), ("bob", [])):
        assert [queue.name for queue in queues_of(records, user) if queue.shuts_out] == closed


@pytest.mark.parametrize(
    ("place", "exclusive", "machines"),
    [("free", False, False), ("scatter:excl", True, False), ("exclhost", True, True)],
)
def test_whether_a_reservation_has_its_nodes_or_machines_alone(
    place: str, exclusive: bool, machines: bool
) -> None:
    text = recorded("09-rstat-f").replace("Resource_List.place = scatter", f"Resource_List.place = {place}")
    (found,) = reservations_of(parse_long(text, "Resv ID: ", indent=""))
    assert (found.exclusive, found.machines, found.reported) == (exclusive, machines, True)
