"""The end of a bag is told once, and bags are forgotten, with a real daemon that is killed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.daemon.upkeep.web import SECRET, Web
from tests.e2e.lab import Lab
from tests.living import until


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.close()


def test_ends_are_told_once_and_bags_are_forgotten(lab: Lab, web: Web) -> None:
    hook = lab.work / "hook"
    hook.write_text(
        '#!/bin/sh\necho "$ADAPTOR_BAG $ADAPTOR_BAG_STATE" >>told\n'.replace("told", f"{lab.work}/told")
    )
    hook.chmod(0o700)
    lab.configure(
        f"""
        sites:
          here:
            backend: local
            processors: 2
            idle_timeout: 1
        journal: {{keep: 1h}}
        hooks: {{on_bag_end: [{hook}]}}
        """
    )
    urls = lab.work / "urls"
    urls.write_text(f"{web.url}\n")
    urls.chmod(0o600)
    lab.bag(["true"] * 3)
    refused = lab.run("submit", "tasks.bag", "--notify", web.url, expect=2)
    assert "@FILE" in refused.stderr
    assert SECRET not in refused.stderr
    lab.submit("tasks.bag", "--notify", "@urls")
    lab.submit("tasks.bag")
    told = lab.work / "told"
    until(lambda: told.exists() and len(told.read_text().split("\n")) == 3, "the hook has run for both bags")
    until(lambda: web.got, "the message has come")
    lab.restart_daemon()
    until(lambda: not lab.ask("status", "--pilots"), "the pilots have left")
    before = lab.ask("credits")
    lab.run("forget", "1", "--yes")
    assert [bag["id"] for bag in lab.ask("status", "all")["bags"]] == [2]
    assert lab.ask("credits")["sites"] == before["sites"]
    lab.run("report", "1", expect=2)
    until(lambda: not lab.ask("status", "--daemon")["journal"]["compacting"], "nothing is left of it")
    assert lab.ask("status", "--daemon")["journal"]["keep"] == 3600
    assert sorted(told.read_text().splitlines()) == ["1 done", "2 done"]
    assert web.titles == ["bag 1 (tasks) is done"]
    assert not any(SECRET in argv for argv in web.argvs)
