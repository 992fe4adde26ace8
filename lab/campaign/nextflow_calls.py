"""The calls of Nextflow's executor for Slurm, replayed: no package has Nextflow's program.

As its source does (SlurmExecutor, AbstractGridExecutor, GridTaskHandler of nextflow/executor): a folder and a
`.command.run` for each task, `sbatch .command.run` there with its standard error behind its output, `squeue
--noheader -o '%i %t' -t all -p QUEUE -u USER` where an exit code is missing, and no second try where sbatch
refuses a job. Usual intervals: 5 s for the files, a minute for squeue. A task that is in no answer of squeue
and has no exit code 270 s later has failed.

    python nextflow_calls.py JOBS SECONDS QUEUE_SIZE
"""

from __future__ import annotations

import getpass
import re
import subprocess
import sys
import time
from pathlib import Path

POLL, ASK, GIVE_UP = 5.0, 60.0, 270.0
SUBMITTED = re.compile(r"Submitted batch job (\d+)")
SCRIPT = """#!/bin/bash
#SBATCH -J nf-work_({number})
#SBATCH -o {folder}/.command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -t 00:05:00
#SBATCH --mem 100M
#SBATCH -p batch
cd {folder}
trap 'exit 130' USR2
touch .command.begin
(sleep {seconds}; touch {done}) > .command.out 2> .command.err
echo $? > .exitcode
"""


class Task:
    """One task, which is submitted with it."""

    def __init__(self, number: int, seconds: str) -> None:
        self.folder = Path("work", str(number)).absolute()
        self.folder.mkdir(parents=True)
        done = Path(f"{number}.done").absolute()
        text = SCRIPT.format(number=number, folder=self.folder, seconds=seconds, done=done)
        (self.folder / ".command.run").write_text(text)
        self.missing_since: float | None = None
        answer = subprocess.run(
            ["sbatch", ".command.run"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        found = SUBMITTED.search(answer.stdout)
        if answer.returncode or found is None:
            raise SystemExit(f"Error submitting process {number}: {answer.stdout}")
        self.job = found[1]

    def exit_code(self) -> int | None:
        """None: it has not ended."""
        try:
            return int((self.folder / ".exitcode").read_text())
        except (OSError, ValueError):
            return None

    def look(self, active: dict[str, str]) -> None:
        """Raises SystemExit: it is given up."""
        if self.job in active:
            self.missing_since = None
            return
        self.missing_since = self.missing_since or time.monotonic()
        if time.monotonic() - self.missing_since > GIVE_UP:
            raise SystemExit(f"Failed to get exit status for job {self.job}: {active}")


def status() -> dict[str, str]:
    words = ["squeue", "--noheader", "-o", "%i %t", "-t", "all", "-p", "batch", "-u", getpass.getuser()]
    answer = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    ).stdout
    rows = (line.split() for line in answer.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def main() -> None:
    jobs, seconds, queue_size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    waiting, running, asked = list(range(jobs)), list[Task](), time.monotonic()
    while waiting or running:
        while waiting and len(running) < queue_size:
            running.append(Task(waiting.pop(0), seconds))
        time.sleep(POLL)
        codes = {task.job: task.exit_code() for task in running}
        if any(code for code in codes.values()):
            raise SystemExit(f"a task has failed: {codes}")
        running = [task for task in running if codes[task.job] is None]
        if time.monotonic() - asked > ASK:
            asked, active = time.monotonic(), status()
            for task in running:
                task.look(active)


if __name__ == "__main__":
    main()
