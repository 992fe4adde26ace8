"""A script as a bag: its elements, options, variables and files."""

from __future__ import annotations

import pytest

from adaptor.batch_script import BatchScript
from adaptor.config.schema import SiteConfig
from adaptor.errors import BagFileError, ObstaclesError, UsageError
from adaptor.resources import TaskGpus
from tests.bagfile.scripts.submissions import bag_of


def script_of(*lines: str, **values: object) -> BatchScript:
    script = bag_of(*lines, **values).options["script"]
    assert isinstance(script, BatchScript)
    return script


def test_an_array_is_a_task_for_each_element() -> None:
    bag = bag_of("#SBATCH --array=1-9:4%2 -J sim", arguments=["a", "b c"])
    assert [task.environment for task in bag.tasks] == [{"SLURM_ARRAY_TASK_ID": each} for each in "159"]
    assert {tuple(task.command) for task in bag.tasks} == {("sim", "a", "b c")}
    assert bag.options["name"] == "sim"
    script = bag.options["script"]
    assert script.array
    assert script.body.startswith(b"#!/bin/bash\n#SBATCH --array")
    told = {name: value for name, value in script.variables.items() if name.startswith("SLURM_ARRAY")}
    assert told == {
        "SLURM_ARRAY_TASK_COUNT": "3",
        "SLURM_ARRAY_TASK_MAX": "9",
        "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_STEP": "4",
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("now+90", 90), ("now+2hours", 7200), ("now+1day", 86400), ("1970-01-03T00:00:00Z", 172800)],
)
def test_a_script_begins_when_it_says(text: str, seconds: float) -> None:
    assert bag_of(f"#SBATCH --begin={text}").options["begin"] == seconds
    assert "begin" not in bag_of("#SBATCH --begin=now").options


def test_an_empty_job_name_leaves_it_to_the_file() -> None:
    assert bag_of("#SBATCH --job-name=").options["name"] == bag_of().options["name"]


def test_a_script_without_an_array_is_one_task_that_runs_once() -> None:
    bag = bag_of()
    assert [(task.command, task.environment) for task in bag.tasks] == [(["job.sh"], None)]
    assert (bag.options["retries"], bag.options["replicas"], bag.cwd) == (0, 0, "/here")
    assert bag.environment == {"PATH": "/bin", "COLOUR": "blue"}
    assert bag.options["script"].variables["SLURM_SUBMIT_DIR"] == "/here"


def test_sizes() -> None:
    options = bag_of("#SBATCH -n 2 -c3 --mem-per-cpu=100 --gres=gpu:a100:2").options
    assert (options["cpus"], options["memory"]) == (6, 600 * 1024**2)
    assert options["gpus"] == TaskGpus(2, "a100")
    assert bag_of("#SBATCH --mem 4G").options["memory"] == 4 * 1024**3
    per_gpu = bag_of("#SBATCH --gpus=2 --cpus-per-gpu=4 --mem-per-gpu=1G").options
    assert (per_gpu["cpus"], per_gpu["memory"]) == (8, 2 * 1024**3)
    several = bag_of("#SBATCH --ntasks-per-node=6 --cpus-per-task=2").options
    assert several["cpus"] == 12
    assert several["script"].variables["SLURM_NTASKS_PER_NODE"] == "6"


def test_the_command_line_wins_over_the_file() -> None:
    lines = ("#SBATCH --cpus-per-task=2 --mem=1G --array=1-100", "#ADAPTOR retries=5 replicas=1")
    bag = bag_of(*lines, array="7", options={"cpus": 4, "retries": 1, "name": "mine"})
    assert len(bag.tasks) == 1
    assert (bag.options["cpus"], bag.options["retries"], bag.options["replicas"]) == (4, 1, 1)
    assert bag.options["script"].variables["SLURM_CPUS_PER_TASK"] == "4"
    assert bag.options["script"].variables["SLURM_JOB_NAME"] == "mine"


@pytest.mark.parametrize(
    ("line", "output", "error"),
    [
        ("", "/here/slurm-%j.out", ""),
        ("#SBATCH --array=1", "/here/slurm-%A_%a.out", ""),
        ("#SBATCH -J 50% -o %x_%4a.%u -e /logs/%j", "/here/50%%_%4a.ada", "/logs/%j"),
        ("#SBATCH -D below --output=../%N-%n-%%", "/here/%N-0-%%", ""),
        ("#SBATCH -o 'a\\%j'", "/here/a%j", ""),
        ("#SBATCH --output=/dev/null", "/dev/null", ""),
        ("#PBS -N sim", "/here/sim.o%A", "/here/sim.e%A"),
        ("#PBS -N sim -J 1-2 -j oe", "/here/sim.o%A.%a", ""),
        ("#PBS -J 1-2 -o login1:/out/^array_index^ -e $PBS_JOBNAME", "/out/%a", "/here/job.sh"),
    ],
)
def test_files(line: str, output: str, error: str) -> None:
    script = script_of(line)
    assert (script.output, script.error) == (output, error)


def test_what_is_exported() -> None:
    assert bag_of("#SBATCH --export=ALL,SIZE=2").environment["COLOUR"] == "blue"
    chosen = bag_of("#SBATCH --export=COLOUR,SIZE=2,NONE_SUCH")
    assert chosen.environment == {}
    variables = chosen.options["script"].variables
    assert (variables["COLOUR"], variables["SIZE"]) == ("blue", "2")
    assert "PATH" not in variables
    assert bag_of("#SBATCH --export=NONE").environment == {}


def test_a_script_of_pbs() -> None:
    bag = bag_of(
        "#PBS -N sim -q batch -J 1-100:50",
        "#PBS -l select=1:ncpus=4:mem=8gb:ngpus=1,walltime=48:0:0 -v A=1,B='x y' -V",
    )
    assert [task.environment for task in bag.tasks] == [{"PBS_ARRAY_INDEX": "1"}, {"PBS_ARRAY_INDEX": "51"}]
    assert (bag.options["cpus"], bag.options["memory"], bag.options["gpus"]) == (4, 8 * 1024**3, TaskGpus(1))
    assert bag.cwd == "/home/ada"
    variables = bag.options["script"].variables
    assert (variables["PBS_O_WORKDIR"], variables["A"], variables["B"]) == ("/here", "1", "x y")
    torque = bag_of("#PBS -t 0,3 -l nodes=1:ppn=8")
    assert [task.environment for task in torque.tasks] == [{"PBS_ARRAYID": "0"}, {"PBS_ARRAYID": "3"}]
    assert torque.options["cpus"] == 8


@pytest.mark.parametrize(
    ("lines", "output", "error"),
    [
        ("#PBS -N sim", "/here/sim.o%A", "/here/sim.e%A"),
        ("#PBS -N sim -J 1-2 -j oe", "/here/sim.o%A.%a", ""),
        ("#PBS -N sim -j eo", "/here/sim.e%A", ""),
        ("#PBS -o logs/ -e e.txt", "/here/logs/%A.adaptor.OU", "/here/e.txt"),
        ("#PBS -J 1-2 -o logs/ -e logs/", "/here/logs/%A[%a].adaptor.OU", "/here/logs/%A[%a].adaptor.ER"),
    ],
)
def test_files_of_pbs(lines: str, output: str, error: str) -> None:
    script = bag_of(lines).options["script"]
    assert (script.output, script.error) == (output, error)


def test_a_script_of_grid_engine() -> None:
    bag = bag_of(
        "#$ -N sim -q all.q -tc 5 -t 1-100:50 -cwd -V",
        "#$ -pe smp 4 -l h_rt=48:0:0,h_vmem=2G -v A=1,PATH -S /bin/bash",
    )
    assert [task.environment for task in bag.tasks] == [{"SGE_TASK_ID": "1"}, {"SGE_TASK_ID": "51"}]
    assert (bag.options["cpus"], bag.options["memory"]) == (4, 8 * 1024**3)
    assert (bag.options["max_running"], bag.options["timeout"].seconds) == (5, 48 * 3600)
    assert bag.cwd == "."
    script = bag.options["script"]
    assert script.dialect == "gridengine"
    assert script.append, "Grid Engine writes behind what a file holds"
    told = {"JOB_NAME": "sim", "SGE_O_WORKDIR": "/here", "A": "1"}
    told |= {"SGE_TASK_FIRST": "1", "SGE_TASK_LAST": "51", "SGE_TASK_STEPSIZE": "50"}
    assert told.items() <= script.variables.items()


def test_a_script_of_grid_engine_without_an_array() -> None:
    bag = bag_of("#$ -tc 5")
    assert [task.environment for task in bag.tasks] == [None]
    assert bag.options["script"].variables["SGE_TASK_ID"] == "undefined"
    assert bag.cwd == "/home/ada"
    sites = {"a": SiteConfig(backend="gridengine")}
    assert bag_of(sites=sites).options["script"].dialect == "gridengine"


@pytest.mark.parametrize(
    ("lines", "output", "error"),
    [
        ("#$ -N sim", "/home/ada/sim.o%A", "/home/ada/sim.e%A"),
        ("#$ -N sim -t 1-2 -cwd -j y", "/here/sim.o%A.%a", ""),
        ("#$ -t 1-2 -wd /work -o :out/$JOB_NAME.$TASK_ID -j yes", "/work/out/job.sh.%a", ""),
        ("#$ -cwd -o logs/ -e $USER-$JOB_ID.$HOSTNAME", "/here/logs/job.sh.o%A", "/here/ada-%A.%N"),
    ],
)
def test_files_of_grid_engine(lines: str, output: str, error: str) -> None:
    script = bag_of(lines).options["script"]
    assert (script.output, script.error) == (output, error)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("#$ -hold_jid 7", "--ignore hold_jid submits it without"),
        ("#$ -t 0-3", "tasks are counted from 1"),
        ("#$ -pe smp", "-pe needs two values"),
        ("#$ -b y", "a script is no program"),
        ("#$ -nam x", "qsub has no option -nam"),
        ("#$ name", "is no option of qsub"),
    ],
)
def test_what_grid_engine_cannot_be_followed_in_is_refused(line: str, problem: str) -> None:
    with pytest.raises(BagFileError, match=f"job.sh:2: .*{problem}"):
        bag_of(line)


def test_options_of_grid_engine_are_ignored_by_name() -> None:
    bag = bag_of("#$ -hold_jid 7 -N sim -adds x y -cwd", ignore=("hold_jid", "adds"))
    assert bag.options["name"] == "sim"
    assert bag.cwd == "."


def test_where_a_script_of_pbs_begins() -> None:
    assert bag_of("#PBS -l ncpus=1").cwd == "/home/ada"
    assert bag_of("#PBS -l ncpus=1,wd").cwd == "."


def test_processes_of_a_chunk_share_its_processors() -> None:
    bag = bag_of("#PBS -l select=1:ncpus=4:ompthreads=2:mpiprocs=2")
    script = bag.options["script"]
    assert (bag.options["cpus"], script.processes) == (4, 2)
    assert (script.variables["OMP_NUM_THREADS"], script.variables["NCPUS"]) == ("2", "2")
    assert bag_of("#PBS -l select=1:mpiprocs=8").options["cpus"] == 8


def test_a_script_without_lines_of_either_is_of_the_kind_of_the_sites() -> None:
    assert bag_of().options["script"].dialect == "slurm"
    sites = {"a": SiteConfig(backend="pbs")}
    assert bag_of(sites=sites).options["script"].dialect == "pbs"
    assert bag_of("#SBATCH -c 2", sites=sites).options["script"].dialect == "slurm"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("#SBATCH --dependency=singleton", "a bag waits by afterok and afterany, not by singleton"),
        ("#SBATCH --dependency=afterok:7?afterok:8", "--ignore dependency submits it without"),
        ("#SBATCH -N 4", "-N 4: a script has one node; for several: adaptor submit --nodes N"),
        ("#SBATCH --mem=0", "--mem=0: all memory of a node"),
        ("#SBATCH --exclusive", "--ignore exclusive submits it without"),
        ("#SBATCH --gres=fpga:1", "only gpu is divided"),
        ("#SBATCH --tim=5", "job.sh:2: --tim may be any of --time, --time-min"),
        ("#SBATCH --container=/x", "name the container in the script's own commands"),
        ("#SBATCH --arry=1-3", "sbatch has no option --arry (did you mean --array?)"),
        ("#SBATCH --time 1 day", "'day' is no option of sbatch; quote a value that has spaces"),
        ("#SBATCH -J 'open", "the quote ' has no end"),
        ("#SBATCH --time", "--time needs a value"),
        ("#SBATCH --array=9-1", "the range 9-1 is empty"),
        ("#SBATCH --array=1-999999999", "more than 10,000,000 elements"),
        ("#SBATCH --requeue=yes", "--requeue takes no value"),
        ("#ADAPTOR cpu=2", "job.sh:2: unknown option 'cpu' (did you mean 'cpus'?)"),
        ("#PBS -l select=2:ncpus=4", "a script has one node"),
        ("#PBS -W stagein=a@b:c", "--ignore stagein submits it without"),
        ("#PBS -W depend=before:7", "--ignore depend submits it without"),
        (
            "#SBATCH -n 4\nmodule load openmpi\nsrun ./a.out",
            "job.sh:4: srun would start 4 processes",
        ),
        ("srun --multi-prog steps", "job.sh:2: srun --multi-prog: not supported in a task"),
        ("\r", "line ends of DOS"),
        ("\0", "adaptor submit -- job.sh"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_line(line: str, problem: str) -> None:
    with pytest.raises(BagFileError) as caught:
        bag_of(line)
    assert problem in str(caught.value)


def test_what_is_ignored_counts_for_nothing() -> None:
    line = "#SBATCH --mail-type=ALL --mail-user=me@x --exclusive --image docker:a b --array=1-2"
    with pytest.raises(BagFileError):
        bag_of(line)
    bag = bag_of(line, ignore=["mail", "exclusive", "image"])
    assert (len(bag.tasks), bag.remarks) == (2, [])


def test_all_obstacles_come_in_one_message_with_the_line_that_gets_through() -> None:
    lines = ("#SBATCH --exclusive --image=a", "#SBATCH --mail-type=END --mem=0", "#SBATCH --array=1-2")
    with pytest.raises(ObstaclesError) as caught:
        bag_of(*lines)
    assert caught.value.problem == "job.sh: 3 lines cannot be followed"
    assert [line.partition(":")[0] for line in caught.value.lines[:3]] == ["line 2", "line 2", "line 3"]
    assert caught.value.lines[-1] == "--ignore exclusive,image,mem submits it without these"
    assert len(bag_of(*lines, ignore=["exclusive", "image", "mem"]).tasks) == 2


@pytest.mark.parametrize(
    "line",
    [
        "#SBATCH --cpus-per-task=CPUPERTASK",
        "#SBATCH --array=1-{n}",
        "#SBATCH --nodes={node}",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks=N",
        "#SBATCH --gres=shard:1",
        "#PBS -l select=2:ncpus=4",
        "#PBS -l nodes=1:ppn=NODES:$x",
    ],
)
def test_to_ignore_is_not_offered_where_the_element_would_be_another_one(line: str) -> None:
    with pytest.raises(ObstaclesError) as caught:
        bag_of(line)
    assert "--ignore" not in str(caught.value)
    with pytest.raises(ObstaclesError) as caught:
        bag_of(line, "#SBATCH --exclusive" if "SBATCH" in line else "#PBS -h")
    assert caught.value.lines[-1].endswith("submits it without these, once the other lines are changed")


def test_ignoring_a_resource_of_pbs_drops_it_alone() -> None:
    line = "#PBS -l select=1:ncpus=12:mem=4gb:cpu_type=icelake,walltime=1:0:0,software=abaqus"
    for ignored in (["cpu_type", "software"], ["cpu_type", "software", "l"]):
        bag = bag_of(line, ignore=ignored, sites={"a": SiteConfig(backend="pbs")})
        assert (bag.options["cpus"], bag.options["memory"]) == (12, 4 * 1024**3)
        assert bag.options["timeout"].seconds == 3600
        assert bag.remarks == []


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("#SBATCH --hint=nomultithread", "--hint=nomultithread: processors are what the scheduler counts"),
        ("#SBATCH --no-requeue", "--no-requeue: a task whose node was lost runs again"),
        ("#PBS -r n", "-r n: a task whose node was lost runs again"),
        ("#$ -r n", "-r n: a task whose node was lost runs again"),
        ("#SBATCH --time-min=5", "--time-min=5: the walltime of requests is crafted"),
        ("#SBATCH --wait", "--wait: the command does not wait for the bag"),
        ("#SBATCH -d afterok:7:8", "-d afterok:7:8: the bag waits for bags 7, 8, not for jobs"),
        ("sbatch next.sh", "sbatch: jobs that a script submits go to the scheduler as usual"),
        (
            "if true; then scontrol update job=$SLURM_JOB_ID; fi",
            "scontrol update: the scheduler does not know",
        ),
        ("scontrol update JobId=$SLURM_JOB_ID", "scontrol update: the scheduler does not know"),
    ],
)
def test_what_informs_or_decorates_is_a_remark(line: str, remark: str) -> None:
    (found,) = bag_of(line).remarks
    assert found.text.startswith(remark)


@pytest.mark.parametrize(
    "line",
    ["# sbatch next.sh", "#SBATCH --comment=x --nice", "#SBATCH -N 1-4", "echo use sbatch x", "#SBATCH -J x"],
)
def test_what_changes_nothing_is_not_spoken_of(line: str) -> None:
    assert bag_of(line).remarks == []


def test_a_bag_waits_for_bags() -> None:
    options = bag_of("#SBATCH --dependency=afterok:7:8,afterany:9[]").options
    assert (options["after"], options["after_any"]) == ((7, 8), (9,))
    assert bag_of("#PBS -W depend=afterok:7[].adaptor,group_list=x").options["after"] == (7,)


def test_variables_of_single_options() -> None:
    variables = script_of("#SBATCH --hint=nomultithread --open-mode=append").variables
    told = {"SLURM_HINT": "nomultithread", "SLURM_THREADS_PER_CORE": "1", "SLURM_OPEN_MODE": "a"}
    assert told.items() <= variables.items()
    assert script_of("#SBATCH --threads-per-core=2").variables["SLURM_THREADS_PER_CORE"] == "2"


def test_gpus_of_each_process() -> None:
    bag = bag_of("#SBATCH --ntasks=2 --gpus-per-task=a100:1")
    assert bag.options["gpus"] == TaskGpus(2, "a100")
    assert bag.options["script"].variables["SLURM_GPUS_PER_TASK"] == "a100:1"
    assert bag_of("#SBATCH --gpus=2").options["script"].variables["SLURM_GPUS"] == "2"


@pytest.mark.parametrize(
    "lines",
    [
        ("#SBATCH -n 4", "for i in 1 2; do srun -n 1 ./mpi_prog & done; wait"),
        ("#SBATCH -n 4", "srun ./plain"),
        ("#SBATCH -n 4", "module load openmpi", "mpiexec ./a.out"),
        ("#SBATCH -n 4", "module load openmpi", "srun --mpi=none -n 4 hostname"),
        ("#SBATCH -n 4", "# mpi", "srun hostname"),
        ("#SBATCH -n 4", "module load openmpi", "srun --nodes=1 --job-name=a -n1 ./a.out"),
        ("#SBATCH -n 4", "gcc -o champion compile.c", "srun ./champion"),
    ],
)
def test_steps_that_the_element_can_start(lines: tuple[str, ...]) -> None:
    assert bag_of(*lines).options["cpus"] == 4


def test_the_array_of_the_command_line_wins_over_one_that_is_none() -> None:
    assert len(bag_of("#SBATCH --array=1-N", array="1-2").tasks) == 2
    assert len(bag_of("#SBATCH --array=[1-3%2]").tasks) == 3


def test_a_bad_array_of_the_command_line() -> None:
    with pytest.raises(UsageError, match="--array: 'x' is no array"):
        bag_of(array="x")
