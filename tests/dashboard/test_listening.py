"""Where the page listens, and that nobody else gets there."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from adaptor.dashboard.listening import bind_port, bind_socket, socket_path
from adaptor.errors import AdaptorError
from tests.security.world import as_mallory


@pytest.fixture
def private(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_the_socket_is_ours_alone(private: Path) -> None:
    path = private / "page.sock"
    with bind_socket(path) as listener:
        assert path.stat().st_mode & 0o777 == 0o600
        connect(path)
        listener.accept()[0].close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_connect() -> None:
    with tempfile.TemporaryDirectory(prefix="page-") as name:
        folder = Path(name)
        path = folder / "page.sock"
        with bind_socket(path):
            connect(path)
            for mode in (0o700, 0o711):  # the second time only the socket's own mode keeps him out
                folder.chmod(mode)
                with pytest.raises(PermissionError):
                    as_mallory(lambda: connect(path))


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(str(path))


def test_a_folder_that_is_open_to_others_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(AdaptorError, match="open to other users"):
        bind_socket(tmp_path / "page.sock")


def test_the_socket_of_a_dead_page_is_replaced_and_that_of_a_living_one_is_not(private: Path) -> None:
    path = private / "page.sock"
    bind_socket(path).close()
    with bind_socket(path), pytest.raises(AdaptorError, match="runs here already"):
        bind_socket(path)
    (private / "notes").write_text("mine")
    with pytest.raises(AdaptorError, match="no socket"):
        bind_socket(private / "notes")
    assert (private / "notes").read_text() == "mine"


def test_a_long_name_goes_to_the_runtime_folder(private: Path) -> None:
    deep = private / ("x" * 100)
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime:  # a short name
        assert socket_path(deep, runtime).parent == Path(runtime)
    with pytest.raises(AdaptorError, match="--socket"):
        socket_path(deep, None)
    assert socket_path(Path("/run/me"), None) == Path("/run/me/dashboard.sock")


def test_a_port_that_is_taken_is_named() -> None:
    with bind_port("127.0.0.1", 0) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(AdaptorError, match=f"port {taken}: cannot listen"):
            bind_port("127.0.0.1", taken)
