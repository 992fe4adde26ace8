"""The demo asks before it takes a cluster's login node."""

from __future__ import annotations

import io

import login_node
import pytest


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_node, "answering", lambda: "Slurm")
    monkeypatch.delenv("DEMO_YES", raising=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 1), ("", 1), ("no\n", 1)])
def test_a_person_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert login_node.main() == code
    assert "Slurm answers here" in capsys.readouterr().err


@pytest.mark.usefixtures("cluster")
def test_a_script_says_so_itself(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert login_node.main() == 1
    assert "DEMO_YES=1 make demo" in capsys.readouterr().err
    monkeypatch.setenv("DEMO_YES", "1")
    assert login_node.main() == 0


def test_elsewhere_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_node, "answering", str)
    assert login_node.main() == 0
