"""The environment of a task: bag, prologue, node, its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.resources import TaskSize
from adaptor.worker.environment import NodeEnvironment, differences, of_task, parse_env0


def bag(environment: dict[str, str]) -> BagContext:
    return BagContext(1, "/work", "/out", environment, TaskSize(processors=3))


def test_a_prologue_lays_its_changes_over_the_bag() -> None:
    before = {"PATH": "/bin", "GONE": "1", "SAME": "1", "SHLVL": "1"}
    worker = {
        "PATH": "/sw/bin:/bin",
        "SAME": "1",
        "NEW": "1",
        "SHLVL": "2",
        "ADAPTOR_PILOT": "7",
        "SLURM_STEPID": "0",
    }
    node = NodeEnvironment(worker, before)
    shared = node.of_bag(bag({"PATH": "/home/bin", "GONE": "1", "SAME": "2", "MINE": "1"}))
    assert shared == {"PATH": "/sw/bin:/bin", "SAME": "2", "MINE": "1", "NEW": "1"}


def test_folders_for_jobs_are_passed_on_whoever_names_them() -> None:
    """$SLURM_TMPDIR of the site's prolog, and what the configuration's prologue exports."""
    worker = {"SLURM_TMPDIR": "/local/7", "PBS_JOBFS": "/jobfs/7", "SLURM_STEP_ID": "0"}
    tasks = {"SLURM_TMPDIR": "/local/7", "PBS_JOBFS": "/jobfs/7"}
    assert NodeEnvironment(worker, None).of_bag(bag({"A": "1"})) == {"A": "1", **tasks}
    assert NodeEnvironment(worker, {"PATH": "/bin"}).of_bag(bag({"A": "1"})) == {"A": "1", **tasks}


def test_without_a_prologue_only_the_variables_of_the_node_are_added() -> None:
    worker = {
        "PATH": "/x",
        "TMPDIR": "/scratch/9",
        "SLURM_JOB_ID": "9",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "FOO": "1",
    }
    shared = NodeEnvironment(worker, None).of_bag(bag({"TMPDIR": "/tmp", "PATH": "/bin"}))
    assert shared == {"PATH": "/bin", "TMPDIR": "/scratch/9"}, "what is true of a task, `as_job` says"


def test_a_bag_without_an_environment_gets_the_least() -> None:
    worker = {"HOME": "/home/u", "USER": "u", "SECRET": "x", "ADAPTOR_ACCESS": "/a"}
    shared = NodeEnvironment(worker, None).of_bag(bag({}))
    assert shared == {"HOME": "/home/u", "USER": "u", "PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_the_tasks_own_variables_win_and_it_is_told_what_it_is() -> None:
    lease = Lease(AttemptKey(1, 2, 3), "true", 0.0, cwd="/here", environment={"A": "task", "PWD": "/odd"})
    environment = of_task({"A": "bag", "B": "bag"}, bag({}), lease, 1234.6, bound=True)
    assert environment == {
        "A": "task",
        "B": "bag",
        "PWD": "/odd",
        "ADAPTOR_BAG_ID": "1",
        "ADAPTOR_TASK_ID": "2",
        "ADAPTOR_ATTEMPT": "3",
        "ADAPTOR_CPUS": "3",
        "ADAPTOR_DEADLINE": "1235",
    }
    plain = of_task({}, bag({}), Lease(AttemptKey(1, 2, 3), "true", 0.0), float("inf"), bound=False)
    assert (plain["PWD"], plain["ADAPTOR_DEADLINE"]) == ("/work", "inf")


LEASE = Lease(AttemptKey(1, 2, 3), "true", 0.0)


MPI = "OMPI_MCA_hwloc_base_binding_policy"


def unbound(shared: dict[str, str], bag: BagContext, *, bound: bool = False) -> tuple[str | None, str | None]:
    found = of_task(shared, bag, LEASE, 0.0, bound=bound)
    return found.get("OMP_NUM_THREADS"), found.get(MPI)


def test_a_task_that_is_not_bound_to_its_processors_is_told_how_many_threads_to_start() -> None:
    """And MPI, which would bind the processes of each such task to the same processors, binds none."""
    assert unbound({}, bag({})) == ("3", "none")
    assert unbound({"OMP_NUM_THREADS": "1", MPI: "core"}, bag({})) == ("1", "core"), "its user said so"
    assert unbound({}, bag({}), bound=True) == (None, None)
    assert unbound({}, BagContext(1, "/work", "/out", {})) == (None, "none")
    several = BagContext(1, "/work", "/out", {}, TaskSize(processors=3, nodes=2))
    assert unbound({}, several) == (None, None), "its nodes are its own"


def test_the_order_in_which_the_node_numbers_its_gpus_reaches_tasks() -> None:
    node = NodeEnvironment({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, None)
    assert node.of_bag(bag({"PATH": "/bin"})) == {"PATH": "/bin", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


VARIABLES = st.dictionaries(st.sampled_from("ABCD"), st.text(alphabet="xy=\n", max_size=3))


@given(VARIABLES, VARIABLES)
def test_differences_turn_the_one_into_the_other(before: dict[str, str], after: dict[str, str]) -> None:
    changed, removed = differences(before, after)
    assert {**{name: before[name] for name in before if name not in removed}, **changed} == after


@given(VARIABLES)
def test_env0_is_read_as_it_is_printed(variables: dict[str, str]) -> None:
    data = b"".join(f"{name}={value}".encode() + b"\0" for name, value in variables.items())
    assert parse_env0(data) == variables


def test_env0_with_odd_entries() -> None:
    assert parse_env0(b"noequals\0=x\0A=\xff\0") == {"A": "\udcff"}
