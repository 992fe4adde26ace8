"""Programs of users of the clients of `lab.campaign.shim_clients`: small jobs of some seconds each.

Where a limit on submitted jobs refuses one, a program tries again, or keeps to the limit, as its users do.
Each leaves a file `NUMBER.done` for each job whose result it has seen.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from lab.campaign import nextflow_calls


class Foreign(NamedTuple):
    """A client, its program, and how it is called."""

    package: str
    """Installed name of the package; empty: none."""
    file: str
    text: str
    """`JOBS` stands for their number, `SECONDS` for the runtime of each, `LIMIT` for minutes of a job that
    keeps its workers, `AT_ONCE` for the jobs in the system, `BELOW` for two fewer: a job may
    have ended for its client, and not yet for Slurm."""
    words: tuple[str, ...]
    """`PYTHON`: one that has the package."""

    def write(
        self,
        folder: Path,
        jobs: int,
        python: str,
        *,
        minutes: int = 30,
        seconds: float = 1,
        at_once: int | None = None,
    ) -> list[str]:
        """Put the program into the folder; its command line."""
        values = {"JOBS": jobs, "SECONDS": seconds, "LIMIT": minutes, "AT_ONCE": at_once or jobs}
        values["BELOW"] = max(1, values["AT_ONCE"] - 2)
        text = self.text
        for name, value in values.items():
            text = re.sub(rf"\b{name}\b", f"{value:g}", text)
        (folder / self.file).write_text(text)
        known = {"PYTHON": python, **{name: f"{value:g}" for name, value in values.items()}}
        return [known.get(word, word) for word in self.words]


LOOP = """
for i in $(seq JOBS); do
    until sbatch --parsable --time=5 --output=/dev/null --wrap "sleep SECONDS; touch $i.done" >> ids; do
        sleep 5
    done
done
while [ -n "$(squeue --noheader --jobs=$(paste -sd, ids) 2> /dev/null)" ]; do sleep 1; done
"""
ONE_AFTER_ANOTHER = """
for i in $(seq JOBS); do
    sbatch --wait --time=5 --output=/dev/null --wrap "sleep SECONDS; touch $i.done" || exit 1
done
"""
SUBMITIT = """
import sys, time
import submitit

def work(number):
    time.sleep(SECONDS)
    return 2 * number

def submitted(number):
    while True:
        try:
            return executor.submit(work, number)
        except submitit.core.utils.FailedJobError:  # sbatch has refused it
            time.sleep(5)

executor = submitit.SlurmExecutor(folder="log", max_num_timeout=1)
executor.update_parameters(time=5, job_name="work", comment="a comment", cpus_per_task=1)
jobs = {submit}
assert [job.result() for job in jobs] == [2 * number for number in range(JOBS)]
while any(job.state in ("PENDING", "RUNNING") for job in jobs):  # as sacct said it last
    time.sleep(1)
    jobs[0].watcher.update()
assert {{job.state for job in jobs}} <= {{"COMPLETED", "UNKNOWN"}}  # unknown without accounting
for number in range(JOBS):
    open(f"{{number}}.done", "w").close()
"""
SNAKEMAKE = """
rule all:
    input: expand("{n}.done", n=range(JOBS // 2)), expand("{n}.half.done", n=range(JOBS // 2))
rule first:
    output: "{n}.half.done"
    resources: runtime=5, mem_mb=100
    shell: "sleep SECONDS; touch {output}"
rule second:
    input: "{n}.half.done"
    output: "{n,[0-9]+}.done"
    resources: runtime=5, mem_mb=100
    shell: "sleep SECONDS; touch {output}"
"""
QTOOLKIT = """
import time
from pathlib import Path
from qtoolkit.core.data_objects import QResources, QState
from qtoolkit.host.local import LocalHost
from qtoolkit.io.slurm import SlurmIO
from qtoolkit.manager import QueueManager

manager = QueueManager(SlurmIO(), LocalHost())
options = QResources(nodes=1, processes_per_node=1, time_limit=300, job_name="work")
jobs = []
for number in range(JOBS):
    told = manager.submit(f"sleep SECONDS; touch {number}.ran", options=options, create_submit_dir=True,
                          work_dir=str(Path(f"run-{number}").absolute()))
    assert told.job_id, told
    jobs.append(told.job_id)
said = manager.get_job(jobs[0])
assert said is None or said.job_id == jobs[0], said
while any(job.state != QState.DONE for job in manager.get_jobs_list(jobs)):
    time.sleep(1)
for number in range(JOBS):
    assert Path(f"run-{number}/{number}.ran").exists()
    Path(f"{number}.done").touch()
"""
AIIDA = """
from pathlib import Path
from aiida import load_profile
from aiida.engine import WorkChain, run
from aiida.orm import Computer, InstalledCode, Int, load_code
from aiida.plugins import CalculationFactory

class Sums(WorkChain):
    @classmethod
    def define(cls, spec):
        super().define(spec)
        spec.outline(cls.submit_all, cls.check)

    def submit_all(self):
        options = {"resources": {"num_machines": 1, "num_mpiprocs_per_machine": 1}, "withmpi": False,
                   "max_wallclock_seconds": 300, "prepend_text": "sleep SECONDS"}
        for number in range(JOBS):
            self.to_context(**{f"sum{number}": self.submit(
                CalculationFactory("core.arithmetic.add"), code=load_code("bash@here"), x=Int(number),
                y=Int(number), metadata={"options": options})})

    def check(self):
        for number in range(JOBS):
            node = self.ctx[f"sum{number}"]
            assert node.is_finished_ok and node.outputs.sum.value == 2 * number, node
            Path(f"{number}.done").touch()

if __name__ == "__main__":
    from program import Sums  # by a name that AiiDA can import
    load_profile()
    computer = Computer(label="here", hostname="localhost", transport_type="core.local",
                        scheduler_type="core.slurm", workdir=str(Path("runs").absolute())).store()
    computer.configure(safe_interval=0, use_login_shell=False)  # a login shell may set PATH again
    computer.set_minimum_job_poll_interval(2)
    computer.set_default_mpiprocs_per_machine(1)
    InstalledCode(label="bash", computer=computer, filepath_executable="/bin/bash").store()
    run(Sums)
"""
AIIDA_BEGINS = """
export AIIDA_PATH=$PWD PYTHONPATH=$PWD
"$(dirname "$0")/verdi" presto > presto.log && exec "$0" program.py
"""
DASK = """
import time
from dask_jobqueue import SLURMCluster
from distributed import Client

def work(number):
    time.sleep(SECONDS)
    return 2 * number

with SLURMCluster(cores=1, memory="1GB", walltime="00:LIMIT:00", interface="lo",
                  local_directory="scratch", log_directory="log") as cluster, Client(cluster) as client:
    cluster.scale(8)
    for number, value in enumerate(client.gather(client.map(work, range(JOBS)))):
        assert value == 2 * number
        open(f"{number}.done", "w").close()
"""
PARSL = """
import time
import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import SlurmProvider

@parsl.python_app
def work(number):
    import time
    time.sleep(SECONDS)
    return 2 * number

if __name__ == "__main__":
    provider = SlurmProvider(init_blocks=8, max_blocks=8, walltime="00:LIMIT:00", exclusive=False,
                             launcher=SimpleLauncher())
    executor = HighThroughputExecutor(max_workers_per_node=1, provider=provider, address="127.0.0.1")
    with parsl.load(Config(executors=[executor], exit_mode="wait")):
        for number, job in enumerate([work(number) for number in range(JOBS)]):
            assert job.result() == 2 * number
            open(f"{number}.done", "w").close()
"""

CLIENTS = {
    "a loop of sbatch": Foreign("", "loop.sh", LOOP, ("sh", "loop.sh")),
    "sbatch --wait in a row": Foreign("", "loop.sh", ONE_AFTER_ANOTHER, ("sh", "loop.sh")),
    "submitit submit": Foreign(
        "submitit",
        "program.py",
        SUBMITIT.format(submit="[submitted(number) for number in range(JOBS)]"),
        ("PYTHON", "program.py"),
    ),
    "submitit map_array": Foreign(
        "submitit",
        "program.py",
        SUBMITIT.format(submit="executor.map_array(work, range(JOBS))"),
        ("PYTHON", "program.py"),
    ),
    "snakemake": Foreign(
        "snakemake-executor-plugin-slurm",
        "Snakefile",
        SNAKEMAKE,
        ("PYTHON", "-m", "snakemake", "--executor", "slurm", "--slurm-no-account", "--slurm-status-command",
         "squeue", "--latency-wait", "30", "--jobs", "AT_ONCE"),
    ),
    "nextflow, its calls": Foreign(
        "",
        "nextflow_calls.py",
        Path(nextflow_calls.__file__).read_text(),
        ("PYTHON", "nextflow_calls.py", "JOBS", "SECONDS", "BELOW"),
    ),
    "qtoolkit": Foreign("qtoolkit", "program.py", QTOOLKIT, ("PYTHON", "program.py")),
    "aiida": Foreign(
        "aiida-core",
        "program.py",
        AIIDA,
        ("sh", "-c", AIIDA_BEGINS, "PYTHON"),
    ),
    "dask-jobqueue": Foreign("dask-jobqueue", "program.py", DASK, ("PYTHON", "program.py")),
    "parsl": Foreign("parsl", "program.py", PARSL, ("PYTHON", "program.py")),
}  # fmt: skip
"""By name. All but the first two are installed by pip into an environment of their own."""
