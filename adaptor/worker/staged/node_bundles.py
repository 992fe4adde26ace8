"""The copies of what bags stage, on this node: one for all its workers, and how the tasks of a bag see it.

The next bag may stage the same: a copy that no bag needs now stays until the worker leaves, another one needs
the disk, or newer ones are unused, too.

Where no disk of the node takes a copy, tasks get the folders themselves, and the daemon hears why.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from adaptor.bag_spec import Bundle, Interpreter
from adaptor.private_files import NotOursError, open_ours
from adaptor.protocol.messages import BagContext, BagRemark
from adaptor.worker.output import CannotStartError, remove_folder
from adaptor.worker.scripts import scratch_of
from adaptor.worker.slots import HeldTask

if TYPE_CHECKING:  # only workers of bags that stage something need them
    from adaptor.bundles.copies import Copy
    from adaptor.bundles.environments import Relocation

_KEPT = 2  # copies that no bag needs now
_LEAVING = 5.0  # seconds for which a worker that leaves waits for a thread that makes or removes a copy
_MOUNTS = Path("/proc/self/mountinfo")


class _Placed(msgspec.Struct):
    """The place of a bundle on this node."""

    relocation: Relocation
    copy: Copy | None = None
    """The copy; None: no disk takes it, and the relocation leads to the folders themselves."""
    problem: str = ""
    """The reason why there is no copy, as a sentence for `adaptor why`."""


class NodeBundles:
    def __init__(
        self,
        archives: Path,
        links: Path,
        worker: Mapping[str, str],
        node: str,
        memory: int,
        say: Callable[[str], None],
    ) -> None:
        """
        Args:
            archives: the folder of the archives.
            links: the folder for links to what cannot be copied.
            worker: the worker's own environment.
            memory: bytes that its tasks may use together.
            say: writes a line into the worker's log.
        """
        self.folder = ""  # `node_folder` of the site; empty: it names none
        self._archives = archives
        self._links = links
        self._worker = worker
        self._node = node
        self._memory = memory
        self._say = say
        self._lock = threading.Lock()
        self._placed: dict[str, _Placed] = {}  # by digest
        self._users: dict[str, set[int]] = {}  # by digest: the bags
        self._unused: list[str] = []  # digests of copies that no bag needs, the newest last
        self._remarks: list[BagRemark] = []

    def take_remarks(self) -> list[BagRemark]:
        """News for those who ask about a bag."""
        taken, self._remarks = self._remarks, []
        return taken

    def prepare(self, bag: BagContext) -> None:
        """Copy what a bag stages unless that is done; in a thread, because that may take minutes.

        Raises CannotStartError: there is no copy, and the folders themselves are not there.
        """
        bundle = bag.bundle
        if bundle is None:
            return
        with self._lock:
            if bundle.digest in self._unused:
                self._unused.remove(bundle.digest)
            if bundle.digest not in self._placed:
                self._placed[bundle.digest] = self._place(bundle)
            placed, users = self._placed[bundle.digest], self._users.setdefault(bundle.digest, set())
            if placed.problem and bag.bag not in users:
                self._remarks.append(BagRemark(bag.bag, placed.problem))
            users.add(bag.bag)

    def forget(self, bag: int) -> None:
        """A bag has ended; copies that no other may need are removed, in a thread."""
        if any(bag in bags for bags in self._users.values()):
            threading.Thread(target=self._forget, args=(bag,), name="copies", daemon=True).start()

    def _forget(self, bag: int) -> None:
        with self._lock:
            for digest, bags in list(self._users.items()):
                bags.discard(bag)
                if not bags:
                    del self._users[digest]
                    self._unused.append(digest)
            for digest in list(self._unused):
                if digest not in self._unused[-_KEPT:] or not self._may_stay(self._placed.get(digest)):
                    self._release_unused(digest)

    def _may_stay(self, placed: _Placed | None) -> bool:
        """Whether a copy may wait for another bag: not one that takes memory."""
        if placed is None or placed.copy is None:
            return False
        from adaptor.bundles.local_disks import in_memory

        return not in_memory(placed.relocation.root, _mounts())

    def _release_unused(self, digest: str) -> None:
        self._unused.remove(digest)
        self._release(self._placed.pop(digest, None))

    def remove(self) -> None:
        """Remove the copies that no other worker uses; this worker leaves, and no task runs.

        What a thread is still making or removing then, the next worker of the node removes.
        """
        if self._lock.acquire(timeout=_LEAVING):
            try:
                for digest in list(self._placed):
                    self._release(self._placed.pop(digest))
            finally:
                self._lock.release()

    @staticmethod
    def _release(placed: _Placed | None) -> None:
        if placed is None:
            return
        if placed.copy is not None:
            placed.copy.release()
        else:
            remove_folder(placed.relocation.root)

    # --- how tasks see them: all of it after `prepare` -------------------------------------------

    def environment(self, bag: BagContext, given: dict[str, str]) -> dict[str, str]:
        """The variables of a task of this bag."""
        placed = self._of(bag)
        return given if placed is None else placed.relocation.variables(given)

    def starting(self, held: HeldTask, environment: Mapping[str, str]) -> HeldTask:
        """An attempt whose program, or whose Python, is that of the copy, and runs in the bag's container.

        `environment`: of the attempt. Raises CannotStartError: there is nothing that runs a container.
        """
        placed = self._of(held.bag)
        if placed is None:
            return held
        if placed.copy is not None:
            held = _relocated(held, placed.relocation)
        if not held.bag.image:
            return held
        from adaptor.worker.staged.containers import in_container

        command = in_container(held, placed.relocation.root, environment)
        return msgspec.structs.replace(held, lease=msgspec.structs.replace(held.lease, command=command))

    def _of(self, bag: BagContext) -> _Placed | None:
        return None if bag.bundle is None else self._placed.get(bag.bundle.digest)

    # --- making them -----------------------------------------------------------------------------

    def _place(self, bundle: Bundle) -> _Placed:
        """Raises CannotStartError."""
        from adaptor.bundles.environments import relocation_of

        copy, problem = self._copied(bundle)
        if copy is None and self._unused:
            for digest in list(self._unused):
                self._release_unused(digest)
            copy, problem = self._copied(bundle)
        if copy is not None:
            return _Placed(copy.relocation, copy)
        if missing := [item.path for item in bundle.items if not os.path.exists(item.path)]:  # noqa: PTH110
            raise CannotStartError(
                f"{missing[0]}: is not on {self._node}, and no copy of what the bag stages: {problem}"
            )
        text = f"node {self._node} reads the staged folders themselves, as it has no copy: {problem}"
        self._say(text)
        root = self._links / f"stage-{bundle.digest[:24]}"
        try:
            remove_folder(root)
            root.mkdir(mode=0o700, parents=True)
            for item in bundle.items:
                (root / item.name).symlink_to(item.path)
        except OSError as error:
            raise CannotStartError(f"{root}: cannot be made: {error.strerror}") from error
        return _Placed(relocation_of(bundle, str(root)), problem=text)

    def _copied(self, bundle: Bundle) -> tuple[Copy | None, str]:
        """The copy, or why there is none."""
        from adaptor.bundles.archives import archive_name
        from adaptor.bundles.copies import copy_of
        from adaptor.bundles.local_disks import disks_for, own_folder, problem_with
        from adaptor.bundles.unpacking import DamagedBundleError

        archive = self._archives / archive_name(bundle.digest)
        try:
            handle = open_ours(archive, closed=True)
        except OSError as error:
            return None, f"{archive}: {error.strerror}"
        problems = []
        with os.fdopen(handle, "rb") as file:
            for disk in disks_for(self.folder, self._worker, scratch_of(self._worker)):
                named = bool(self.folder)
                problem = problem_with(disk, bundle, self._memory, _mounts(), named=named)
                if not problem:
                    try:
                        copy, made = copy_of(bundle, file, own_folder(disk))
                    except DamagedBundleError as error:
                        return None, f"{archive}: {error}"
                    except NotOursError as error:
                        problem = f"{disk}/adaptor-{os.geteuid()}: {error.strerror}"
                    except (OSError, ValueError) as error:
                        problem = f"{disk}: {getattr(error, 'strerror', None) or error}"
                    else:
                        self._say(f"{copy.relocation.root}: {'made' if made else 'used, as it is there'}")
                        return copy, ""
                problems.append(problem)
        return None, "; ".join(problems)


def _relocated(held: HeldTask, relocation: Relocation) -> HeldTask:
    lease, bag = held.lease, held.bag
    command: str | list[str]
    if isinstance(lease.command, str):
        command = relocation.line(lease.command, held.cwd)
    else:
        command = relocation.words(lease.command, held.cwd)
    if bag.interpreter is not None:
        bag = msgspec.structs.replace(bag, interpreter=_copied(bag.interpreter, relocation))
    return msgspec.structs.replace(held, lease=msgspec.structs.replace(lease, command=command), bag=bag)


def _copied(interpreter: Interpreter, relocation: Relocation) -> Interpreter:
    program, *options = interpreter.command
    return msgspec.structs.replace(
        interpreter,
        command=(relocation.path(program), *options),
        path=tuple(map(relocation.path, interpreter.path)),
    )


def _mounts() -> str:
    with contextlib.suppress(OSError):
        return _MOUNTS.read_text(encoding="utf-8", errors="replace")
    return ""
