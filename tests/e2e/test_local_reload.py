"""An edited configuration is noticed, and taken over without losing a pilot or a task."""

from __future__ import annotations

from typing import Any

from tests.e2e.lab import Lab, exactly_one_result_each
from tests.living import until

CONFIG = """
sites:
  here:
    backend: local
    processors: 2
    limits: {{max_pending_requests: 1, max_proc: 2, max_tr: 1h}}
    idle_timeout: {idle}
{more}
"""
OTHER = """
  there:
    backend: local
    processors: 1
    limits: {max_pending_requests: 1, max_proc: 1, max_tr: 10m}
"""


def changes(lab: Lab) -> dict[str, Any]:
    """What a restart has taken over from the edited file."""
    found = dict(lab.ask("daemon", "restart")["changes"])
    return {key: found[key] for key in ("added", "removed", "changed", "others")}


def test_a_reload_keeps_pilots_and_refuses_what_it_cannot_use(lab: Lab) -> None:
    lab.configure(CONFIG.format(idle="5s", more=""))
    lab.bag(f"{lab.hold()}; echo {number}" for number in range(6))
    lab.submit("tasks.bag", "--output-files", "packed")
    until(lambda: lab.status()["running"] == 2, "two tasks run")
    pid, pilots = lab.daemon_pid(), lab.pilots()
    assert "has changed" not in lab.run("status").stdout

    lab.configure(CONFIG.format(idle="5s", more="  there: {backend: local, processors: none}"))
    assert "has changed since it was loaded" in lab.run("status", "--daemon").stdout
    refused = lab.run("daemon", "restart", expect=2)
    assert "site.yaml:8: sites.there.processors" in refused.stderr

    lab.configure(CONFIG.format(idle="7s", more=OTHER))
    assert changes(lab) == {"added": ["there"], "removed": [], "changed": ["here"], "others": []}
    assert "has changed" not in lab.run("status").stdout
    assert lab.daemon_pid() == pid
    assert [site["name"] for site in lab.ask("status", "--sites")] == ["here", "there"]

    lab.release()
    lab.wait()
    exactly_one_result_each(lab, 1, 6)
    printed = "".join(f"==> task {number} <==\n{number}\n" for number in range(6))
    assert lab.run("results", "1", "--stdout").stdout == printed
    assert all(each.name.startswith("packed-") for each in (lab.work / "adaptor-1").iterdir())
    kept = next(pilot for pilot in lab.pilots() if pilot["id"] == pilots[0]["id"])
    assert kept["job"] == pilots[0]["job"]
    assert kept["state"] in ("running", "completed")

    until(lambda: all(pilot["ended"] for pilot in lab.pilots()), "nothing depends on the sites any more")
    lab.configure(CONFIG.format(idle="7s", more="").replace("here", "elsewhere"))
    told = changes(lab)
    assert (told["added"], told["removed"]) == (["elsewhere"], ["here", "there"])
    assert [site["name"] for site in lab.ask("status", "--sites")] == ["elsewhere"]
