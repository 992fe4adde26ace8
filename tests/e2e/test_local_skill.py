"""A scripted agent that has `skills/adaptor/SKILL.md` and the command line finishes a scenario of failures.

It reads the verbs and options that it may use out of the skill, and the table by which it acts. Its key
limits it meanwhile, also where it tries to get around the limits.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.protocol.access import KEY_VARIABLE, key_access
from tests.e2e.lab import LONG, Lab
from tests.living import run_text
from tests.mcp.agent import SITE
from tests.source_tree import ROOT

SKILL = ROOT / "skills" / "adaptor" / "SKILL.md"
BUDGET = 40.0
MOST = 2  # processors
TASKS = 24


class SkilledAgent:
    """Refuses each command line that the skill does not name."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        text = SKILL.read_text(encoding="utf-8")
        self.verbs = set(re.findall(r"`?adaptor ([a-z]+)", text))
        self.options = set(re.findall(r"(--[a-z]+|(?<= )-[a-z]\b)", text))
        self.table = {
            int(code): what.strip() for code, what in re.findall(r"^\| (\d+) \| (.*) \|$", text, re.M)
        }
        (self.canary,) = re.findall(r"^#ADAPTOR .*$", text, re.M)
        self.environment = {**lab.environment, KEY_VARIABLE: "agent"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        assert words[0] in self.verbs, f"the skill names no command {words[0]}"
        assert {word for word in words if re.match(r"--?[a-z]", word)} <= self.options, words
        return self.whatever(*words)

    def whatever(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command that no skill names, of an agent that does not keep to it."""
        command = [sys.executable, "-m", "adaptor.cli", *words]
        return run_text(command, env=self.environment, cwd=self._lab.work, timeout=LONG)

    def submit(self, *lines: str, budget: str = "8") -> int:
        (self._lab.work / "tasks.bag").write_text("\n".join([self.canary, *lines, ""]))
        done = self.run("submit", "tasks.bag", "--budget", budget, "--parsable")
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def watch(self, bag: int) -> str:
        """What the skill's table says of the end of `watch`."""
        done = self.run("watch", str(bag), "--quiet", "--timeout", "2m")
        assert done.returncode in self.table, f"the skill does not say what {done.returncode} means"
        return self.table[done.returncode]

    def failed(self, bag: int) -> list[int]:
        rows = json.loads(self.run("results", str(bag), "--json", "--all").stdout)
        return [int(row["task"]) for row in rows if row["state"] == "failed"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("skill"))
    lab.configure(SITE)
    lab.run("mcp", "grant", "agent", "--budget", f"{BUDGET}", "--max-proc", f"{MOST}", "--canary", "3")
    yield lab
    lab.close()


@pytest.fixture
def agent(lab: Lab) -> SkilledAgent:
    return SkilledAgent(lab)


def test_a_scenario_of_failures_is_finished(lab: Lab, agent: SkilledAgent) -> None:
    lines = [f"analyse in-{number}.txt" for number in range(TASKS)]
    for number in range(TASKS):
        (lab.work / f"in-{number}.txt").write_text("" if number in (5, 17) else f"{number}\n")
    script = 'test -s "$1" || { echo "$1 is empty" >&2; exit 9; }; cat "$1"'

    # A typo in all lines: the canary pauses the bag at the cost of a few tasks.
    (lab.work / "tasks.bag").write_text("\n".join([agent.canary, *lines, ""]))
    assert agent.run("plan", "tasks.bag", "--time", "10s").returncode == 0
    first = agent.submit(*lines)
    assert "paused by itself" in agent.watch(first)
    assert "not found" in agent.run("results", str(first), "--failed").stdout
    assert "paused" in agent.run("why", str(first)).stdout
    assert agent.run("cancel", str(first)).returncode == 0

    # The command is mended; two of the inputs are empty. The daemon dies on the way.
    lines = [f"sh -c {shlex.quote(script)} . in-{number}.txt" for number in range(TASKS)]
    second = agent.submit(*lines)
    lab.kill_daemon()
    assert "ask the user" in agent.watch(second), "it starts no daemon for the user"
    lab.run("daemon", "start")
    assert "some failed" in agent.watch(second)
    bad = agent.failed(second)
    assert bad == [5, 17]
    assert "is empty" in agent.run("results", str(second), "--task", str(bad[0]), "--stderr").stdout

    # The inputs are mended, and the lines of the failed tasks are a new bag.
    for number in bad:
        (lab.work / f"in-{number}.txt").write_text(f"{number}\n")
    third = agent.submit(*(lines[number] for number in bad))
    assert "all tasks done" in agent.watch(third)
    texts = [agent.run("results", str(bag), "--stdout").stdout for bag in (second, third)]
    found = [int(line) for text in texts for line in re.findall(r"^\d+$", text, re.MULTILINE)]
    assert sorted(found) == list(range(TASKS))
    assert agent.run("report", str(third)).returncode == 0
    assert "agent" in agent.run("mcp", "keys").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "more.bag", "--budget", "1000"),
        ("mcp", "grant", "agent", "--budget", "1e9", "--max-proc", "99"),
        ("retry", "1"),
        ("resume", "1"),
        ("daemon", "stop"),
        ("daemon", "restart"),
        ("daemon", "submit"),
    ],
    ids=" ".join,
)
def test_what_an_agent_may_not_do_is_refused(lab: Lab, agent: SkilledAgent, words: tuple[str, ...]) -> None:
    lab.bag(["true"], "more.bag")
    done = agent.whatever(*words)
    assert done.returncode
    assert "key" in done.stderr, done.stderr


def test_a_key_that_its_agent_has_edited_opens_nothing(lab: Lab, agent: SkilledAgent) -> None:
    """The file has the certificate; the limits are in the daemon."""
    path: Path = lab.state / key_access("agent")
    before = path.read_bytes()
    limits = json.loads(before)
    path.write_bytes(json.dumps({**limits, "budget": 1e9, "max_proc": 1000}).encode())
    lab.bag(["true"], "more.bag")
    refused = agent.whatever("submit", "more.bag", "--budget", "1000")
    assert refused.returncode
    certificate = {**limits["own"], "certificate": limits["server"]}
    path.write_bytes(json.dumps({**limits, "own": certificate}).encode())
    assert agent.whatever("status").returncode
    path.write_bytes(before)
    assert agent.run("status").returncode == 0
