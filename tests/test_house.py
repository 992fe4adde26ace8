"""The source stands as docs/house.md says: floors, purity, clocks, and folders that can be read as a list."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import pytest

from tests.source_tree import ROOT, Module, Tree, circles, ours, reached, read_tree

PURE = (
    *("runtimes", "crafting", "forecast", "scheduling", "donation", "budget", "decisions", "kinds"),
    *("model", "units", "errors", "backoff", "bag_spec", "option_kinds"),
)
"""Rooms that decide. Their results depend on their arguments alone, so that a simulation can ask them too."""

IO = {
    *("asyncio", "concurrent", "io", "logging", "multiprocessing", "os", "pathlib", "select", "selectors"),
    *("shutil", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time"),
    *("apscheduler", "click", "plumbum", "psutil", "rich", "yaml"),
}
"""Libraries by which a module reads a clock, a file, a process or a socket, or waits for one."""

LARGEST_FOLDER = 25
"""Modules in one folder; a longer list is not read."""


@cache
def tree() -> Tree:
    return read_tree()


def block(name: str) -> list[list[str]]:
    """The lines of a fenced block of docs/house.md, each as its words."""
    text = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    found = re.search(rf"^```{name}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/house.md has no block {name}"
    return [line.split() for line in found[1].splitlines() if line.strip()]


def floor_of() -> dict[str, int]:
    """The height of each room: the lowest floor is 0."""
    floors = block("floors")
    return {room: height for height, rooms in enumerate(reversed(floors)) for room in rooms}


def rooms() -> list[str]:
    return sorted({module.room for module in tree().values()} - {"adaptor"})


def modules_of(room: str) -> Iterator[Module]:
    return (module for module in tree().values() if module.room == room)


def pure_modules() -> Iterator[Module]:
    return (module for module in tree().values() if module.room in PURE)


def test_every_room_has_one_floor() -> None:
    listed = [room for floor in block("floors") for room in floor]
    assert sorted(listed) == rooms()


def test_a_room_imports_only_from_rooms_below() -> None:
    heights = floor_of()
    wrong = [
        f"{module.path.relative_to(ROOT)} imports {target}"
        for room in rooms()
        for module in modules_of(room)
        for target in sorted(ours(module, tree()))
        if (other := tree()[target].room) not in (room, "adaptor") and heights[other] >= heights[room]
    ]
    assert not wrong


def test_no_module_imports_itself_in_the_end() -> None:
    assert not list(circles(tree()))


def test_no_import_goes_up_inside_the_daemon() -> None:
    heights = {name: height for height, names in enumerate(reversed(block("daemon"))) for name in names}
    parts = {module.name: _part_of_the_daemon(module) for module in modules_of("daemon")}
    del parts["adaptor.daemon"]
    assert sorted(set(parts.values())) == sorted(heights)
    wrong = [
        f"{name} imports {target}"
        for name, part in parts.items()
        for target in sorted(ours(tree()[name], tree()))
        if parts.get(target, part) != part and heights[parts[target]] >= heights[part]
    ]
    assert not wrong


def _part_of_the_daemon(module: Module) -> str:
    """The folder, or the file, directly below adaptor/daemon."""
    parts = [*module.name.split("."), ""]
    return f"{parts[2]}/" if (ROOT / "adaptor" / "daemon" / parts[2]).is_dir() else parts[2]


def test_a_pure_room_reaches_no_input_and_no_output() -> None:
    arrows = {name: ours(module, tree(), types=False) for name, module in tree().items()}
    wrong = {
        f"{module.name} → {name} imports {arrow.target}"
        for module in pure_modules()
        for name in {module.name, *reached(module.name, arrows)}
        for arrow in tree()[name].imports
        if arrow.target.partition(".")[0] in IO and not arrow.only_types
    }
    assert not sorted(wrong)


def test_a_pure_room_opens_nothing_and_draws_from_given_generators_only() -> None:
    wrong = [
        f"{module.path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node.func)}"
        for module in pure_modules()
        for node in ast.walk(module.code)
        if isinstance(node, ast.Call) and _reaches_outside(ast.unparse(node.func))
    ]
    assert not wrong


def _reaches_outside(call: str) -> bool:
    """Whether a call opens, prints or asks, or draws from the generator that the whole process shares."""
    if call in ("open", "print", "input"):
        return True
    module, _, function = call.rpartition(".")
    return module in ("random", "np.random", "numpy.random") and function not in ("Random", "default_rng")


def test_what_says_that_it_needs_the_standard_library_alone_does() -> None:
    """It starts quickly, or where nothing else is installed: on a node, in a scheduler's prolog."""
    words = re.compile(r"standard\s+library\s+(only|alone)", re.IGNORECASE)
    alone = [name for name, module in tree().items() if words.search(ast.get_docstring(module.code) or "")]
    assert "adaptor.processes.supervisor" in alone
    paths = [str(ROOT), str(ROOT / "plugins" / "donation-agents")]
    code = f"import sys; sys.path[:0] = {paths}; import {', '.join(alone)}"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


def test_only_rooms_that_observe_read_the_time() -> None:
    observing = {name for line in block("clocks") for name in line}
    wrong = [
        f"{module.path.relative_to(ROOT)}:{node.lineno}"
        for module in tree().values()
        if not any(module.name == name or module.name.startswith(f"{name}.") for name in observing)
        for node in ast.walk(module.code)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in READINGS
    ]
    assert not wrong


READINGS = {
    *("time.time", "time.time_ns"),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    *("datetime.datetime.now", "datetime.datetime.today", "datetime.date.today"),
}


def test_the_daemon_and_the_simulation_do_not_know_each_other() -> None:
    for room, other in (("daemon", "simulation"), ("simulation", "daemon")):
        found = {name for module in modules_of(room) for name in ours(module, tree())}
        assert not {name for name in found if tree()[name].room == other}


def test_the_product_asks_the_belief_about_runtimes_and_none_of_its_estimators() -> None:
    """But for the learners that it feeds, and the normal distribution. Experiments also ask what the papers
    print."""
    asked = {"known", "learner", "normal", "possible", "sample", "survival"}
    wrong = [
        f"{name} imports {target}"
        for name, module in tree().items()
        if module.room not in ("runtimes", "experiments", "simulation")
        for target in sorted(ours(module, tree()))
        if tree()[target].room == "runtimes" and target.rpartition(".")[2] not in asked
    ]
    assert not wrong


def test_no_folder_is_longer_than_a_list_that_is_read() -> None:
    folders = {module.path.parent for module in tree().values()}
    counts = {
        str(folder.relative_to(ROOT)): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for folder in folders
    }
    assert not {folder: count for folder, count in counts.items() if count > LARGEST_FOLDER}


def test_folders_of_tests_are_named_after_rooms() -> None:
    """But for tests of the whole and of what stands beside the rooms: clusters, faults, packages."""
    whole = {"bench", "clusters", "demo", "docs", "e2e", "lab", "packaging", "security"}
    folders = {path.name for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    assert folders - whole <= set(rooms())


@pytest.mark.parametrize("way", ["request", "task", "question"])
def test_the_files_of_a_way_lead_from_one_to_the_next(way: str) -> None:
    files = [file for line in block(way) for file in line]
    assert len(set(files)) == len(files)
    text = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    (said,) = re.findall(rf"passes through (\d+) files:[^`]*```{way}\n", text)
    assert int(said) == len(files)
    names = [file.removesuffix(".py").replace("/", ".") for file in files]
    assert [name for name in names if name not in tree()] == []
    arrows = {name: ours(tree()[name], tree()) for name in names}
    gaps = [
        name
        for at, name in enumerate(names[1:], 1)
        if not any(name in arrows[earlier] or earlier in arrows[name] for earlier in names[:at])
    ]
    assert gaps == []
