"""`adaptor.Executor` on this machine: results, exceptions, output, and `kill -9` in the middle of a map."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.clients import cpython
from tests.e2e.lab import LONG, Lab, site
from tests.e2e.test_local_crashes import LOCAL, workers_of
from tests.living import run_text, until

Program = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def program(lab: Lab) -> Program:
    """Starts a program of a user's."""
    lab.configure(LOCAL)
    return lab.program


def said(program: subprocess.Popen[str]) -> str:
    out, err = program.communicate(timeout=LONG)
    assert program.returncode == 0, err
    return out


def test_calls_come_back_as_they_do_from_a_pool(lab: Lab, program: Program) -> None:
    out = said(
        program("""
            import adaptor, os, time

            class Point:
                def __init__(self, x): self.x = x

            def double(point):
                print("doubles", point.x)
                return Point(2 * point.x)

            def fail():
                raise KeyError("why")

            def late():
                time.sleep(0.5)
                print("late")

            if __name__ == "__main__":
                with adaptor.Executor(name="mine", mem="200M", time="1m") as executor:
                    print([point.x for point in executor.map(double, map(Point, range(5)))])
                    print(sum(executor.map(pow, range(100), [2] * 100, chunksize=30)))
                    print(next(executor.map(abs, iter(int, 1), buffersize=3)))
                    for key, value in ("chunksize", 0), ("buffersize", 0), ("buffersize", "3"):
                        try:
                            executor.map(abs, [1], **{key: value})
                        except (TypeError, ValueError) as error:
                            print(repr(error))
                    print(len(executor.submit(bytes, 10**6).result()))
                    print(executor.submit(len, bytes(10**6)).result())
                    error = executor.submit(fail).exception()
                    print(repr(error), error.__traceback__.tb_frame.f_code.co_name)
                    print(executor.submit(os._exit, 3).exception())
                left = adaptor.Executor(output="left-{bag}")
                left.submit(late)  # the program waits for it
        """)
    )
    *lines, died = out.splitlines()
    assert lines == [
        "[0, 2, 4, 6, 8]",
        "328350",
        "0",
        "ValueError('chunksize must be >= 1.')",
        "ValueError('buffersize must be None or > 0')",
        "TypeError('buffersize must be an integer or None')",
        "1000000",
        "1000000",
        "KeyError('why') fail",
    ]
    # Calls of the endless map that were cancelled before they were sent have no numbers.
    found = re.fullmatch(r"bag 1, task (\d+): the call has no result: exit 3", died)
    assert found
    assert lab.results()[int(found[1])]["exit_code"] == 3
    assert (lab.work / "left-2" / "0.out").read_text() == "late\n"
    assert lab.status(2)["state"] == "done"
    written = [f"{n}.out" for n in range(5)]
    until(lambda: sorted(os.listdir(lab.work / "adaptor-1")) == written, "no file of a process is left")
    assert (lab.work / "adaptor-1" / "3.out").read_text() == "doubles 3\n"
    assert lab.status()["name"] == "mine"
    named = [task["command"] for task in lab.results()]
    assert named[0] == "__main__.double()"


def test_the_bag_of_a_program_closes_once_it_is_gone(lab: Lab, program: Program) -> None:
    """Not while it lives, however long it submits nothing."""
    running = program(
        """
import time, adaptor
from adaptor.client import bags
from adaptor.client.bags import Client
from adaptor.bag_spec import BagSpec
from adaptor.executor import executor

if __name__ == "__main__":
    executor.GONE = 0.1
    bags.LONGEST_POLL = 1.0  # the daemon counts a question until it has answered
    with adaptor.Executor() as pool:
        print(pool.submit(abs, -7).result(), flush=True)
        Client().open_bag(BagSpec(name="other", cwd="/", output="/tmp", environment={}, close_idle=0.1))
        print("opened", flush=True)
        time.sleep(3600)
"""
    )
    assert running.stdout is not None

    def states() -> dict[str, str]:
        return {bag["name"]: bag["state"] for bag in lab.ask("status", "all")["bags"]}

    try:
        assert [running.stdout.readline(), running.stdout.readline()] == ["7\n", "opened\n"]
        until(lambda: states()["other"] == "done", "a bag that no program follows closes")
        (own,) = states().keys() - {"other"}
        assert states()[own] == "open"
    finally:
        running.kill()
        running.wait()
    until(lambda: states()[own] == "done", "it closes, too")


def test_joblib_dask_and_scikit_learn_compute_by_it(lab: Lab, program: Program) -> None:
    """`python -m lab.campaign.python_users` has larger ones."""
    out = said(
        program("""
            import adaptor, dask, importlib.util, joblib

            def square(n):
                return n * n

            if __name__ == "__main__":
                adaptor.register_joblib()
                with joblib.parallel_config("adaptor", n_jobs=-1, name="jobs"):
                    print(sum(joblib.Parallel()(joblib.delayed(square)(n) for n in range(50))))
                    if importlib.util.find_spec("sklearn"):
                        from sklearn.datasets import load_iris
                        from sklearn.model_selection import GridSearchCV
                        from sklearn.tree import DecisionTreeClassifier as Tree
                        search = GridSearchCV(Tree(random_state=1), {"max_depth": [1, 3]}, cv=2)
                        assert search.fit(*load_iris(return_X_y=True)).best_params_ == {"max_depth": 3}
                with adaptor.Executor(name="dask") as executor:
                    squares = [dask.delayed(square)(n) for n in range(10)]
                    print(dask.delayed(sum)(squares).compute(scheduler=executor))
        """)
    )
    assert out.split() == ["40425", "285"]
    assert [bag["name"] for bag in lab.ask("status", "all")["bags"]] == ["jobs", "dask"]


def test_an_executor_in_a_call_finds_the_daemon_of_its_own(lab: Lab, program: Program) -> None:
    """The daemon's folder is not the default one. Calls find what their initializers have set."""
    out = said(
        program("""
            import adaptor, os

            def begin(word):
                os.environ["BEGUN"] = word

            def nested(n):
                word = os.environ["BEGUN"]
                with adaptor.Executor(name="inner", initializer=begin, initargs=(word,)) as inner:
                    return inner.submit(os.getenv, "BEGUN").result() + str(inner.bag)

            if __name__ == "__main__":
                with adaptor.Executor(name="outer", initializer=begin, initargs=("x" * 100_000,)) as outer:
                    word = outer.submit(nested, 1).result()
                    print(len(word), word[-2:])
        """)
    )
    assert out.split() == ["100001", "x2"]
    assert [bag["name"] for bag in lab.ask("status", "all")["bags"]] == ["outer", "inner"]
    until(lambda: not list(lab.work.glob("adaptor-*/*.call")), "the files of the initializers are removed")


_TESTS = ["test_submit", "test_map", "test_map_exception"]


def test_tests_of_python_itself(lab: Lab) -> None:
    """`make clients` runs more of them."""
    if reason := cpython.unavailable():
        pytest.skip(reason)
    lab.configure(LOCAL)
    done = run_text(
        [sys.executable, "-m", "lab.clients.cpython", *_TESTS],
        env={**lab.environment, "ADAPTOR_CONFIG": str(lab.config)},
        cwd=Path(__file__).parents[2],
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    assert f"Ran {len(_TESTS)} tests" in done.stderr


def test_what_has_started_is_not_cancelled_and_what_waits_is(lab: Lab, program: Program) -> None:
    lab.configure(site("local", (1, 2, "1h"), processors=3))  # one worker of two slots
    out = said(
        program("""
            import adaptor, os, time

            def stay(path):
                open(path, "w").close()
                while os.path.exists(path):
                    time.sleep(0.02)
                return "stayed"

            def stays(path):
                future = executor.submit(stay, path)
                while not os.path.exists(path):
                    time.sleep(0.02)
                return future

            if __name__ == "__main__":
                executor = adaptor.Executor()
                executor.with_resources(cpus=2).submit(int).result()  # so the only request has both
                failing = [executor.submit(int, "no number") for _ in range(30)]  # no bag stops for it
                print({type(future.exception()).__name__ for future in failing})
                first = stays("here")
                print(executor.submit(int).result())  # told by the worker after the start of the first
                second = stays("there")
                waiting = [executor.submit(int) for _ in range(20)]
                print(waiting[0].cancel(), waiting[0].cancelled(), waiting[0].done())
                print(first.cancel(), first.done())
                executor.shutdown(wait=False, cancel_futures=True)
                os.unlink("here")
                os.unlink("there")
                print(first.result(), second.result(), all(future.cancelled() for future in waiting))
        """)
    )
    assert out.splitlines() == [
        "{'ValueError'}", "0", "True True True", "False False", "stayed stayed True"
    ]  # fmt: skip


def test_daemon_and_worker_are_killed_in_the_middle_of_a_map(lab: Lab, program: Program) -> None:
    running = program("""
        import adaptor, pathlib, time

        def square(x):
            while not pathlib.Path(f"go-{x // 10}").exists():
                time.sleep(0.05)
            (pathlib.Path("done") / str(x)).touch()
            return x * x

        if __name__ == "__main__":
            pathlib.Path("done").mkdir()
            with adaptor.Executor() as executor:
                assert list(executor.map(square, range(40))) == [x * x for x in range(40)]
    """)
    done = lab.work / "done"
    lab.release("go-0")
    until(lambda: done.exists() and len(os.listdir(done)) == 10, "calls have run")
    lab.kill_daemon()
    lab.release("go-1")
    until(lambda: len(os.listdir(done)) == 20, "calls go on")
    workers_of(lab)[0].kill()
    lab.release("go-2")
    lab.release("go-3")
    said(running)
    status = lab.status()
    assert (status["state"], status["done"], status["failed"]) == ("done", 40, 0)
