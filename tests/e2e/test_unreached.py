"""Workers that cannot reach the daemon: said within a minute."""

from __future__ import annotations

import msgspec

from adaptor.decisions.pilot_rules import UNREACHED
from adaptor.protocol.access import read_access, worker_access, write_access
from tests.e2e.lab import Lab, until


def test_workers_that_cannot_reach_the_daemon_are_told_of_within_a_minute(lab: Lab) -> None:
    lab.configure("""
        sites:
          here:
            backend: local
            limits: {max_pending_requests: 1, max_proc: 1, max_tr: 1h}
    """)
    lab.bag(["true"])
    lab.run("daemon", "start")
    path = lab.state / worker_access("here")
    write_access(path, msgspec.structs.replace(read_access(path), addresses=("tcp://127.0.0.1:9",)))
    lab.submit("tasks.bag")

    def said() -> list[str]:
        return [line["text"] for line in lab.ask("why", "--pilot", "1") if "reach" in line["text"]]

    (text, *_) = until(said, "the daemon says that nobody has reached it")
    assert UNREACHED <= 45, "with the start of the pilot, a minute"
    assert "tcp://127.0.0.1:9" in text or "open from the nodes" in text
