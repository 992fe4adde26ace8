from __future__ import annotations

from collections.abc import Iterator

import pytest

from adaptor import api
from tests.e2e.lab import Lab
from tests.mcp.agent import SITE, Agent, ask

BUDGET, MAX_PROC, CANARY = 1000.0, 2, 2
RACING = 100.0
"""The budget of the key `racer`."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A daemon with a local site of 4 processors, a bag of the user's, and the key `agent`."""
    lab = Lab(tmp_path_factory.mktemp("mcp"))
    lab.configure(SITE)
    options = ("--budget", f"{BUDGET}", "--max-proc", f"{MAX_PROC}", "--canary", f"{CANARY}")
    lab.run("mcp", "grant", "agent", *options)
    assert lab.submit(lab.bag(["echo secret"], "mine.bag"), "--name", "mine") == 1
    lab.wait(1)
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def agent(lab: Lab) -> Iterator[Agent]:
    agent = Agent(lab, "agent")
    yield agent
    agent.close()


def key_view(lab: Lab, name: str = "agent") -> api.KeyView:
    (view,) = [view for view in ask(lab, api.GetKeys()) if view.name == name]
    return view
