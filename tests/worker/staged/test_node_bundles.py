"""Tasks see the copy of what their bag stages; where there can be none, the folders themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.bag_spec import BUNDLES, Interpreter
from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.worker.output import CannotStartError
from adaptor.worker.slots import HeldTask
from adaptor.worker.staged import node_bundles
from adaptor.worker.staged.node_bundles import NodeBundles
from tests.bundles.staged import archive_of, environment, packed


class Node:
    """A node whose disk is a folder, and a bag that stages an environment and a file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.disk = root / "disk"
        self.disk.mkdir(mode=0o700)
        self.venv = environment(root / "work" / ".venv")
        (root / "work" / "data").write_text("content")
        self.bundle = packed(root / "state", self.venv, root / "work" / "data")
        self.bag = BagContext(3, str(root / "work"), "/out", {"PATH": "/usr/bin"}, bundle=self.bundle)
        self.said: list[str] = []
        self.bundles = NodeBundles(
            root / "state" / BUNDLES, root / "links", {}, "n1", 10**9, self.said.append
        )
        self.bundles.folder = str(self.disk)

    @property
    def copy(self) -> str:
        return f"{self.disk}/adaptor-{os.geteuid()}/{self.bundle.digest[:24]}"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def held(bag: BagContext, command: str | list[str]) -> HeldTask:
    return HeldTask(Lease(AttemptKey(bag.bag, 0, 1), command, 0.0), bag)


def test_a_task_sees_the_copy(node: Node) -> None:
    node.bundles.prepare(node.bag)
    node.bundles.prepare(msgspec.structs.replace(node.bag, bag=4))
    assert node.said == [f"{node.copy}: made"]
    found = node.bundles.environment(node.bag, {"PATH": "/usr/bin"})
    assert found["ADAPTOR_STAGE"] == node.copy
    assert found["PATH"] == f"{node.copy}/.venv/bin:/usr/bin"
    started = node.bundles.starting(held(node.bag, ".venv/bin/tool data"), {})
    assert started.lease.command == f"{node.copy}/.venv/bin/tool data"
    assert not node.bundles.take_remarks()


def test_calls_run_in_the_python_of_the_copy(node: Node) -> None:
    python = Interpreter((f"{node.venv}/bin/python", "-O"), "3.12", (f"{node.venv}/lib", "/usr/lib"))
    bag = msgspec.structs.replace(node.bag, interpreter=python)
    node.bundles.prepare(bag)
    found = node.bundles.starting(held(bag, []), {}).bag.interpreter
    assert found is not None
    assert found.command == (f"{node.copy}/.venv/bin/python", "-O")
    assert found.path == (f"{node.copy}/.venv/lib", "/usr/lib")


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.bundles.local_disks.in_memory", lambda _folder, _mounts: False)


@pytest.mark.usefixtures("on_disk")
def test_a_copy_waits_for_the_next_bag_of_the_same_content(node: Node) -> None:
    """Bags one after another unpacked it anew, each time."""
    for number in (3, 4):
        node.bundles.prepare(msgspec.structs.replace(node.bag, bag=number))
        node.bundles._forget(number)
        assert Path(node.copy).is_dir()
    assert node.said == [f"{node.copy}: made"]
    node.bundles.remove()
    assert not Path(node.copy).exists()


def others(node: Node) -> Iterator[BagContext]:
    """Bags that stage something else each."""
    for number in range(10, 20):
        (node.root / "work" / "data").write_text(f"content {number}")
        bundle = packed(node.root / "state", node.root / "work" / "data")
        yield msgspec.structs.replace(node.bag, bag=number, bundle=bundle)


@pytest.mark.usefixtures("on_disk")
def test_few_unused_copies_stay(node: Node) -> None:
    node.bundles.prepare(node.bag)
    node.bundles._forget(node.bag.bag)
    bags = others(node)
    for _, other in zip(range(2), bags, strict=False):
        node.bundles.prepare(other)
        assert Path(node.copy).is_dir()
        node.bundles._forget(other.bag)
    assert not Path(node.copy).exists(), "it is the oldest"


@pytest.mark.usefixtures("on_disk")
def test_unused_copies_go_where_another_one_needs_the_disk(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.bundles.prepare(node.bag)
    node.bundles._forget(node.bag.bag)
    monkeypatch.setattr(
        "adaptor.bundles.local_disks.problem_with",
        lambda *_args, **_named: "full" if Path(node.copy).exists() else "",
    )
    other = next(others(node))
    node.bundles.prepare(other)
    assert not Path(node.copy).exists()
    assert len(node.said) == 2
    assert node.said[1].endswith(": made")


def test_a_copy_in_memory_goes_with_the_last_bag_that_needs_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptor.bundles.local_disks.in_memory", lambda _folder, _mounts: True)
    for number in (3, 4):
        node.bundles.prepare(msgspec.structs.replace(node.bag, bag=number))
    node.bundles._forget(3)
    assert Path(node.copy).is_dir()
    node.bundles._forget(4)
    assert not Path(node.copy).exists()


def noexec(node: Node) -> str:
    node.bundles.folder = "/proc"
    return "/proc: "


def full(node: Node) -> str:
    node.bag = msgspec.structs.replace(node.bag, bundle=msgspec.structs.replace(node.bundle, size=1 << 60))
    return "do not fit"


def damaged(node: Node) -> str:
    archive_of(node.root / "state", node.bundle).write_bytes(b"changed")
    return "the archive is damaged, or was changed after the bag was submitted"


def gone(node: Node) -> str:
    archive_of(node.root / "state", node.bundle).unlink()
    return "No such file or directory"


def squatted(node: Node) -> str:
    (node.disk / f"adaptor-{os.geteuid()}").symlink_to("/etc")
    return "it is not a private folder of yours"


@pytest.mark.parametrize("spoil", [noexec, full, damaged, gone, squatted])
def test_without_a_copy_tasks_get_the_folders_themselves_and_the_reason_is_told(
    node: Node, spoil: object
) -> None:
    assert callable(spoil)
    why = spoil(node)
    for _ in range(2):
        node.bundles.prepare(node.bag)
    node.bundles.prepare(msgspec.structs.replace(node.bag, bag=4))
    remark, other = node.bundles.take_remarks()
    assert (remark.bag, other.bag) == (3, 4)
    assert remark.text == other.text
    assert remark.text.startswith("node n1 reads the staged folders themselves, as it has no copy: ")
    assert why in remark.text
    found = node.bundles.environment(node.bag, {"PATH": "/usr/bin"})
    assert Path(found["ADAPTOR_STAGE"], "data").read_text() == "content"
    assert Path(found["VIRTUAL_ENV"]).resolve() == node.venv.resolve()
    started = node.bundles.starting(held(node.bag, ".venv/bin/tool"), {})
    assert started.lease.command == ".venv/bin/tool"
    assert not [path for path in node.disk.rglob("*") if path.name == "data"]
    node.bundles.remove()
    assert not list((node.root / "links").iterdir())
    assert (node.root / "work" / "data").exists(), "links go, and not what they lead to"


def test_without_a_copy_and_without_the_folders_a_task_cannot_start(node: Node) -> None:
    gone(node)
    (node.root / "work" / "data").unlink()
    with pytest.raises(
        CannotStartError, match=r"data: is not on n1, and no copy of what the bag stages: .*No such"
    ):
        node.bundles.prepare(node.bag)


def test_a_worker_that_leaves_does_not_wait_for_a_copy_that_is_being_made(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_bundles, "_LEAVING", 0.01)
    node.bundles.prepare(node.bag)
    with node.bundles._lock:
        node.bundles.remove()
    assert Path(node.copy).is_dir()
    node.bundles.remove()
    assert not Path(node.copy).exists()


def test_a_bag_that_stages_nothing_costs_nothing(node: Node) -> None:
    bag = msgspec.structs.replace(node.bag, bundle=None)
    node.bundles.prepare(bag)
    given = {"PATH": "/usr/bin"}
    assert node.bundles.environment(bag, given) == given
    attempt = held(bag, ".venv/bin/tool")
    assert node.bundles.starting(attempt, {}) is attempt
