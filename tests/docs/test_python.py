"""The example of docs/python.md runs, and prints what the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.e2e.conftest import lab as lab
from tests.e2e.lab import LONG, Lab
from tests.living import run_text
from tests.source_tree import ROOT


def test_the_example_prints_what_the_page_says(lab: Lab) -> None:
    page = Path(ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert example
    lab.configure("sites: {here: {backend: local, processors: 2}}\n")
    program = lab.work / "example.py"
    program.write_text(example[1], encoding="utf-8")
    done = run_text(
        [sys.executable, str(program)],
        cwd=lab.work,
        env={**lab.environment, "ADAPTOR_CONFIG": str(lab.config)},
        timeout=LONG,
    )
    assert (done.stdout, done.returncode) == (example[2], 0), done.stderr
