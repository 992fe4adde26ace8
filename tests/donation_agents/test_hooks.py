"""`site install-hooks`: what it writes, what it warns of, and that no hook ever fails or hangs."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import adaptor
import adaptor_donation_agents
from adaptor_donation_agents.install_hooks import changeable_by_others
from tests.cli.invoking import Cli
from tests.donation_agents.donated_nodes import DonatedNodes
from tests.living import until

AGENT = "donation: {mode: agent, reclaim_timeout: 60, runtime_directory: %s}"


@pytest.fixture
def config(tmp_path: Path) -> str:
    agent = AGENT % (tmp_path / "runtime")
    path = tmp_path / "sites.yaml"
    path.write_text(
        f"sites:\n"
        f"  slurm: {{backend: slurm, {agent}}}\n"
        f"  openpbs: {{backend: pbs, {agent}}}\n"
        f"  far: {{backend: slurm, ssh: {{host: far.example.org}}, {agent}}}\n"
        f"  plain: {{backend: slurm}}\n"
        f"  jobs: {{backend: slurm, donation: {{mode: preemptible, partition: low}}}}\n"
    )
    return str(path)


def written(cli: Cli, config: str, site: str, folder: Path, *options: str) -> list[Path]:
    done = cli("--config", config, "site", "install-hooks", site, "--write", str(folder), *options)
    assert done.code == 0, done.err
    return sorted(folder.iterdir())


@pytest.mark.parametrize(
    ("site", "names"),
    [
        ("slurm", ["adaptor-epilog", "adaptor-prolog"]),
        ("openpbs", ["adaptor_reclaim.py"]),
    ],
)
def test_what_is_written(cli: Cli, config: str, tmp_path: Path, site: str, names: list[str]) -> None:
    files = written(cli, config, site, tmp_path / "hooks")
    assert [file.name for file in files] == names
    for file in files:
        text = file.read_text()
        assert "@@" not in text
        assert sys.executable in text
        assert f"--runtime={tmp_path / 'runtime'}" in text
        assert f"--user={os.getuid()}" in text
        if site != "openpbs":
            assert os.access(file, os.X_OK)
            assert subprocess.run(["/bin/sh", "-n", str(file)], check=False).returncode == 0


def test_without_a_folder_it_is_printed(cli: Cli, config: str) -> None:
    done = cli("--config", config, "site", "install-hooks", "slurm")
    assert done.code == 0
    assert "# ----- adaptor-prolog\n#!/bin/sh" in done.out
    assert "Prolog=/etc/slurm/adaptor-prolog" in done.err
    assert "PrologFlags=Alloc" in done.err
    value = cli("--config", config, "site", "install-hooks", "slurm", "--json").value
    assert sorted(value) == ["instructions", "scripts", "warnings"]


def test_it_does_not_write_over_what_is_there(cli: Cli, config: str, tmp_path: Path) -> None:
    written(cli, config, "slurm", tmp_path / "hooks")
    done = cli("--config", config, "site", "install-hooks", "slurm", "--write", str(tmp_path / "hooks"))
    assert done.code == 2
    assert "--force overwrites it" in done.err
    written(cli, config, "slurm", tmp_path / "hooks", "--force")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["nowhere"], "no site 'nowhere' (configured: slurm, openpbs, "),
        (["plain"], "site plain needs no hooks"),
        (["jobs"], "only with donation.mode: agent"),
        (["far"], "needs --python"),
        (["slurm", "--python", "python3"], "must be an absolute path"),
        (["slurm", "--python", "/no/such/python"], "cannot be run"),
        (["slurm", "--python", "/bin/false"], "does not have the adaptor"),
        (["slurm", "--user", "nobody-is-called-so"], "no user nobody-is-called-so here"),
        (["slurm", "--write", "/dev/null/x"], "cannot be written"),
    ],
)
def test_what_cannot_be_done(cli: Cli, config: str, words: list[str], problem: str) -> None:
    done = cli("--config", config, "site", "install-hooks", *words)
    assert done.code in (1, 2)
    assert problem in done.err


def test_it_warns_where_root_would_run_what_others_can_change(cli: Cli, config: str, tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    python = loose / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = cli("--config", config, "site", "install-hooks", "slurm", "--python", str(python))
    assert done.code == 0
    assert "root would run code that others can change" in done.err
    assert "/opt/adaptor" in done.err


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to install and to give files away")
class TestChangeable:
    """An interpreter with the package in a folder that only root can change, but for one thing."""

    @pytest.fixture
    def installed(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{folder}/venv"], check=True)
            (packages,) = Path(folder).glob("venv/lib/*/site-packages")
            code = Path(adaptor.__file__).parent
            shutil.copytree(adaptor_donation_agents.__path__[0], packages / "adaptor_donation_agents")
            for name in ("__init__.py", "defaults.py", "file_format.py", "private_files.py", "processes"):
                copy = shutil.copytree if (code / name).is_dir() else shutil.copy
                (packages / "adaptor").mkdir(exist_ok=True)
                copy(code / name, packages / "adaptor" / name)
            yield packages

    def found(self, packages: Path) -> list[str]:
        return changeable_by_others(str(packages.parents[2] / "bin" / "python"))

    def test_what_only_root_can_change_is_no_reason_to_warn(self, installed: Path) -> None:
        assert self.found(installed) == []

    @pytest.mark.parametrize(
        ("name", "how"),
        [
            *itertools.product(
                [
                    "adaptor_donation_agents/marks.py",
                    "adaptor_donation_agents",
                    "adaptor/processes/identity.py",
                    "adaptor/not_yet_imported.py",
                    "",
                    "something.pth",
                    "../../../pyvenv.cfg",
                    "..",
                ],
                ["given away", "open to all"],
            ),
            ("../../../bin/python", "given away"),
        ],
    )
    def test_one_thing_of_it_is_enough(self, installed: Path, name: str, how: str) -> None:
        path = installed / name
        if not path.exists():
            path.write_text("")
        if how == "given away":
            os.chown(path, 12345, 12345, follow_symlinks=False)
        else:
            path.chmod(path.stat().st_mode | 0o022)
        found = self.found(installed)
        assert len(found) == 1
        assert os.path.normpath(path) in found[0]

    def test_the_folder_to_which_a_link_leads(self, installed: Path, tmp_path: Path) -> None:
        loose = tmp_path / "loose"
        shutil.move(installed / "adaptor", loose / "adaptor")
        (installed / "adaptor").symlink_to(loose / "adaptor")
        loose.chmod(0o777)
        assert any(f"{loose} is writable" in problem for problem in self.found(installed))

    def test_root_does_not_run_an_interpreter_that_others_can_change(self, tmp_path: Path) -> None:
        python, ran = tmp_path / "python", tmp_path / "ran"
        python.write_text(f"#!/bin/sh\ntouch {ran}\n")
        python.chmod(0o777)
        assert "is writable by others" in changeable_by_others(str(python))[0]
        assert not ran.exists()


def test_a_link_in_the_place_of_a_script_is_not_followed(cli: Cli, config: str, tmp_path: Path) -> None:
    hooks, elsewhere = tmp_path / "hooks", tmp_path / "elsewhere"
    hooks.mkdir()
    (hooks / "adaptor-prolog").symlink_to(elsewhere)
    done = cli("--config", config, "site", "install-hooks", "slurm", "--write", str(hooks))
    assert done.code == 2
    assert "exists already" in done.err
    written(cli, config, "slurm", hooks, "--force")
    assert not elsewhere.exists()
    assert not (hooks / "adaptor-prolog").is_symlink()
    assert os.access(hooks / "adaptor-prolog", os.X_OK)


def test_a_distant_sites_interpreter_cannot_be_looked_at(cli: Cli, config: str) -> None:
    done = cli("--config", config, "site", "install-hooks", "far", "--python", "/opt/a/bin/python")
    assert done.code == 0
    assert "cannot check from here" in done.err


@pytest.mark.parametrize("python", ["missing", "failing", "hanging"])
def test_no_script_fails_or_hangs(cli: Cli, config: str, tmp_path: Path, python: str) -> None:
    sites = Path(config)
    sites.write_text(sites.read_text().replace("reclaim_timeout: 60", "reclaim_timeout: 1"))
    files = written(cli, config, "slurm", tmp_path / "hooks")
    stand_in, hangs = tmp_path / "python", tmp_path / "hangs"
    hangs.touch()
    if python != "missing":
        # What hangs on a lost file system heeds no signal.
        waiting = f"trap '' TERM; while [ -e {hangs} ]; do sleep 0.1; done"
        script = "exit 3" if python == "failing" else waiting
        stand_in.write_text(f"#!/bin/bash\n{script}\n")
        stand_in.chmod(0o755)
    for file in files[:1] if python == "hanging" else files:
        file.write_text(file.read_text().replace(sys.executable, str(stand_in)))
        done = subprocess.run([str(file), "17"], env={"SLURM_JOB_ID": "17"}, timeout=60, check=False)
        assert done.returncode == 0
    hangs.unlink()


def test_a_slurm_prolog_frees_its_node_and_its_epilog_offers_it(
    cli: Cli, config: str, tmp_path: Path, nodes: DonatedNodes
) -> None:
    epilog, prolog = written(cli, config, "slurm", tmp_path / "hooks")
    tag = nodes.lend("n1")
    variables = {"SLURMD_NODENAME": "n1", "SLURM_JOB_ID": "17", "PYTHONPATH": "/no/such", "PYTHONHOME": "/x"}
    subprocess.run([str(prolog)], env=variables, check=True, timeout=60)
    assert nodes.report(tag).reason.startswith("reclaimed for local job 17")
    assert (nodes.own / "taken@n1@17").exists()
    subprocess.run([str(epilog)], env=variables, check=True, timeout=60)
    assert not (nodes.own / "taken@n1@17").exists()


class FakePbs(types.ModuleType):
    """As much of the module of OpenPBS's hooks as ours needs."""

    EXECJOB_BEGIN, EXECJOB_END, LOG_ERROR = 64, 512, 0

    def __init__(self, kind: int, node: str) -> None:
        super().__init__("pbs")
        self.accepted, self.logged = 0, ""
        self.job = types.SimpleNamespace(id="17[3].server")
        self.type, self._node = kind, node

    def event(self) -> FakePbs:
        return self

    def accept(self) -> None:
        self.accepted += 1

    def logmsg(self, level: int, text: str) -> None:
        self.logged += text

    def get_local_nodename(self) -> str:
        return self._node


def run_hook(hook: Path, monkeypatch: pytest.MonkeyPatch, kind: int, node: str = "n1") -> FakePbs:
    fake = FakePbs(kind, node)
    monkeypatch.setitem(sys.modules, "pbs", fake)
    exec(compile(hook.read_text(), str(hook), "exec"), {})
    assert fake.accepted == 1
    return fake


def test_the_hook_of_openpbs(
    cli: Cli, config: str, tmp_path: Path, nodes: DonatedNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hook,) = written(cli, config, "openpbs", tmp_path / "hooks")
    tag = nodes.lend("n1")
    assert run_hook(hook, monkeypatch, FakePbs.EXECJOB_BEGIN).logged == ""
    assert nodes.report(tag).reason.startswith("reclaimed for local job 17[3].server after")
    assert (nodes.own / "taken@n1@17[3].server").exists()
    run_hook(hook, monkeypatch, FakePbs.EXECJOB_END)
    assert not list(nodes.own.glob("taken@*"))


def test_a_hook_of_openpbs_that_goes_wrong_accepts_the_job(
    cli: Cli, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hook,) = written(cli, config, "openpbs", tmp_path / "hooks")
    hook.write_text(hook.read_text().replace(sys.executable, "/no/such/python"))
    assert "/no/such/python" in run_hook(hook, monkeypatch, FakePbs.EXECJOB_BEGIN).logged


def test_reclaim_by_hand(cli: Cli, config: str, tmp_path: Path, nodes: DonatedNodes) -> None:
    tag = nodes.lend("n1")
    assert cli("--config", config, "reclaim", "n1").code == 0
    assert nodes.report(tag).end is not None
    assert cli("reclaim", "n1", "--runtime", str(nodes.runtime), "--job", "5").code == 0
    assert (nodes.own / "taken@n1@5").exists()
    assert cli("reclaim", "n1", "--runtime", str(nodes.runtime), "--offer").code == 0
    assert not (nodes.own / "taken@n1@5").exists()
    unknown = cli("--config", config, "reclaim", "n9")
    assert (unknown.code, unknown.out) == (0, "n9: not in use\n")


def test_reclaim_does_not_depend_on_the_configuration(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("sites: [")
    done = cli("--config", str(broken), "reclaim", "n9")
    assert done.code == 0
    assert "using the default folder" in done.err


def test_reclaim_by_its_own_program(tmp_path: Path, nodes: DonatedNodes) -> None:
    """As a prolog of a site's own may call it."""
    tag = nodes.lend("n1")
    words = [sys.executable, "-m", "adaptor.cli", "reclaim", "n1", "--runtime", str(nodes.runtime)]
    assert subprocess.run(words, timeout=60, check=False).returncode == 0
    until(lambda: nodes.report(tag).end is not None, "it has ended")
