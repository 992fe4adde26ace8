from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lab.clients.left_out import LEFT_OUT
from lab.clients.plugin import joblib_tests


def test_each_test_that_is_left_out_has_a_reason() -> None:
    assert all(len(reason.split()) > 3 for names in LEFT_OUT.values() for reason in names.values())


def test_tests_of_joblib_go_through_our_backend_only(tmp_path: Path) -> None:
    pytest.importorskip("joblib.test")
    made = ast.parse(joblib_tests(tmp_path).read_text())
    marks = [
        ast.unparse(mark)
        for test in ast.walk(made)
        if isinstance(test, ast.FunctionDef)
        for mark in test.decorator_list
        if "backend'" in ast.unparse(mark) and "parametrize" in ast.unparse(mark)
    ]
    assert len(marks) > 20
    assert all(mark.endswith("['adaptor'])") for mark in marks)
