"""A user's corner: a state directory, a working folder, and the real command line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
from click.testing import CliRunner, Result

from adaptor.cli.main import program
from tests.living import PATIENCE, run_text, until

LONG = 2 * PATIENCE
"""Seconds after which a test gives up a command that waits for a whole bag."""
READING = {"status", "results", "report", "why", "credits", "when"}
"""Commands that tests run often: `Lab.ask` starts no process for them."""


def found_below(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """All that lies there; what is removed during the look is passed over."""
    found = []
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                path = Path(above, name)
                found.append((path, path.lstat()))
    return found


Limits = tuple[int, int, str]
"""Pending requests, processors, the longest request."""


def site(backend: str, limits: Limits | None = None, /, **keys: Any) -> str:
    """A configuration with one site; `name` and `daemon` are its name and what stands under `daemon`."""
    name = keys.pop("name", "here" if backend == "local" else "hpc")
    daemon = keys.pop("daemon", {})
    return sites({name: keys_of(backend, limits, **keys)}, daemon=daemon)


def sites(named: dict[str, dict[str, Any]], **others: Any) -> str:
    """A configuration with these sites, of which `keys_of` gives the keys."""
    return json.dumps({"sites": named, **others})


def keys_of(backend: str, limits: Limits | None = None, /, **keys: Any) -> dict[str, Any]:
    """Keys of one site; a scheduler is asked every two seconds."""
    usual: dict[str, Any] = {} if backend == "local" else {"poll_interval": 2}
    if backend == "slurm":
        usual["partition"] = "batch"
    if limits:
        usual["limits"] = dict(zip(("max_pending_requests", "max_proc", "max_tr"), limits, strict=True))
    return {"backend": backend, **usual, **keys}


class Lab:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.work = root / "work"
        self.work.mkdir()
        self.config: Path | None = None

    def configure(self, text: str) -> None:
        self.config = self.root / "site.yaml"
        self.config.write_text(textwrap.dedent(text), encoding="utf-8")

    def bag(self, lines: Iterable[str], name: str = "tasks.bag") -> Path:
        path = self.work / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def hold(self, name: str = "gate") -> str:
        """A command of a task that lasts until `release` is called with the same name."""
        return f"while [ ! -e {self.work / name} ]; do sleep 0.2; done"

    def hold_after(self, free: int) -> str:
        """As `hold`, but for so many tasks that begin first, in whichever order the tasks begin."""
        begun = self.work / "begun"
        return f"echo >> {begun}; [ $(wc -l < {begun}) -le {free} ] || {self.hold()}"

    def release(self, name: str = "gate") -> None:
        (self.work / name).touch()

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "adaptor.cli", *self._words(*arguments)]

    def _words(self, *arguments: str | Path) -> list[str]:
        return [*(["--config", str(self.config)] if self.config else []), *map(str, arguments)]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "ADAPTOR_DIR": str(self.state), "NO_COLOR": "1", "COLUMNS": "150"}

    def run(
        self, *arguments: str | Path, expect: int = 0, timeout: float = LONG
    ) -> subprocess.CompletedProcess[str]:
        done = run_text(self.command(*arguments), env=self.environment, cwd=self.work, timeout=timeout)
        assert done.returncode == expect, (
            f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.log()}"
        )
        return done

    def program(self, text: str) -> subprocess.Popen[str]:
        """Start a Python program of a user's."""
        path = self.work / "program.py"
        path.write_text(textwrap.dedent(text))
        environment = {**self.environment, "ADAPTOR_CONFIG": str(self.config)}
        output = subprocess.PIPE
        words = [sys.executable, str(path)]
        return subprocess.Popen(
            words, env=environment, cwd=self.work, stdout=output, stderr=output, text=True
        )

    def ask(self, *arguments: str | Path) -> Any:
        """Output of a command with `--json`."""
        if arguments[0] not in READING:
            return json.loads(self.run(*arguments, "--json").stdout)
        told = self.call(*arguments, "--json")
        assert told.exit_code == 0, f"{told.output}\n{self.log()}"
        return json.loads(told.stdout)

    def call(self, *arguments: str | Path) -> Result:
        """A command in this process, which only one thread may do at a time."""
        return CliRunner().invoke(program, self._words(*arguments), env=self.environment)

    def submit(self, *arguments: str | Path) -> int:
        return int(self.ask("submit", *arguments)["bag"])

    def begin(self, configuration: str, lines: Iterable[str], done: int = 5) -> None:
        """Submit a bag, and wait until some of its tasks are done."""
        self.configure(configuration)
        self.bag(lines)
        self.submit("tasks.bag")
        until(lambda: self.status()["done"] >= done, "the bag is under way")

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """A command in the background."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def status(self, bag: int = 1) -> dict[str, Any]:
        (found,) = self.ask("status", str(bag))["bags"]
        return dict(found)

    def pilots(self) -> list[dict[str, Any]]:
        return list(self.ask("status", "--pilots", "--all"))

    def jobs_in_system(self) -> set[str]:
        """The numbers of the pilots that the daemon has in the system."""
        return {pilot["job"] for pilot in self.pilots() if pilot["state"] in ("queued", "running")}

    def results(self, bag: int = 1) -> list[dict[str, Any]]:
        return list(self.ask("results", str(bag)))

    def attempts(self, bag: int, tasks: list[int]) -> list[dict[str, Any]]:
        """All executions of these tasks, as the journal has them."""
        with sqlite3.connect(f"file:{self.state / 'journal.sqlite'}?mode=ro", uri=True) as journal:
            journal.row_factory = sqlite3.Row
            rows = journal.execute("SELECT * FROM attempt WHERE bag = ? ORDER BY task", (bag,)).fetchall()
        return [dict(row) for row in rows if row["task"] in tasks]

    def wait(self, bag: int = 1, expect: int = 0, timeout: float = LONG) -> None:
        self.run(
            "watch", "--quiet", str(bag), "--timeout", f"{timeout:.0f}", expect=expect, timeout=timeout + 20
        )

    def daemon_pid(self) -> int:
        return int(self.ask("status", "--daemon")["pid"])

    def daemon_answers(self) -> bool:
        return self.call("status", "--daemon").exit_code == 0

    def kill_daemon(self) -> None:
        """`kill -9`."""
        daemon = psutil.Process(self.daemon_pid())
        daemon.send_signal(signal.SIGKILL)
        daemon.wait(LONG)

    def restart_daemon(self) -> None:
        """After kill -9."""
        self.kill_daemon()
        self.run("daemon", "start")

    def log(self) -> str:
        path = self.state / "daemon.log"
        return path.read_text(encoding="utf-8")[-6000:] if path.exists() else "(no daemon.log)"

    def close(self) -> None:
        """Stop the daemon and all its pilots, however far things went."""
        subprocess.run(
            self.command("daemon", "stop", "--pilots"),
            env=self.environment,
            cwd=self.work,
            capture_output=True,
            timeout=LONG,
            check=False,
        )


def exactly_one_result_each(lab: Lab, bag: int, tasks: int) -> None:
    """The journal holds one result for every task, and no failure was charged."""
    found = lab.results(bag)
    assert [task["task"] for task in found] == list(range(tasks))
    assert {task["state"] for task in found} == {"done"}
    charged = [task["task"] for task in found if task["retries"]]
    assert not charged, f"{lab.attempts(bag, charged)}\n{lab.log()}"
