"""The accounting of a throwaway Slurm: a MariaDB behind a socket, and a slurmdbd in front of it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
from pathlib import Path

SEARCH_PATH = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin:/usr/local/sbin"
_PROGRAMS = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db", "mariadb-admin")


def available() -> str | None:
    """None where a throwaway Slurm can have accounting, else why not."""
    missing = [name for name in _PROGRAMS if not shutil.which(name, path=SEARCH_PATH)]
    if missing:
        return f"no slurmdbd here: {', '.join(missing)} not found (Debian: slurmdbd mariadb-server)"
    return None


def database_socket(root: Path) -> Path:
    return root / "mariadb.socket"


def _places(root: Path) -> tuple[str, ...]:
    """Of its data, and of its temporary tables: each server removes those that it finds where it starts."""
    return f"--user={getpass.getuser()}", f"--datadir={root}/mariadb", f"--tmpdir={root}"


def install_database(root: Path) -> list[str]:
    """The command that makes an empty database."""
    return ["mariadb-install-db", "--no-defaults", *_places(root), "--skip-test-db"]


def database(root: Path) -> list[str]:
    """The command that serves it, to nobody but local processes, and in little memory."""
    return [
        *("mariadbd", "--no-defaults", *_places(root)),
        *(f"--socket={database_socket(root)}", f"--pid-file={root}/mariadb.pid", "--skip-networking"),
        *("--skip-grant-tables", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"),
        "--innodb-lock-wait-timeout=900",
    ]


def write_slurmdbd_conf(root: Path, port: int) -> None:
    """Only slurmdbd may read it, or it does not start."""
    host, user = socket.gethostname().split(".")[0], getpass.getuser()
    lines = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={root}/munge.socket",
        "DbdHost": host,
        "DbdAddr": "127.0.0.1",
        "DbdPort": port,
        "SlurmUser": user,
        "LogFile": f"{root}/slurmdbd.log",
        "PidFile": f"{root}/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": user,
        "StorageLoc": "slurm",
    }
    path = root / "slurmdbd.conf"
    path.touch(0o600)
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")


def slurm_conf_lines(root: Path, port: int) -> dict[str, str | int]:
    """Lines of slurm.conf for accounting."""
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": port,
        "AccountingStoragePass": f"{root}/munge.socket",
    }
