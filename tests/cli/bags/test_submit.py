"""`submit` and `run`: what reaches the daemon, and what is told."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.cli import other_tools
from adaptor.cli.bags import submit as run_module
from adaptor.client import asking as client
from adaptor.client import bags
from adaptor.client.environment import captured
from adaptor.daemon import process
from tests.cli.fake_control import FakeControl, bag_view, daemon_view, running_bag
from tests.cli.invoking import Cli, Serve


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def submitted(server: FakeControl) -> BagInput:
    (question,) = server.submitted()
    bag: BagInput = question.bag
    return bag


def test_a_bag_is_named_after_a_file_whose_name_is_no_utf_8(cli: Cli, serve: Serve, here: Path) -> None:
    name = os.fsdecode(b"a\xff.bag")
    (here / name).write_text("echo hi\n")
    server = serve({api.Publish: api.Submitted(7)})
    assert cli("submit", name).out == "bag 7: 1 task\n"
    assert submitted(server).spec.name == "a\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("tasks", "options", "says"),
    [
        (999, [], False),
        (1000, [], True),
        (1000, ["--output-files", "packed"], False),
        (1000, ["--output-files", "none"], False),
    ],
)
def test_a_large_bag_says_how_many_files_it_makes(
    cli: Cli, serve: Serve, here: Path, tasks: int, options: list[str], says: bool
) -> None:
    (here / "mine.bag").write_text("echo a\n" * tasks)
    serve({api.Publish: api.Submitted(7)})
    outcome = cli("submit", "mine.bag", "--output", "out/{bag}", *options)
    assert (outcome.code, outcome.out) == (0, f"bag 7: {tasks:,} tasks\n")
    assert (f"each task makes up to 2 files in {here}/out/7; --output-files packed" in outcome.err) is says


def test_a_bag_reaches_the_daemon(
    cli: Cli, serve: Serve, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOUR", "blue")
    (here / "mine.bag").write_text("#ADAPTOR cpus=2 retries=1\necho a\necho b\n")
    server = serve({api.Publish: api.Submitted(7)})
    outcome = cli("submit", "mine.bag", "--retries", "0", "--site", "a", "--site", "b", "--output", "out")
    assert (outcome.code, outcome.out) == (0, "bag 7: 2 tasks\n")
    bag = submitted(server)
    spec = bag.spec
    assert spec.environment["COLOUR"] == "blue"
    assert "ADAPTOR_DIR" not in spec.environment
    assert (spec.name, spec.cwd, spec.output) == ("mine", str(here), str(here / "out"))
    assert (spec.cpus, spec.retries, spec.replicas, spec.sites) == (2, 0, 1, ("a", "b"))
    assert bag.tasks == [TaskInput("echo a"), TaskInput("echo b")]


def test_numbers_whose_folders_are_another_users_are_not_taken(
    cli: Cli, serve: Serve, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bags, "numbers_of_others", lambda output: [7] if "adaptor-{bag}" in output else [])
    server = serve({api.Publish: api.Submitted(8)})
    assert cli("submit", "--", "true").out == "bag 8: 1 task\n"
    assert server.asked(api.Open)[0].taken == (7,)


def test_tasks_that_can_never_run_are_named(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "mine.bag").write_text("echo a\necho b\n")
    serve({api.Publish: api.Submitted(7, refused=3, reasons=["line 2: too large", "line 5: too wide"])})
    outcome = cli("submit", "mine.bag")
    assert (outcome.code, outcome.out) == (0, "bag 7: 2 tasks\n")
    assert outcome.err.splitlines() == [
        "adaptor: 3 tasks can never run, and failed at once:",
        "  line 2: too large",
        "  line 5: too wide",
        "  and 1 more",
    ]
    assert cli("submit", "mine.bag", "--json").value == {"bag": 7, "tasks": 2, "refused": 3}


def test_a_template_as_json(cli: Cli, serve: Serve, here: Path) -> None:
    server = serve({api.Publish: api.Submitted(8)})
    outcome = cli(
        "submit", "--template", "/opt/render {f}", "-P", "f=1:3", "--no-env", "--mem", "1G", "--json"
    )
    assert outcome.value == {"bag": 8, "tasks": 3}
    bag = submitted(server)
    assert (bag.spec.name, bag.spec.memory, bag.spec.environment) == ("render", 1024**3, {})
    assert bag.spec.output == str(here / "adaptor-{bag}")
    assert bag.tasks[2] == TaskInput("/opt/render 3", "f=3")


def test_standard_input_and_relative_folders(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "sub").mkdir()
    server = serve({api.Publish: api.Submitted(8)})
    lines = [{"command": "pwd", "cwd": "x"}, {"command": "pwd", "cwd": "/tmp"}, {"argv": ["pwd"]}]
    text = "\n".join(map(json.dumps, lines)).encode()
    assert cli("submit", "-", "--json-lines", "--cwd", "sub", "--output", "../out", input=text).code == 0
    bag = submitted(server)
    spec = bag.spec
    assert (spec.name, spec.cwd, spec.output) == ("stdin", str(here / "sub"), str(here / "out"))
    assert [task.cwd for task in bag.tasks] == [str(here / "sub" / "x"), "/tmp", None]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no tasks; give a FILE"),
        (["missing.bag"], "missing.bag: cannot be read"),
        (["-", "--template", "true"], "mutually exclusive"),
        (["-", "-P", "a=1"], "--param requires --template"),
        (["--csv", "x.csv"], "--csv requires --template"),
        (["-", "--array", "1-3"], "--array: for a batch script only"),
        (["-", "word"], "word: only a batch script"),
        (["--"], "--: no command"),
        (["--template", "true", "--", "true"], "mutually exclusive"),
        (["--template", "true {a}"], "no parameter for {a}"),
        (["--template", "true {a}", "-P", "a=1", "-P", "a=2"], "duplicate --param a"),
        (["--template", "true", "--cpus", "0"], "'--cpus': '0' is not an integer of 1 or more"),
        (["--template", "true", "--mem", "lots"], "'lots' is not a size"),
        (["--template", "true", "--cwd", "nowhere"], "nowhere: no such folder"),
        (["--template", "true", "--name", ""], "is not a name"),
    ],
)
def test_bad_input_starts_no_daemon(
    cli: Cli, here: Path, arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "start", lambda *_, **__: pytest.fail("a daemon was started"))
    for command in ("submit", "run"):
        outcome = cli(command, *arguments, input=b"true\n")
        assert outcome.code == 2
        assert problem in outcome.err
        assert outcome.err.count("\n") == 1


def test_a_folder_that_is_gone(cli: Cli, here: Path) -> None:
    here.rmdir()
    outcome = cli("submit", "--template", "true")
    assert outcome.code == 2
    assert "the current folder no longer exists" in outcome.err


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("list.bag", "#ADAPTOR time=1h\necho a\n#ADAPTOR cpus=99 mem=2G\n", "list.bag:3"),
        ("job.sh", "#!/bin/bash\n#SBATCH -n 1\n#SBATCH -c 99\n#SBATCH -t 10\ntrue\n", "job.sh:3"),
        ("job.sh", "#!/bin/bash\n#PBS -l select=1:ncpus=99\ntrue\n", "job.sh:2"),
        ("job.sh", "#!/bin/bash\n#ADAPTOR cpus=99\ntrue\n", "job.sh:2"),
    ],
)
def test_an_error_names_the_line_that_sets_its_option(
    cli: Cli, serve: Serve, here: Path, name: str, text: str, place: str
) -> None:
    (here / name).write_text(text)
    problem = "no node can run these tasks: the largest node has 2; ask for fewer cpus"
    refusal = api.Failure(problem, usage=True)
    serve({api.Publish: refusal, api.GetPlan: refusal})
    assert cli("submit", name).err == f"adaptor: {place}: {problem}\n"
    assert cli("plan", name).err == f"adaptor: {place}: {problem}\n"
    assert cli("submit", name, "--cpus", "99").err == f"adaptor: {problem}\n", "the command line sets it"


def test_an_error_here_names_its_line_too(cli: Cli, here: Path) -> None:
    (here / "list.bag").write_text("echo a\n#ADAPTOR cwd=nowhere\n")
    assert cli("submit", "list.bag").err == f"adaptor: list.bag:2: --cwd: {here}/nowhere: no such folder\n"


def test_tasks_tell_their_file_to_the_daemon(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "more.jsonl").write_text('\n{"command": "a", "id": "a"}\n{"command": "b"}\n')
    server = serve({api.Publish: api.Submitted(7)})
    assert cli("submit", "more.jsonl").code == 0
    assert server.asked(api.Open)[0].file == "more.jsonl"
    (added,) = server.asked(api.Add)
    assert (added.file, [task.line for task in added.tasks]) == ("more.jsonl", [2, 0])


def test_one_command(cli: Cli, serve: Serve, here: Path) -> None:
    server = serve({api.Publish: api.Submitted(7)})
    assert cli("submit", "--cpus", "2", "--", "/opt/prog", "-x", "--cpus", "a b").out == "bag 7: 1 task\n"
    bag = submitted(server)
    assert (bag.spec.name, bag.spec.cpus) == ("prog", 2)
    assert bag.tasks == [TaskInput(["/opt/prog", "-x", "--cpus", "a b"])]


def test_a_script_with_arguments(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "job.sh").write_text(
        "#!/bin/sh\n#SBATCH --array=1-100 -o out/%a\n#SBATCH --exclusive\nhostname\n"
    )
    server = serve({api.Publish: api.Submitted(7)})
    words = ("submit", "job.sh", "--array", "4-5", "a", "--ignore", "exclusive", "--", "-n", "b")
    assert cli(*words).out == "bag 7: 2 tasks\n"
    bag = submitted(server)
    assert [task.command for task in bag.tasks] == [["job.sh", "a", "-n", "b"]] * 2
    assert bag.spec.script is not None
    assert (bag.spec.script.output, bag.spec.output) == (f"{here}/out/%a", f"{here}/out")
    text = b"#!/bin/sh\n#SBATCH -o log\nhostname\n"
    assert cli("submit", "-", "--output", "mine-%j", input=text).code == 0
    script = server.submitted()[-1].bag.spec.script
    assert (script.body, script.output) == (text, f"{here}/mine-%j")


def test_tables_and_parameters_that_go_together(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    server = serve({api.Publish: api.Submitted(7)})
    assert cli("submit", "--csv", "rows.csv", "--template", "r {a} {b} {c}", "-P", "+c=7,8").code == 0
    assert [task.command for task in submitted(server).tasks] == ["r 1 x 7", "r 2 y 8"]


def test_what_is_taken_over_is_told(cli: Cli, serve: Serve, here: Path) -> None:
    taken = [api.TakenOver(6, 1, 1), api.TakenOver(5, 2, 0)]
    (here / "t.bag").write_text("echo 1\n" * 5)
    server = serve({api.Publish: api.Submitted(7, taken)})
    assert cli("submit", "t.bag", "--resume").lines == [
        "bag 7: 1 task",
        "not run again: 1 task done and 1 task still to run in bag 6",
        "not run again: 2 tasks done in bag 5",
    ]
    assert server.submitted()[0].resume
    assert cli("submit", "t.bag", "--resume", "--json").value["taken_over"][1] == {
        "bag": 5,
        "done": 2,
        "to_run": 0,
    }


def test_nothing_is_left_to_run(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "t.bag").write_text("echo 1\n")
    serve({api.Publish: api.Submitted(0, [api.TakenOver(5, 1, 0)]), api.GetDaemon: daemon_view()})
    assert cli("submit", "t.bag", "--resume").lines[-1] == "nothing is left to run: no new bag"
    assert cli("run", "t.bag", "--resume", "--json").value["bag"] is None


def test_the_environment_is_that_of_sbatch() -> None:
    session = {"SLURM_JOB_ID": "1", "SSH_TTY": "x", "TERM": "x", "_": "x", "PWD": "/", "ADAPTOR_DIR": "/x"}
    session |= {"PMI_RANK": "0", "PMIX_NAMESPACE": "x", "OMPI_COMM_WORLD_RANK": "0"}
    mine = {"PATH": "/bin", "OMP_NUM_THREADS": "2", "BASH_FUNC_module%%": "() { :; }", "TERMINAL_X": "1"}
    assert captured(session | mine) == (mine, [])
    assert captured({"GOOD": "1", "BAD": "\udcff", "W\udcff": "2"}) == ({"GOOD": "1"}, ["BAD", "W?"])


def test_a_bag_has_the_umask_of_its_shell(cli: Cli, serve: Serve, here: Path) -> None:
    server = serve({api.Publish: api.Submitted(7)})
    before = os.umask(0o027)
    try:
        assert cli("submit", "--", "true").code == 0
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert submitted(server).spec.umask == 0o027


@pytest.fixture
def startable(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """No daemon runs; one that is started answers. The list holds the arguments of starts, then servers."""
    started: list[Any] = []

    def start(directory: Path, config: str | None, until_idle: bool, *, drop_sites: bool) -> None:
        started.append((config, until_idle))
        started.append(
            serve({api.Publish: api.Submitted(7), api.GetBags: api.Bags([bag_view()]), api.GetPilots: []})
        )

    monkeypatch.setattr(process, "start", start)
    return started


def test_submit_starts_a_daemon_that_stays(cli: Cli, startable: list[Any], here: Path) -> None:
    outcome = cli("submit", "--template", "true", "--config", "my.yaml")
    assert (outcome.code, outcome.out) == (0, "bag 7: 1 task\n")
    assert "started a daemon (stop it with: adaptor daemon stop)" in outcome.err
    assert startable[0] == (str(here / "my.yaml"), False)
    outcome = cli("submit", "--template", "true", "--config", "other.yaml")
    assert outcome.code == 2, "a daemon runs with another one"
    assert "adaptor daemon restart --config" in outcome.err
    assert len(startable) == 2


def test_a_value_of_halt_is_not_taken_for_the_command(cli: Cli, serve: Serve) -> None:
    server = serve({})
    outcome = cli("run", "--halt", "now,fail=1", "./fit", ":::", "1", "2")
    assert outcome.code == 2
    assert "--halt has no value" in outcome.err
    assert not server.asked(api.Open)


@pytest.mark.parametrize(
    ("option", "way"),
    [
        ("-p", "--site NAME for a partition"),
        ("-n4", "--max-running N"),
        ("-j", "--max-running N"),
        ("--cpus-per-task=4", "write --cpus N"),
        ("-t", "--timeout for when it is ended"),
        ("--dry-run", "adaptor plan --commands"),
    ],
)
def test_an_option_of_another_tool_names_its_own_one(cli: Cli, here: Path, option: str, way: str) -> None:
    outcome = cli("submit", option, "4", "--template", "true")
    assert outcome.code == 2
    assert f"no option '{option[:2] if option[1] != '-' else option.partition('=')[0]}': " in outcome.err
    assert way in outcome.err


def test_the_options_named_for_other_tools_are_there(cli: Cli) -> None:
    told = " ".join(other_tools.hint(option) for option in other_tools.OPTIONS)
    named = set(re.findall(r"--[a-z-]*[a-z]", told))
    known = cli("submit", "--help-all").out + cli("run", "--help-all").out + cli("plan", "--help").out
    assert {name for name in named if name not in known} == set()


@pytest.mark.parametrize(
    ("arguments", "way"),
    [
        (["--", "echo a | cat"], "-- bash -c 'echo a | cat'"),
        (["echo a | cat"], "-- bash -c 'echo a | cat'"),
        (["echo", "a b"], "-- echo 'a b'"),
    ],
)
def test_a_command_in_the_wrong_place_or_quotes_shows_how_it_is_written(
    cli: Cli, here: Path, arguments: list[str], way: str
) -> None:
    outcome = cli("run", *arguments)
    assert outcome.code == 2
    assert outcome.err.endswith(f"{way}\n")


def test_a_program_with_a_space_in_its_name_is_a_command(cli: Cli, serve: Serve, here: Path) -> None:
    (here / "my prog").write_text("#!/bin/sh\n")
    (here / "my prog").chmod(0o755)
    server = serve({api.Publish: api.Submitted(7)})
    assert cli("submit", "--", "./my prog").code == 0
    assert submitted(server).tasks == [TaskInput(["./my prog"])]


def test_run_starts_a_private_daemon_and_watches(cli: Cli, startable: list[Any], here: Path) -> None:
    outcome = cli("--config", "/etc/a.yaml", "run", "--template", "true")
    assert outcome.code == 0
    assert outcome.lines[0] == "bag 7: 1 task"
    assert outcome.lines[-1].startswith("bag 7 render: 10 tasks done")
    assert startable[0] == ("/etc/a.yaml", True)
    outcome = cli("run", "--template", "true", "--json")
    assert outcome.value["bags"][0]["id"] == 7
    assert len(startable) == 2


def interrupt(*_: object, **__: object) -> int:
    raise KeyboardInterrupt


def test_an_interrupt_only_stops_the_watching_of_a_daemon_that_ran(
    cli: Cli, serve: Serve, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "watch_bags", interrupt)
    server = serve({api.Publish: api.Submitted(7)})
    outcome = cli("run", "--template", "true")
    assert outcome.code == 130
    assert "bag 7 continues (adaptor watch" in outcome.err
    assert server.asked(api.Stop) == []


def test_an_interrupt_ends_a_private_daemon_and_says_how_to_go_on(
    cli: Cli, startable: list[Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "watch_bags", interrupt)
    stops: list[bool] = []
    monkeypatch.setattr(run_module, "stop_daemon", lambda pilots: stops.append(pilots))
    monkeypatch.setattr(run_module.Reader, "kept", lambda *_: api.Bags([running_bag()]))
    outcome = cli("run", "--template", "true")
    assert outcome.code == 130
    assert stops == [True]
    assert "kept with 4 of 10 tasks done" in outcome.err
    assert "adaptor daemon start" in outcome.err
    assert "adaptor cancel 7" in outcome.err


def test_a_private_daemon_is_reaped_although_it_is_a_child(cli: Cli, serve: Serve) -> None:
    """A child that has ended keeps its process id until it is waited for."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    serve({api.Stop: None, api.GetDaemon: daemon_view(child)})
    assert cli("daemon", "stop").out == f"stopped: process {child}\n"


def test_a_daemon_that_was_just_leaving_is_followed_by_another(
    cli: Cli, serve: Serve, startable: list[Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaving = serve({})

    real = client.DaemonConnection.ask

    def ask(self: client.DaemonConnection, question: Any, *rest: Any) -> Any:
        if isinstance(question, api.Open) and not startable:
            leaving.close()
        return real(self, question, *rest)

    monkeypatch.setattr(client.DaemonConnection, "ask", ask)
    outcome = cli("submit", "--template", "true")
    assert (outcome.code, outcome.out) == (0, "bag 7: 1 task\n"), outcome.err
    assert leaving.asked(api.Open) == []
    assert len(startable) == 2


@pytest.mark.parametrize("kind", [api.Open, api.Add, api.Publish])
def test_a_submission_that_got_no_answer_is_repeated_with_its_key(
    cli: Cli, serve: Serve, startable: list[Any], here: Path, kind: type
) -> None:
    """By the key the next daemon knows what it has already."""
    lost: list[Any] = []
    server = serve({api.Publish: api.Submitted(7)})

    def die(question: Any) -> None:
        lost.append(question)
        server.leave()

    server.answers[kind] = die
    outcome = cli("submit", "--template", "true")
    assert (outcome.code, outcome.out) == (0, "bag 7: 1 task\n"), outcome.err
    assert lost[0].key
    assert startable[1].asked(kind) == lost


def test_a_daemon_that_cannot_be_started(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "bad.yaml").write_text("sites: {}\n")
    outcome = cli("submit", "--template", "true", "--config", "bad.yaml", "--json")
    assert outcome.code == 2
    assert "at least one site" in outcome.value["error"]


@pytest.mark.parametrize(
    ("output", "problem"),
    [("file", "{here}/file is not a folder"), ("file/below/it", "{here}/file is not a folder")],
)
def test_an_output_folder_that_cannot_be_is_refused_at_once(
    cli: Cli, serve: Serve, here: Path, output: str, problem: str
) -> None:
    (here / "file").write_text("")
    server = serve({api.Publish: api.Submitted(7)})
    outcome = cli("submit", "--template", "true", "--output", output)
    assert outcome.code == 2
    assert outcome.err == f"adaptor: --output: {here}/{output}: {problem.format(here=here)}\n"
    assert server.asked(api.Open) == []


@pytest.mark.parametrize("output", [[], ["--output", "new/folder"]])
def test_an_output_folder_that_cannot_be_written_is_refused_at_once(
    cli: Cli, serve: Serve, here: Path, monkeypatch: pytest.MonkeyPatch, output: list[str]
) -> None:
    """Root may write anywhere, so the answer of the system is made up."""
    serve({api.Publish: api.Submitted(7)})
    opened = tempfile.TemporaryFile

    def refusing(*, dir: str) -> Any:
        if Path(dir) == here:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", refusing)
    outcome = cli("submit", "--template", "true", *output)
    assert outcome.code == 2
    assert f"you cannot write to {here} (Read-only file system); name another folder" in outcome.err


def test_an_output_folder_of_a_file_system_without_files_is_refused(
    cli: Cli, serve: Serve, here: Path
) -> None:
    serve({api.Publish: api.Submitted(7)})
    outcome = cli("submit", "--template", "true", "--output", "/proc/x")
    assert outcome.code == 2
    assert "--output: /proc/x: you cannot write to /proc (" in outcome.err


def test_an_output_folder_of_another_machine_is_taken(
    cli: Cli, serve: Serve, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a site over ssh; an ordinary user cannot write to `/` here."""
    server = serve({api.Publish: api.Submitted(7)})
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: pytest.fail("a folder of this machine"))
    assert cli("submit", "--template", "true", "--output", "/no-such-scratch/x").code == 0
    assert submitted(server).spec.output == "/no-such-scratch/x"


def test_a_bag_after_the_last_one(cli: Cli, serve: Serve, here: Path) -> None:
    server = serve({api.GetBags: api.Bags([bag_view(6)]), api.Publish: api.Submitted(7)})
    outcome = cli("submit", "--template", "true", "--after", "last", "--after-any", "3,last", "--parsable")
    assert (outcome.code, outcome.out) == (0, "7\n")
    spec = submitted(server).spec
    assert (spec.after, spec.after_any) == ((6,), (3, 6))


def test_what_a_script_asks_for_and_does_not_get_is_said(cli: Cli, serve: Serve, here: Path) -> None:
    serve({api.Publish: api.Submitted(7)})
    (here / "job.sh").write_text("#!/bin/sh\n#SBATCH --mail-type=END --array=1-2 -p gpu\nhostname\n")
    outcome = cli("submit", "job.sh")
    assert outcome.out == "bag 7: 2 tasks\n"
    assert outcome.err.splitlines() == [
        "adaptor: job.sh:2: --mail-type=END: no message is sent; --notify sends one",
        "adaptor: job.sh:2: -p gpu: the configuration of local counts, which has none",
    ]


def test_all_that_stops_a_script_is_said_at_once(cli: Cli, here: Path) -> None:
    (here / "job.sh").write_text("#!/bin/sh\n#SBATCH --exclusive\n#SBATCH --mem=0\nhostname\n")
    outcome = cli("submit", "job.sh", "--json")
    assert outcome.code == 2
    assert outcome.err.splitlines() == [
        "adaptor: job.sh: 2 lines cannot be followed",
        "  line 2: --exclusive: tasks share nodes; ask for all processors of a node by --cpus-per-task",
        "  line 3: --mem=0: all memory of a node; write how much a task needs",
        "  --ignore exclusive,mem submits it without these",
    ]
    assert outcome.value["error"].endswith("--ignore exclusive,mem submits it without these")
