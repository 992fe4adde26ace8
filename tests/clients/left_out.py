"""Tests of others that are left out, by their names without parameters, and why. All others have to pass."""

from __future__ import annotations

from collections.abc import Mapping

_IMPORTS = "imports the executor from concurrent.futures"
_POOL = "looks into the private threads and processes of a pool"
_LOCAL = "expects that calls run on this machine, in children of this process"

LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "cpython": {
        "test_interpreter_shutdown": _IMPORTS,
        "test_submit_after_interpreter_shutdown": _IMPORTS,
        "test_hang_gh83386": _IMPORTS,
        "test_hang_gh94440": _IMPORTS,
        "test_cancel_futures": "expects that a call has started the moment it is submitted",
        "test_shutdown_deadlock": _POOL,
        "test_shutdown_deadlock_pickle": _POOL,
        "test_gh105829_should_not_deadlock_if_wakeup_pipe_full": _POOL,
        "test_crash_big_data": _POOL,
    },
    "joblib": {},
    "dask": {},
    "submitit": {},
}
