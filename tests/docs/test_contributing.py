"""What CONTRIBUTING.md lets a user attach to a bug report is made by its commands, and holds no secret."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.e2e.conftest import lab as lab
from tests.e2e.lab import LONG, Lab, site
from tests.living import run_text
from tests.packaging.console_blocks import console_blocks
from tests.source_tree import ROOT

SECRET = "a-word-of-the-environment"


def texts(value: object) -> list[str]:
    """All strings in a JSON value."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


def test_a_report_has_what_is_asked_for_and_no_secret(lab: Lab) -> None:
    lab.configure(site("local", (2, 2, "1h"), processors=2))
    environment = {**lab.environment, "ADAPTOR_CONFIG": str(lab.config), "TOKEN": SECRET}
    lab.bag([f"echo {SECRET}; exit 3"])

    def run(line: str) -> None:
        words = ["/bin/bash", "-c", f"PATH={Path(sys.executable).parent}:$PATH; {line}"]
        done = run_text(words, cwd=lab.work, env=environment, timeout=LONG)
        assert done.returncode == 0, done.stdout + done.stderr

    run("adaptor daemon start")
    run("adaptor submit tasks.bag; adaptor watch --quiet; true")
    for command in console_blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))[0]:
        run(command.line.replace("BAG", "1"))
    report = (lab.work / "report.txt").read_text(encoding="utf-8")
    for wanted in ("Python 3", '"version": ', "state directory: ", " here ", "started: pid"):
        assert wanted in report
    pem = "\n".join(texts(json.loads((lab.state / "keys.json").read_text(encoding="utf-8"))))
    keys = [line for line in pem.splitlines() if len(line) == 64]  # whole lines of a key, without marks
    assert keys
    assert [key for key in (SECRET, *keys) if key in report] == []
