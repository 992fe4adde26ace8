"""The table of workers knows what they have together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.scheduling.workers import Worker, WorkerTable

changes = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abcd"), st.sampled_from(["here", "there"]), st.integers(1, 64))
)


@given(changes)
def test_the_processors_of_a_site_are_those_of_its_workers(steps: list[tuple[bool, str, str, int]]) -> None:
    table = WorkerTable()
    for comes, id, site, processors in steps:
        if comes:
            table[id] = Worker(
                id, pilot=1, site=site, node="n", processors=processors, memory=1, deadline=1.0, seen=0.0
            )
        elif id in table:
            del table[id]
        for where in ("here", "there"):
            there = [worker.processors for worker in table.values() if worker.site == where]
            assert table.processors(where) == sum(there)
