"""The good way of an agent, by the SDK's own client and a real daemon."""

from __future__ import annotations

import pytest

from tests.e2e.lab import Lab
from tests.mcp.agent import Agent, ToolFailed


def test_a_bag_from_its_plan_to_its_report(lab: Lab, agent: Agent) -> None:
    told = agent.call("plan", template="echo {word}-{n}", parameters={"word": ["a b", "c"], "n": "1:3"})
    assert told["plan"]["tasks"] == 6
    assert (told["limits"]["name"], told["limits"]["grant"]["max_proc"]) == ("agent", 2)
    assert agent.call("when", processors=1, time="10m")["places"][0]["site"] == "here"
    submitted = agent.call(
        "submit",
        template="echo {word}-{n}",
        parameters={"word": ["a b", "c"], "n": "1:3"},
        options={"name": "words", "time": "1s", "order": "file"},
        budget=5,
        environment={"LANG": "C"},
    )
    bag = submitted["submitted"]["bag"]
    assert submitted["tasks"] == 6
    for _ in range(10):
        state = agent.call("watch", bag=bag, wait=60)["bag"]
        if state["state"] != "running":
            break
    assert (state["state"], state["done"], state["name"]) == ("done", 6, "words")
    found = agent.call("results", bag=bag, output="stdout", limit=4, after=0)["tasks"]
    assert [line["task"]["task"] for line in found] == [1, 2, 3, 4]
    assert [line["stdout"] for line in found] == ["a b-2", "a b-3", "c-1", "c-2"]
    credits = agent.call("report", bag=bag)["credits"]
    assert credits["used"] + credits["reserved"] > 0
    assert [view["id"] for view in agent.call("watch")["bags"]] == [bag], "not that of the user"
    lines = [line["text"] for line in agent.call("why", bag=bag, lines=50)["lines"]]
    assert any("submitted bag" in line and "'words'" in line for line in lines)
    log = lab.run("mcp", "log", "agent").stdout
    assert f"key agent: submitted bag {bag} ('words'): 6 tasks, budget 5" in log
    assert agent.call("cancel", bag=bag) == {"cancelled": 0}
    (key,) = lab.run("mcp", "keys").stdout.splitlines()[1:]
    assert key.split()[:2] == ["agent", "1,000"]
    assert key.endswith("of 2         1  submit, canary 2")


def test_tools_say_what_they_do_and_errors_are_text(agent: Agent) -> None:
    tools = agent.tools()
    assert set(tools) == {"plan", "when", "submit", "watch", "why", "results", "cancel", "report"}
    assert all(tool.description and tool.input_schema["properties"] for tool in tools.values())
    assert [name for name in sorted(tools) if not tools[name].annotations.read_only_hint] == [
        "cancel",
        "submit",
    ]
    assert "unknown option 'cpu'" in agent.refusal("submit", tasks=["true"], options={"cpu": "1"})
    assert "give either tasks or a template" in agent.refusal("submit")
    with pytest.raises(ToolFailed, match="bag"):
        agent.call("watch", bag="x")


def test_a_read_only_server_has_no_tool_that_changes_anything(lab: Lab) -> None:
    reader = Agent(lab, "agent", "--read-only")
    try:
        assert set(reader.tools()) == {"plan", "when", "watch", "why", "results", "report"}
        assert "Unknown tool" in reader.refusal("submit", tasks=["true"])
    finally:
        reader.close()


def test_a_server_needs_a_key(lab: Lab) -> None:
    assert "adaptor mcp grant" in lab.run("mcp", expect=2).stderr
    refused = Agent(lab, "nobody")
    try:
        assert "access-key-nobody.json: cannot be read" in refused.refusal("watch")
    finally:
        refused.close()
