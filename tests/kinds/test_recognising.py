"""Which commands are of one kind, and what the kind is called."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.batch_script import BatchScript
from adaptor.kinds.recognising import LOOKED_AT, MOST_KINDS, kind_of, kinds_of, sample_step

SPEC = BagSpec(name="b", cwd="/home/u/work", output="/o", environment={})


def kind(command: str | list[str], spec: BagSpec = SPEC, cwd: str | None = None) -> tuple[str, str]:
    return kind_of(spec, TaskInput(command, cwd=cwd))


@pytest.mark.parametrize(
    "command",
    [
        "python fit.py a.dat",
        "python3.11 -u fit.py b.dat 7",
        "./fit.py > out.7 2>&1",
        "OMP_NUM_THREADS=4 python fit.py x",
        "env A=1 nice -n 5 python fit.py x",
        "cd /scratch/7 && module load python; python fit.py 3 | tee log",
        "srun -n 4 --mpi=pmix python fit.py 3",
        "singularity exec --nv -B /data image.sif python fit.py 3",
        "conda run -n env python fit.py 3",
        "bash -c 'python fit.py 1'",
        "timeout 5m python fit.py 3 # the third",
        "for i in 1 2 3; do python fit.py $i; done",
        "if [ -f x ]; then python fit.py x; fi",
        "(cd x; exec python fit.py 3) &",
        "mkdir -p out && python /home/u/work/fit.py 5",
        ["python", "fit.py", "a b"],
        ["/usr/bin/python3", "/home/u/work/../work/fit.py"],
    ],
)
def test_wrappers_values_and_files_do_not_count(command: str | list[str]) -> None:
    assert kind(command) == kind("python fit.py")
    assert kind(command)[1] == "fit.py"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("python fit.py", "python other.py"),
        ("python fit.py 3", "python fit.py 3 --fast"),
        ("python fit.py -a 3", "python fit.py -b 3"),
        ("python fit.py", "python /opt/fit.py"),
        ("./prep 1 && ./fit 1", "./fit 1"),
        ("python -m pkg.fit 3", "python -m pkg.other 3"),
        ("python -c 'fit(3)'", "python -c 'other(3)'"),
        ("sleep 3", "echo 3"),
    ],
)
def test_other_programs_and_options_are_other_kinds(one: str, other: str) -> None:
    assert kind(one)[0] != kind(other)[0]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("samtools sort -@ 4 x.bam", "samtools"),
        ("./prep 1 && ./fit 1", "prep + fit"),
        ("python -m pkg.fit 3", "python -m pkg.fit"),
        ("python -c 'print(3)'", "python -c"),
        ("java -Xmx4g -cp a:b -jar fit.jar 3", "fit.jar"),
        ("mpirun -np 8 ./solve in.txt", "solve"),
        ("docker run --rm -v /a:/b image ./fit 3", "fit"),
        ("echo one", "echo"),
        ("nice -n 5", "nice"),
        ("", "sh"),
        (["./prog", "a", "-n", "5"], "prog"),
    ],
)
def test_a_kind_is_called_by_its_programs(command: str | list[str], name: str) -> None:
    assert kind(command)[1] == name


def test_values_of_options_and_numbers_in_code_do_not_count() -> None:
    assert kind("./fit --alpha 0.3 -n5 -O2") == kind("./fit -O3 --alpha=7 -n 6 -12")
    assert kind("python -c 'print(3)'") == kind("python -c 'print(42)'")


def test_a_relative_path_is_that_of_the_task_s_folder() -> None:
    assert kind("./fit", cwd="/a")[0] != kind("./fit", cwd="/b")[0]
    assert kind("../a/fit", cwd="/b") == kind("./fit", cwd="/a")


def test_a_name_of_the_user_is_the_kind() -> None:
    spec = BagSpec(name="b", cwd="/", output="/o", environment={}, kind="night run")
    assert kind("./fit", spec) == kind("./other", spec)
    assert kinds_of(spec, [])[0].name == "night run"


def test_a_call_is_of_the_kind_of_its_function_and_a_script_of_its_path() -> None:
    call = TaskInput("train.fit()", call=b"v1")
    assert kind_of(SPEC, call)[1] == "train.fit()"
    script = BatchScript(body=b"#!/bin/sh\n", output="/o")
    one, other = (
        BagSpec(name="b", cwd=cwd, output="/o", environment={}, script=script) for cwd in ("/a", "/b")
    )
    assert kind(["job.sh", "1"], one) == kind(["job.sh", "2"], one)
    assert kind(["job.sh"], one)[0] != kind(["job.sh"], other)[0]


def test_two_kinds_in_one_bag_are_counted() -> None:
    tasks = [TaskInput("./prep 1")] + [TaskInput(f"./fit {number}") for number in range(9)]
    assert [(each.name, each.tasks) for each in kinds_of(SPEC, tasks)] == [("fit", 9), ("prep", 1)]


def test_of_a_bag_with_a_program_for_each_task_the_most_frequent_are_kept() -> None:
    tasks = [TaskInput(f"./fit{number}") for number in range(100)]
    assert len(kinds_of(SPEC, tasks)) == MOST_KINDS


def test_of_a_large_bag_a_sample_is_looked_at() -> None:
    (found,) = kinds_of(SPEC, [TaskInput("./fit")] * (10 * LOOKED_AT))
    assert found.tasks == 10 * LOOKED_AT
    for total in (1, LOOKED_AT, LOOKED_AT + 1, 100_000):
        assert total / LOOKED_AT <= sample_step(total) < total / LOOKED_AT + 1


@given(st.text() | st.lists(st.text()))
def test_any_command_has_a_kind(command: str | list[str]) -> None:
    key, name = kind(command)
    assert key
    assert name
    assert kind(command) == (key, name)


@pytest.mark.parametrize("piece", ["'", '"', '"\\', "\\", "( ", "bash -c '", ">&", "a=", "env "])
def test_a_hostile_line_is_read_in_no_time(piece: str) -> None:
    before = time.process_time()
    kind(piece * 100_000)
    assert time.process_time() - before < 10.0, "which a quadratic reading exceeds by far"
