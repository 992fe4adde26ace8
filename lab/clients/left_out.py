"""Tests of others that are left out, by their names without parameters, and why. All others have to pass."""

from __future__ import annotations

from collections.abc import Mapping

_IMPORTS = "imports the executor from concurrent.futures"
_POOL = "looks into the private threads and processes of a pool"
_MANAGER = "passes on a multiprocessing manager, which only children of its process may talk to"
_MEMMAP = "expects arrays as memory maps of files, which joblib makes for processes of this machine"
_ONE_PROCESS = "has several tasks in a job: a job of the adaptor is one process"
_CHILD = "expects that a job runs at once, as a child of this process"

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
    "joblib": {
        "test_error_capture": "looks into the private _workers of a pool",
        "test_dispatch_multiprocessing": _MANAGER,
        "test_initializer_context": _MANAGER,
        "test_initializer_parallel": _MANAGER,
        "test_nested_backend_in_sequential": "expects one job by default; ours are all, as of dask's backend",
        "test_auto_memmap_on_arrays_from_generator": _MEMMAP,
        "test_memmapping_leaks": _MEMMAP,
        "test_thread_bomb_mitigation": "a RecursionError that pickle cannot take comes as a CallError",
    },
    "dask": {
        "test_traverse_false": "expects the very object that was passed on, not its pickled copy",
        "test_to_delayed_optimize_graph": "counts calls in a variable of this process",
    },
    "submitit": {
        "test_local_job": _ONE_PROCESS,
        "test_get_first_task_error": _ONE_PROCESS,
        "test_stdout": _ONE_PROCESS,
        "test_killed": _CHILD,
        "test_cancel": _CHILD,
        "test_setup": "names the cluster local, and its parameter local_setup; ours is adaptor_setup",
    },
}
