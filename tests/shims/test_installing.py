from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest

from adaptor.shims.commands import MODULES
from adaptor.shims.installing import script
from adaptor.shims.real import RULES
from adaptor.shims.rules import Rules
from tests.cli.conftest import cli, state  # noqa: F401
from tests.cli.invoking import Cli


def test_a_private_folder_of_commands(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "it's bin"
    told = cli("shims", str(folder), "--max-time", "20m", "--default-time", "10m")
    assert told.code == 0, told.err
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} == {*MODULES, RULES}
    assert all(stat.S_IMODE((folder / name).stat().st_mode) == 0o700 for name in MODULES)
    rules = msgspec.json.decode((folder / RULES).read_bytes(), type=Rules)
    assert rules == Rules(max_time=1200.0, default_time=600.0)


def test_contradictions_are_named(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    told = cli("shims", str(tmp_path / "bin"), "--default-time", "2h")
    assert told.code == 2
    assert "longer than --max-time" in told.err


def test_a_folder_that_cannot_be_one_of_commands_alone_is_refused(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tasks get PATH without it: a user's programs in it would be gone there, and an own sbatch lost."""
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    (own / "sbatch").write_text("mine")
    monkeypatch.chdir(own)
    for folder, why in (
        (str(own), f"{own} has other files, as sbatch"),
        ("", "name a folder for the commands"),
        ("a:b", "PATH cannot have a folder with ':'"),
    ):
        told = cli("shims", folder)
        assert told.code == 2
        assert why in told.err
    assert [path.name for path in own.iterdir()] == ["sbatch"]
    assert (own / "sbatch").read_text() == "mine"
    assert cli("shims", "new").code == cli("shims", "new").code == 0, "again, as after an upgrade"


def test_inside_a_task_the_real_command_runs(tmp_path: Path) -> None:
    """Whatever folders of shims stand before it; an argument is passed on as it is."""
    places = [tmp_path / name for name in ("bin", "other", "real")]
    for place in places:
        place.mkdir()
        (place / "squeue").write_text(script(place, "squeue"))
    for place in places[:2]:
        (place / RULES).write_text("{}")
    (places[2] / "squeue").write_text('#!/bin/sh\nprintf "%s|" real "$@"\n')
    for place in places:
        (place / "squeue").chmod(0o700)
    path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
    for variable in ({"ADAPTOR_TASK_ID": "3"}, {"ADAPTOR_SHIMS": "off"}):
        environment = {**os.environ, "PATH": path, **variable}
        done = subprocess.run(
            ["squeue", "-o", "a b'$x"], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == "real|-o|a b'$x|"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be two users")
def test_the_folder_of_one_user_is_closed_to_others(cli: Cli) -> None:  # noqa: F811
    """Their shell passes it over."""
    with tempfile.TemporaryDirectory() as name:
        folder, real = Path(name), Path(name, "real")
        folder.chmod(0o755)
        assert cli("shims", str(folder / "bin")).code == 0
        real.mkdir()
        (real / "squeue").write_text("#!/bin/sh\necho real\n")
        (real / "squeue").chmod(0o755)
        done = subprocess.run(
            ["/bin/sh", "-c", "squeue"], env={"PATH": f"{folder / 'bin'}:{real}"}, user=65534, group=65534,
            extra_groups=[], capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "real\n"


def test_a_shim_under_a_shim_takes_the_command_behind_or_names_it(tmp_path: Path) -> None:
    """A link to a shim is passed over, and so is a script of a site that calls the shims again."""
    shims, links, site, real = (tmp_path / name for name in ("bin", "links", "site", "real"))
    for place in (shims, links, site, real):
        place.mkdir()
    (shims / RULES).write_text("{}")
    (shims / "sinfo").write_text(script(shims, "sinfo"))
    (links / "sinfo").symlink_to(shims / "sinfo")
    (site / "sinfo").write_text(f'#!/bin/sh\n[ "$1" = -V ] || /usr/bin/nice {shims}/sinfo "$@"\n')
    (real / "sinfo").write_text("#!/bin/sh\necho real\n")
    for place in (shims, site, real):
        (place / "sinfo").chmod(0o700)

    def answer(*places: Path) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(map(str, places))
        environment = {"PATH": path, "ADAPTOR_DIR": str(tmp_path / "state")}
        words = [str(shims / "sinfo"), "-s"]
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )

    assert answer(shims, links, real).stdout == "real\n"
    assert answer(shims, site, real).stdout == "real\n"
    refused = answer(shims, site)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"adaptor: sinfo: {site}/sinfo calls it again, and PATH has no other sinfo for the scheduler's\n"
    )
