"""A daemon with everything that a neighbour could try to reach, and the neighbour: another Unix user."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil

from adaptor import api
from adaptor.api.question import A
from adaptor.client.asking import DaemonConnection, NoAnswerError
from adaptor.protocol.access import CLIENT_ACCESS, Access, read_access, worker_access
from adaptor.protocol.keys import Keys, load_or_make_keys
from tests.e2e.lab import Lab
from tests.living import until

MALLORY = 12352
"""A user without an account."""
MB = 2**20
DESCRIPTORS = 1024
_CONFIG = """
sites:
  here: {{backend: local, processors: 1, limits: {{max_pending_requests: 1, max_proc: 1, max_tr: 1h}}}}
  spooled: {{backend: local, processors: 1, spool: {spool},
            limits: {{max_pending_requests: 1, max_proc: 1, max_tr: 1h}}}}
  free: {{backend: local, processors: 1, limits: {{max_pending_requests: 1, max_proc: 1, max_tr: 1h}}}}
"""
_Value = TypeVar("_Value")


class World:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.lab = Lab(root)
        self.spool = root / "spools"
        self.lab.configure(_CONFIG.format(spool=self.spool))
        subprocess.run(
            ["prlimit", f"--nofile=256:{DESCRIPTORS}", *self.lab.command("daemon", "start")],
            env=self.lab.environment,
            check=True,
            capture_output=True,
            timeout=60,
        )
        self.daemon = psutil.Process(self.lab.daemon_pid())
        self.lab.bag(["sleep 3000", "sleep 3000"])
        for site in ("here", "spooled"):
            self.lab.submit("tasks.bag", "--site", site)
        until(lambda: all(self.lab.status(bag)["running"] == 1 for bag in (1, 2)), "a task runs at each site")
        (self.inbox,) = self.spool.glob("*/in")
        self.client_port = int(self.access().addresses[0].rpartition(":")[2])
        self.worker_port = int(self.access(worker_access("here")).addresses[0].rpartition(":")[2])
        self.ports = (self.worker_port, self.client_port)
        self.keys: Keys = load_or_make_keys(self.state)

    @property
    def state(self) -> Path:
        return self.lab.state

    def access(self, name: str = CLIENT_ACCESS) -> Access:
        return read_access(self.state / name)

    def ask(self, question: api.Question[A], patience: float = 30.0) -> A | None:
        """Ask as the command line does; None: no answer in time."""
        connection = DaemonConnection(self.state)
        try:
            return connection.ask(question, patience)
        except NoAnswerError:
            return None
        finally:
            connection.close()

    def bags(self) -> int:
        answer = self.ask(api.GetBags())
        assert answer is not None
        return len(answer.bags)

    def processes(self) -> list[psutil.Process]:
        """The daemon, its workers and their supervisors."""
        ours = [self.daemon]
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("ADAPTOR_ACCESS", "").startswith(str(self.state)):
                    ours.append(process)
        return ours

    def placed(self, path: Path, make: Callable[[Path], object], owner: int) -> None:
        """Have a file, folder or link of this user appear at the path, whole."""
        made = self.own_folder() / path.name
        make(made)
        os.chown(made, owner, owner, follow_symlinks=False)
        made.rename(path)

    @property
    def secrets(self) -> list[bytes]:
        """The secret keys, without the words around them and without ends of lines."""
        identities = (self.keys.server, self.keys.worker, self.keys.client)
        return [identity.key.splitlines()[1].encode() for identity in identities]

    def resident(self) -> int:
        return int(self.daemon.memory_info().rss)

    def well(self) -> None:
        """The daemon answers, and both tasks still run."""
        answer = self.ask(api.GetBags())
        assert answer is not None
        assert [bag.running for bag in answer.bags[:2]] == [1, 1]

    def own_folder(self) -> Path:
        """A folder of the neighbour's own, where everybody may look."""
        folder = Path(tempfile.mkdtemp(dir=self.root, prefix="mallory-"))
        folder.chmod(0o755)
        os.chown(folder, MALLORY, MALLORY)
        return folder


def as_mallory(act: Callable[[], _Value]) -> _Value:
    """Result of doing this as the other user, in a process of his own; his errors are raised here."""
    "host".encode("idna")  # he may not read Python's own modules either, so what he needs is loaded first
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(MALLORY)
            os.setuid(MALLORY)
            os.environ["HOME"] = "/"
            try:
                result: tuple[bool, Any] = (True, act())
            except BaseException as error:
                result = (False, error)
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(result, pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    fine, value = pickle.loads(data)
    if not fine:
        raise value
    return value  # type: ignore[no-any-return]


def all_below(*roots: Path) -> Iterator[Path]:
    """Files, folders and links; what is removed meanwhile may be among them or not."""
    for root in roots:
        for folder, folders, files in os.walk(root):
            yield from (Path(folder, name) for name in (*folders, *files))


@contextlib.contextmanager
def callers(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Connections that are open and say nothing yet."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.settimeout(20)
            with contextlib.suppress(OSError):  # turned away already
                connection.connect(("127.0.0.1", port))
            made.append(connection)
        yield made
