"""Which shell runs a line, and that lines work as their users write them in batch scripts."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from adaptor.guard_rails import EarlySignal, is_shell
from adaptor.protocol.messages import BagContext, Lease
from adaptor.worker.execution import execute, program_of
from adaptor.worker.output import OutputFolder
from adaptor.worker.shells import shell_words, with_activation
from adaptor.worker.slots import HeldTask
from tests.worker.attempts import KEY

USUAL = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
def bag(tmp_path: Path) -> BagContext:
    (tmp_path / "out").mkdir()
    return BagContext(1, str(tmp_path), str(tmp_path / "out"), {})


def run(bag: BagContext, line: str, environment: dict[str, str] | None = None, shell: str = "") -> str:
    """What a line prints and its exit code."""
    held = HeldTask(Lease(KEY, line, 0.0), bag)
    files = OutputFolder(bag).open(held)
    try:
        child = execute(held, {**USUAL, **(environment or {})}, files, shell=shell)
    finally:
        files.close()
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    told = Path(bag.output, "1.out").read_text() + Path(bag.output, "1.err").read_text()
    return f"{told.strip()} exit {code}".strip()


def test_the_shell_is_that_of_the_bag_or_the_site_or_the_bash_of_the_node() -> None:
    def no_bash(name: str, where: object) -> str:
        raise FileNotFoundError(name)

    assert shell_words("bash -l", USUAL, no_bash) == ["bash", "-l"]
    assert shell_words("", {"PATH": "/usr/bin"}, program_of) == ["/usr/bin/bash"]
    assert shell_words("", USUAL, no_bash) == ["/bin/sh"]


def test_the_bag_goes_before_the_site(bag: BagContext) -> None:
    assert run(bag, "echo $0").endswith("/bash exit 0")
    assert run(bag, "echo $0", shell="dash") == "dash exit 0"
    bag = msgspec.structs.replace(bag, shell="sh")
    assert run(bag, "echo $0", shell="dash") == "sh exit 0"


def test_options_of_the_shell_count_for_plain_lines_too(bag: BagContext) -> None:
    bag = msgspec.structs.replace(bag, shell="bash -x")
    assert run(bag, "/bin/echo hello") == "hello\n+ /bin/echo hello exit 0"


def test_what_is_no_shell_gets_the_line_alone(bag: BagContext) -> None:
    signal = EarlySignal("SIGUSR1", 5.0)
    bag = msgspec.structs.replace(bag, shell="python3 -E", signal=signal)
    assert run(bag, "for n in range(2): print(n, 'conda activate')", {"CONDA_EXE": "/c/bin/conda"}) == (
        "0 conda activate\n1 conda activate exit 0"
    )
    assert [is_shell(words.split()) for words in ("", "bash -l", "/bin/zsh", "env sh", "python3", "R")] == [
        True, True, True, True, False, False
    ]  # fmt: skip


def test_a_shell_that_the_node_lacks_is_named(bag: BagContext) -> None:
    with pytest.raises(Exception, match="no-such-shell: no such program on the task's PATH"):
        run(bag, "true", shell="no-such-shell")


def test_lines_work_as_in_a_batch_script(bag: BagContext) -> None:
    environment = Path(bag.cwd, "v", "bin")
    environment.mkdir(parents=True)
    (environment / "activate").write_text("VIRTUAL_ENV=v; export VIRTUAL_ENV\n")
    assert run(bag, "source v/bin/activate && echo $VIRTUAL_ENV") == "v exit 0"
    assert run(bag, "[[ a == a ]] && echo {1..3}") == "1 2 3 exit 0"
    assert run(bag, "set -o pipefail; false | cat") == "exit 1"
    module = {"BASH_FUNC_module%%": "() { LOADED=$2; export LOADED\n}"}
    assert run(bag, "module load gcc && echo $LOADED", module) == "gcc exit 0"


def test_conda_activate_works_as_in_the_shell_that_submitted(bag: BagContext) -> None:
    """An interactive shell has a function `conda`, and exports CONDA_EXE but no function."""
    root = Path(bag.cwd, "mini conda")
    for folder in ("bin", "etc/profile.d"):
        (root / folder).mkdir(parents=True)
    (root / "etc/profile.d/conda.sh").write_text('conda() { export CONDA_DEFAULT_ENV="$2"; }\n')
    known = {"CONDA_EXE": str(root / "bin" / "conda")}
    line = "conda activate e && echo $CONDA_DEFAULT_ENV"
    assert run(bag, line, known) == "e exit 0"
    assert run(bag, line, {**known, "BASH_FUNC_conda%%": "() { CONDA_DEFAULT_ENV=mine\n}"}) == "mine exit 0"
    assert "conda: command not found exit 127" in run(bag, line)
    assert "exit 127" in run(bag, line, {"CONDA_EXE": "/no/such/bin/conda"})


@pytest.mark.parametrize("name", ["mamba", "micromamba"])
def test_mamba_activate_works_too(bag: BagContext, name: str) -> None:
    program = Path(bag.cwd, "mamba-program")
    program.write_text(f'#!/bin/sh\n[ "$*" = "shell hook --shell bash" ] && echo "{name}() {{ IN=\\$2; }}"\n')
    program.chmod(0o755)
    assert run(bag, f"{name} activate e && echo $IN", {"MAMBA_EXE": str(program)}) == "e exit 0"


@pytest.mark.parametrize(
    "line", ["conda run -n e python x.py", "./conda activate", "echo my-conda activate", "python conda.py"]
)
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert with_activation(line, {"CONDA_EXE": "/c/bin/conda", "MAMBA_EXE": "/m"}) == line
