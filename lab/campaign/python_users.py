"""Programs of others on executors, run by hand against `adaptor.Executor`:

    pip install scikit-learn 'dask[array]' submitit
    python -m lab.campaign.python_users

Needs a daemon, or a configuration by which one starts. Results are held to those of this process alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import adaptor


def grid_search() -> None:
    """scikit-learn under joblib."""
    import joblib
    import numpy as np
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    data, target = load_iris(return_X_y=True)
    grid = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]}
    adaptor.register_joblib()
    with joblib.parallel_config("adaptor", name="grid"):
        ours = GridSearchCV(SVC(), grid, n_jobs=-1, cv=5).fit(data, target)
    alone = GridSearchCV(SVC(), grid, cv=5).fit(data, target)
    assert ours.best_params_ == alone.best_params_
    assert np.array_equal(ours.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


def dask_array() -> None:
    import dask.array as da
    import numpy as np

    x = da.random.default_rng(1).random((2000, 2000), chunks=(500, 500))
    total = ((x + x.T) @ x).sum(axis=0)
    with adaptor.Executor(name="dask") as executor:
        found = total.compute(scheduler=executor)
    assert np.allclose(found, total.compute(scheduler="sync"))


def add(a: int, b: int) -> int:
    return a + b


def submitit_example() -> None:
    """The example of submitit's README, and its job arrays."""
    import submitit

    with tempfile.TemporaryDirectory() as folder:
        executor = submitit.AutoExecutor(folder=f"{folder}/%j", cluster="adaptor")
        executor.update_parameters(timeout_min=1, name="submitit")
        assert executor.submit(add, 5, 7).result() == 12
        assert [job.result() for job in executor.map_array(add, range(4), range(4))] == [0, 2, 4, 6]
        with executor.batch():
            jobs = [executor.submit(add, n, 1) for n in range(3)]
        assert [job.result() for job in jobs] == [1, 2, 3]


def main() -> None:
    for case in (grid_search, dask_array, submitit_example):
        run: Callable[[], None] = case
        began = time.monotonic()
        run()
        print(f"{case.__name__}: right results in {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
