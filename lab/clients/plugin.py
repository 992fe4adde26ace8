"""A plugin of pytest that puts the adaptor in the place of the executors that a suite was written for."""

from __future__ import annotations

import ast
import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from lab.clients.left_out import LEFT_OUT

SUITE = "CLIENT_SUITE"
"""The variable that names the suite."""


def pytest_configure(config: pytest.Config) -> None:
    suite = os.environ[SUITE]
    if suite == "joblib":
        register_joblib()
    elif suite == "submitit":
        from adaptor.executor.submitit_plugin import AdaptorExecutor, AdaptorJob

        local = importlib.import_module("submitit.local.local")
        local.LocalExecutor, local.LocalJob = AdaptorExecutor, AdaptorJob  # type: ignore[attr-defined]
    elif suite == "dask":
        import dask

        import adaptor

        dask.config.set(scheduler=adaptor.Executor(2, name="dask"))


def register_joblib() -> None:
    import adaptor

    adaptor.register_joblib()


def joblib_tests(folder: Path) -> Path:
    """joblib's tests of parallel calls with `adaptor` for every backend that they go through."""
    spec = importlib.util.find_spec("joblib.test.test_parallel")
    assert spec is not None
    assert spec.origin is not None
    lines = Path(spec.origin).read_text(encoding="utf-8").splitlines()
    marks = [
        mark
        for test in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(test, ast.FunctionDef)
        for mark in test.decorator_list
        if isinstance(mark, ast.Call)
        and ast.unparse(mark.func) == "parametrize"
        and ast.unparse(mark.args[0]).strip("'").split("_")[-1] == "backend"
    ]
    for mark in sorted(marks, key=lambda mark: -mark.lineno):
        replaced = f'@parametrize({ast.unparse(mark.args[0])}, ["adaptor"])'
        lines[mark.lineno - 1 : mark.end_lineno] = [replaced]
    made = folder / "test_parallel.py"
    made.write_text("\n".join(lines), encoding="utf-8")
    return made


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suite = os.environ[SUITE]
    left_out = LEFT_OUT[suite]
    kept, dropped = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        name = getattr(item, "originalname", item.name)
        if suite == "joblib" and "adaptor" not in item.name:
            continue  # it says nothing of backends
        (dropped if name in left_out or item.name in left_out else kept).append(item)
    for item in dropped:
        name = item.name if item.name in left_out else getattr(item, "originalname", item.name)
        print(f"left out: {item.name}: {left_out[name]}")
    unknown = set(left_out) - {
        each for item in items for each in (item.name, getattr(item, "originalname", ""))
    }
    if unknown and not config.option.keyword:
        raise pytest.UsageError(f"{suite} has no tests with these names: {', '.join(sorted(unknown))}")
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    stats = terminalreporter.stats
    counts = {
        name: len(stats.get(name, ())) for name in ("passed", "skipped", "deselected", "failed", "error")
    }
    terminalreporter.write_line(f"{os.environ[SUITE]}: {_words(counts)}")


def _words(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{count} {name if name != 'deselected' else 'left out'}" for name, count in counts.items()
    )
