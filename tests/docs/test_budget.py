"""docs/budget.md can be followed: its configurations, then its commands in their order."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.e2e.conftest import lab as lab
from tests.e2e.lab import LONG, Lab
from tests.living import run_text
from tests.packaging.console_blocks import console_blocks
from tests.source_tree import ROOT

PAGE = (ROOT / "docs" / "budget.md").read_text(encoding="utf-8")
FILES = dict(
    zip(("site.yaml", "two.yaml"), re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S), strict=True)
)
EXACT = re.compile(
    r"bag \d+: \d+ tasks$|adaptor: a budget |\w+: \d+ a processor-hour|\d+ tasks: |with the sample "
)
"""What the page shows that comes in each run."""


def test_the_commands_of_the_page_print_what_it_says(lab: Lab, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    variables = "true"

    def run(line: str) -> str:
        words = ["/bin/bash", "-c", f"PATH={Path(sys.executable).parent}:$PATH; {variables} && {line}"]
        done = run_text(words, cwd=tmp_path, env=lab.environment, timeout=LONG)
        return done.stdout + done.stderr

    for command in [each for block in console_blocks(PAGE) for each in block]:
        if command.line.startswith("export "):
            run("adaptor daemon stop --pilots")
            variables = command.line
            continue
        printed = run(command.line)
        assert [line for line in command.shown if EXACT.match(line) and line not in printed] == [], printed
    run("adaptor daemon stop --pilots")
