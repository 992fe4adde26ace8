"""joblib's `Parallel`, and so scikit-learn's `n_jobs`, on the processors of the configured sites.

adaptor.register_joblib()
with joblib.parallel_config("adaptor", cpus=2, time="5m"):
    GridSearchCV(model, grid, n_jobs=-1).fit(data, target)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor as StandardExecutor
from concurrent.futures import Future
from typing import Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, register_parallel_backend

from adaptor.executor.executor import Executor
from adaptor.executor.session import CallFuture


class AdaptorBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """A backend of joblib. Short calls are put together, as joblib does for its own processes."""

    default_n_jobs = -1
    supports_retrieve_callback = True
    supports_timeout = True
    supports_return_generator = True

    def __init__(
        self,
        executor: StandardExecutor | None = None,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
        **options: Any,
    ) -> None:
        """Args:
        executor: an `adaptor.Executor` that stays its user's; None: one is opened with the first call, and
            closed with the backend.
        options: of that `adaptor.Executor`.
        """
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        if executor is not None and options:
            raise ValueError(f"{next(iter(options))}: an executor that is given has its own options")
        self._given = executor
        self._own: Executor | None = None
        self._options = options
        self._pending: set[Future[Any]] = set()

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_options: Any) -> int:
        self.parallel = parallel
        return self.effective_n_jobs(n_jobs)

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Calls in one round; negative numbers count from all that the sites have, as joblib's own do."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        if n_jobs > 0:
            return n_jobs
        most = int(getattr(self._executor, "_max_workers", 1))
        if n_jobs == -1:
            return max(2, most)  # with 1, joblib computes in this program, perhaps on a login node
        return max(1, most + 1 + n_jobs)

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Future[Any]], Any] | None = None
    ) -> Future[Any]:
        future = self._executor.submit(func)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """The result of a future that is done; raises what the call raised."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002 (the next call is ready)
        """End the calls, also those that run, after a time-out, an exception or Ctrl-C."""
        executor, pending = self._executor, list(self._pending)
        if isinstance(executor, Executor):
            executor.abort(future for future in pending if isinstance(future, CallFuture))
        for future in pending:
            future.cancel()

    def terminate(self) -> None:
        """A `Parallel` has ended; the executor stays for the next one."""
        self.reset_batch_stats()

    @property
    def _executor(self) -> StandardExecutor:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = Executor(**self._options)
        return self._own


def register() -> None:
    """Let joblib know the backend by the name `adaptor`."""
    register_parallel_backend("adaptor", AdaptorBackend)
