"""What a bag stages on this machine: seen by lines, scripts and calls, shared by bags, removed in the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.bag_spec import BUNDLES
from tests.bundles.staged import environment
from tests.e2e.lab import Lab, site
from tests.living import until


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir(mode=0o700)
    return folder


def begin(lab: Lab, disk: Path) -> None:
    lab.configure(site("local", (2, 2, "1h"), processors=2, node_folder=str(disk)))
    environment(lab.work / ".venv")
    (lab.work / "data").mkdir()
    (lab.work / "data" / "table").write_text("content\n")


def left(disk: Path) -> list[str]:
    return [name for _, _, names in os.walk(disk) for name in names]


def stdout(lab: Lab, bag: int = 1) -> list[str]:
    return [Path(task["stdout"]).read_text() for task in lab.results(bag)]


def test_lines_and_scripts_see_the_copies_which_are_gone_in_the_end(lab: Lab, disk: Path) -> None:
    begin(lab, disk)
    copies = f"{disk}/adaptor-{os.geteuid()}"
    lab.bag(
        [
            "cat $ADAPTOR_STAGE/data/table; echo $VIRTUAL_ENV",
            ".venv/bin/python -c 'import sys; print(sys.executable)'",
            "stat -c %a $ADAPTOR_STAGE/data/table",
            "cat $ADAPTOR_STAGE/data,2",
        ]
    )
    (lab.work / "data,2").write_text("second\n")
    lab.run("run", "tasks.bag", "--stage", ".venv,data", "--stage", r"data\,2")
    lines = stdout(lab)
    assert lines[0].startswith(f"content\n{copies}/")
    assert lines[1].startswith(f"{copies}/")
    assert lines[1].endswith("/.venv/bin/python\n")
    assert lines[2:] == ["400\n", "second\n"], "what a task would write there would be lost"
    until(lambda: not left(disk), "no file of a copy is left")
    (lab.work / "job.sh").write_text(
        "#!/bin/bash\n#SBATCH --array=1-2\ncat $ADAPTOR_STAGE/data/table; command -v tool\n"
    )
    lab.run("run", "--stage", ".venv", "--stage", "data", "job.sh")
    assert all(
        text.startswith(f"content\n{copies}/") and text.endswith("/.venv/bin/tool\n")
        for text in stdout(lab, 2)
    )


def test_two_bags_of_the_same_environment_have_one_archive_and_one_copy(lab: Lab, disk: Path) -> None:
    begin(lab, disk)
    lab.run("daemon", "start")
    copy = "ls -di $ADAPTOR_STAGE"
    for name in ("one", "two"):
        lab.bag([f"{copy}; touch {lab.work / name}; {lab.hold()}"], f"{name}.bag")
        lab.submit(f"{name}.bag", "--stage", ".venv")
    until(lambda: all((lab.work / name).exists() for name in ("one", "two")), "both run")
    assert len(list((lab.state / BUNDLES).iterdir())) == 1
    lab.release()
    for bag in (1, 2):
        lab.wait(bag)
    assert stdout(lab, 1) == stdout(lab, 2)
    until(lambda: not left(disk), "no file of a copy is left")


def test_the_next_bag_of_the_same_content_uses_the_copy_that_is_there(lab: Lab, disk: Path) -> None:
    begin(lab, disk)
    lab.run("daemon", "start")
    lab.bag([f"stat -c '%i %z' $ADAPTOR_STAGE; {lab.hold()}"], "one.bag")
    lab.submit("one.bag", "--stage", ".venv")
    lab.bag(["stat -c '%i %z' $ADAPTOR_STAGE"], "two.bag")
    lab.submit("two.bag", "--stage", ".venv", "--after", "1")
    lab.release()
    lab.wait(2)
    assert stdout(lab, 1) == stdout(lab, 2)
    until(lambda: not left(disk), "no file of a copy is left once the pilot has ended")


def test_calls_run_in_the_copied_environment(lab: Lab, disk: Path) -> None:
    begin(lab, disk)
    packages = lab.work / "packages"
    packages.mkdir()
    (packages / "ours.py").write_text("def where(_):\n    import sys; return sys.path, __file__\n")
    program = lab.program(f"""
        import sys
        sys.path.insert(0, {str(packages)!r})
        import adaptor, ours
        with adaptor.Executor(stage={str(packages)!r}) as executor:
            path, file = executor.submit(ours.where, 1).result()
        assert file.startswith({str(disk)!r}), file
        assert path[0] == file.rpartition("/")[0], path
        print("seen")
        """)
    told, complaint = program.communicate(timeout=120)
    assert told == "seen\n", complaint


def test_a_disk_that_takes_no_copy_is_told_and_the_bag_is_done(lab: Lab, disk: Path) -> None:
    begin(lab, disk)
    disk.chmod(0o777)
    lab.bag(["cat $ADAPTOR_STAGE/data/table; echo $VIRTUAL_ENV"])
    lab.run("run", "tasks.bag", "--stage", ".venv,data")
    assert stdout(lab)[0].startswith("content\n")
    (line,) = [line for line in lab.ask("why", "1") if "staged folders themselves" in line["text"]]
    assert line["text"].endswith(f"{disk}: other users may rename what is in it (no sticky bit)")


def test_what_cannot_be_staged_is_refused_before_the_bag(lab: Lab, disk: Path) -> None:
    begin(lab, disk)
    lab.bag(["true"])
    done = lab.run("submit", "tasks.bag", "--stage", "none", expect=2)
    assert f"--stage: {lab.work}/none: no such file or folder" in done.stderr
    done = lab.run("submit", "tasks.bag", "--stage", "data", "--nodes", "2", expect=2)
    assert "--stage: for tasks on one node each" in done.stderr


def test_tasks_run_in_a_container_whose_image_is_copied(
    lab: Lab, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing here runs containers: a program in the place of Apptainer shows what it is asked for."""
    begin(lab, disk)
    (lab.work / "image.sif").write_text("image\n")
    runtime = lab.work / "bin" / "apptainer"
    runtime.parent.mkdir()
    runtime.write_text(
        '#!/bin/sh\nwhile [ "${1%.sif}" = "$1" ]; do shift; done\ncat "$1"\necho "$1"\nshift\nexec "$@"\n'
    )
    runtime.chmod(0o755)
    monkeypatch.setenv("PATH", f"{runtime.parent}:{os.environ['PATH']}")
    lab.bag(["echo $ADAPTOR_TASK_ID; pwd"])
    lab.run("run", "tasks.bag", "--container", "image.sif")
    image, path, *rest = stdout(lab)[0].splitlines()
    assert (image, rest) == ("image", ["0", str(lab.work)])
    assert path.startswith(f"{disk}/adaptor-")
    until(lambda: not left(disk), "no file of a copy is left")
    done = lab.run("submit", "tasks.bag", "--container", "none.sif", expect=2)
    assert f"--container: {lab.work}/none.sif: no such image" in done.stderr
    (lab.work / "job.sh").write_text("#!/bin/bash\ntrue\n")
    done = lab.run("submit", "--container", "image.sif", "job.sh", expect=2)
    assert "--container: for lines and commands" in done.stderr
