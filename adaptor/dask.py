"""Workers of `dask.distributed` as tasks, on the processors of the configured sites.

    with AdaptorCluster(8, mem="4G", lifetime="30m") as cluster, distributed.Client(cluster) as client:
        cluster.adapt(maximum=200)
        futures = client.map(simulate, range(10_000))

The scheduler runs in the program. A worker is a call of an `adaptor.Executor`. It ends after its lifetime,
and a new one follows as long as the cluster wants it: so the adaptor knows how long its tasks take, and a
worker moves its results to others before its pilot ends.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time as clock
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any

from adaptor.bundles.local_disks import own_folder
from adaptor.errors import UsageError
from adaptor.executor.executor import Executor
from adaptor.executor.session import CallFuture
from adaptor.extras import require_extra
from adaptor.option_kinds import DURATION, MEMORY

require_extra("dask", "distributed")
from distributed import Scheduler, Status, Worker  # noqa: E402 (said what is missing)
from distributed.deploy.spec import ProcessInterface, SpecCluster  # noqa: E402
from distributed.security import Security  # noqa: E402

SHORTEST = 10.0  # seconds of a lifetime, in which a worker starts, computes and hands over its results
LEAVING = 60.0  # seconds beyond its lifetime for the start of a worker, and to move its results to others
LONELY = 60.0  # seconds for which a worker looks for its scheduler before it ends
SILENT = 600.0  # seconds after which the scheduler has given up a worker of a dead node, and its name
AGAIN = 5.0  # seconds between two tries to be taken by the scheduler
RETRIES = 3  # failures in a row, as of a worker that ran out of memory, after which it stays away
ENDED = 10.0  # seconds in which the program ends the call of a worker that its scheduler has closed
ALIVE = 0.9  # of its lifetime: what a worker has to reach for its runtime to be learned from

_log = logging.getLogger(__name__)


class ShortLife(Exception):
    """A worker ended long before its lifetime: the scheduler closed it, or was gone."""


class AdaptorCluster(SpecCluster):  # type: ignore[misc]
    """A cluster of Dask: `scale`, `adapt`, and a client for it as for any other.

    Its links are encrypted and authenticated unless `security` says otherwise.
    """

    def __init__(
        self,
        n_workers: int = 0,
        *,
        lifetime: str | float = "30m",
        worker_options: Mapping[str, Any] | None = None,
        scheduler_options: Mapping[str, Any] | None = None,
        security: Security | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        **options: Any,
    ) -> None:
        """Start the scheduler here, and ask for workers.

        Args:
            n_workers: workers to begin with.
            lifetime: how long a worker lives, such as "30m", or seconds: the shorter, the more holes of the
                queue it fits in. A task of Dask that takes longer never ends.
            worker_options: of `distributed.Worker`; its threads are `cpus`, its `memory_limit` is `mem`.
            scheduler_options: of `distributed.Scheduler`, such as `{"interface": "ib0"}`, by which the nodes
                reach it. `{"dashboard": True}` shows a page that all users of this machine can read.
            security: None: certificates that are made for this cluster alone.
            options: of `adaptor.Executor`: cpus and mem of a worker, site, name and others.

        Raises: as `adaptor.Executor`; ValueError: the lifetime is too short.
        """
        seconds = float(DURATION.parse(str(lifetime), 0.0))
        if seconds < SHORTEST:
            raise ValueError(f"lifetime {lifetime}: a worker lives for {SHORTEST:.0f} s at least")
        security = security or Security.temporary()
        try:
            self._executor = Executor(time=seconds + LEAVING, **{"name": "dask", **options})
        except UsageError as error:
            raise UsageError(f"lifetime {lifetime}, and a minute to leave: {error}") from None
        settings = {"nthreads": options.get("cpus", 1), **(worker_options or {})}
        if options.get("mem") is not None:
            settings = {"memory_limit": MEMORY.parse(str(options["mem"]), 0.0), **settings}
        start = partial(live, lifetime=seconds, tls=_settings(security), options=settings)
        worker = {"cls": _Call, "options": {"executor": self._executor, "start": start}}
        terms = {"protocol": "tls" if security.require_encryption else "tcp", "security": security}
        dashboard = {"dashboard": False, **(scheduler_options or {})}
        try:
            super().__init__(
                scheduler={"cls": Scheduler, "options": {**terms, **dashboard}},
                workers=dict.fromkeys(range(n_workers), worker),
                worker=worker,
                security=security,
                asynchronous=asynchronous,
                loop=loop,
                silence_logs=logging.ERROR,
                name=options.get("name"),
            )
        except BaseException:
            self._executor.shutdown(wait=False, cancel_futures=True)
            raise

    @property
    def bag(self) -> int:
        """The number of its bag: `adaptor status`, `adaptor results` and `adaptor why` show more of it."""
        return self._executor.bag

    def _update_worker_status(self, op: str, msg: Any) -> None:
        # A worker that is lost begins again, as every task: what SpecCluster would do is to give it up.
        super(SpecCluster, self)._update_worker_status(op, msg)

    async def _close(self) -> None:
        await super()._close()
        self._executor.shutdown(wait=False, cancel_futures=True)


class _Call(ProcessInterface):  # type: ignore[misc]
    """A worker as the cluster sees it: one call after another, until it is closed."""

    def __init__(self, scheduler: str, name: object, executor: Executor, start: partial[None]) -> None:
        super().__init__(scheduler, name)
        self._executor = executor
        self._name = name
        self._start = partial(start, scheduler, name)
        self._future: CallFuture[None] | None = None
        self._failures = 0

    async def start(self) -> None:
        self._submit()
        await super().start()

    def _submit(self) -> None:
        loop = asyncio.get_running_loop()
        self._future = self._executor.submit(self._start)
        self._future.add_done_callback(lambda future: loop.call_soon_threadsafe(self._ended, future))

    def _ended(self, future: Future[None]) -> None:
        if self.status != Status.running:
            return
        try:
            future.result()
            self._failures = 0
        except (CancelledError, ShortLife):
            self._give_up()  # ended by `adaptor cancel`, or by Dask
            return
        except Exception:
            self._failures += 1
            _log.exception("worker %s of the cluster failed", self._name)
        if self._failures > RETRIES:
            _log.error("worker %s failed %d times in a row and stays away", self._name, self._failures)
            self._give_up()
        else:
            asyncio.get_running_loop().call_later(AGAIN * self._failures, self._again)

    def _again(self) -> None:
        if self.status == Status.running:
            self._submit()

    def _give_up(self) -> None:
        """Leave the cluster, which asks for another one in its place when it is scaled or adapts."""
        self.status = Status.failed
        cluster = getattr(self, "_cluster", lambda: None)()  # what SpecCluster sets once it has started
        if cluster is not None:
            cluster.workers.pop(self._name, None)
            cluster.worker_spec.pop(self._name, None)

    async def close(self) -> None:
        await super().close()
        if self._future is not None:
            await asyncio.to_thread(self._executor.abort, [self._future], enough=True)


def _settings(security: Security) -> dict[str, Any]:
    """Settings from which a worker makes the same security."""
    tls = security.get_tls_config_for_role("worker")
    return {
        "require_encryption": security.require_encryption,
        "tls_ca_file": tls.get("ca_file"),
        "tls_worker_cert": tls.get("cert"),
        "tls_worker_key": tls.get("key"),
    }


def _scratch() -> str:
    """A private folder of the node for spilled data; Dask removes there what killed workers have left."""
    try:
        return own_folder(tempfile.gettempdir())
    except OSError:  # another user has taken its name
        return tempfile.mkdtemp(prefix="adaptor-dask-")


def live(
    scheduler: str, name: object, *, lifetime: float, tls: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Be a worker for its lifetime, in the task of a call.

    Raises:
        ShortLife: it ended long before, so that its runtime says nothing of others.
    """

    begun = clock.monotonic()

    async def serve() -> None:
        terms = {"local_directory": _scratch(), "death_timeout": LONELY, **options}
        security = Security(**{key: value for key, value in tls.items() if value is not None})
        async with Worker(scheduler, name=name, lifetime=lifetime, security=security, **terms) as worker:
            await worker.finished()

    while True:
        try:
            asyncio.run(serve())
            break
        except RuntimeError as error:
            if "name taken" not in str(error) or clock.monotonic() > begun + SILENT:
                raise
            clock.sleep(AGAIN)
    if (lived := clock.monotonic() - begun) < ALIVE * lifetime:
        clock.sleep(ENDED)
        raise ShortLife(f"lived for {lived:.0f} s")
