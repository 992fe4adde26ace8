"""The kind of a task: what stays the same from one bag to the next that runs the same program. Pure.

It is the programs of its command and the names of their options: no file names, no values, no interpreters
and no wrappers. Two commands that look the same are of one kind, whatever the shell would make of them.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec, TaskKind


class RunProgram(msgspec.Struct, frozen=True, kw_only=True):
    """Program that a simple command runs."""

    program: str
    arguments: Sequence[str] = ()
    how: str = ""
    """Interpreter of a module or of code, or its option; empty: a program or a script."""
    is_file: bool = False
    """Whether it is a script that an interpreter was given."""
    line: str | None = None
    """A shell line instead of a program."""
    code: str | None = None
    """Code that an interpreter was given to run instead of a script."""


class _Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a wrapper's own, which are skipped."""

    valued: frozenset[str] = frozenset()
    """Options whose value is the next word."""
    words: int = 0
    """Words of its own before the command, such as an image."""


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _wrapper(valued: str = "", words: int = 0) -> _Wrapper:
    return _Wrapper(valued=words_of(valued), words=words)


_MPI = _wrapper(
    "-n -np -c -N -H --host -hostfile --hostfile -machinefile -x -ppn --map-by --bind-to --mca -mca"
)
_CONTAINER = _wrapper("-B --bind -H --home -W --workdir --pwd --env --env-file -S --scratch --overlay", 2)
_ENGINE = _wrapper(
    "-v --volume -w --workdir -e --env --env-file -u --user --name --mount --gpus --network", 2
)
_WRAPPERS = {
    "env": _wrapper("-u --unset -C --chdir"),
    "exec": _wrapper("-a"),
    "command": _wrapper(),
    "nohup": _wrapper(),
    "setsid": _wrapper(),
    "time": _wrapper("-f --format -o --output"),
    "nice": _wrapper("-n --adjustment"),
    "ionice": _wrapper("-c -n --class --classdata"),
    "timeout": _wrapper("-k --kill-after -s --signal", 1),
    "stdbuf": _wrapper("-i -o -e"),
    "taskset": _wrapper("", 1),
    "numactl": _wrapper("-N -C -m -p -i -l --cpunodebind --physcpubind --membind --interleave"),
    "xvfb-run": _wrapper("-n -s -e -f"),
    "srun": _wrapper(
        "-n -N -c -p -A -J -t -w -x -o -e -i -G -m -q -D --ntasks --nodes --cpus-per-task --mpi --time --mem"
        " --partition --account --gres --gpus --cpu-bind --distribution --output --error --job-name"
    ),
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "orterun": _MPI,
    "singularity": _CONTAINER,
    "apptainer": _CONTAINER,
    "docker": _ENGINE,
    "podman": _ENGINE,
    "shifter": _wrapper("--image -V --volume -e --env --module"),
    "conda": _wrapper("-n --name -p --prefix", 1),
    "mamba": _wrapper("-n --name -p --prefix", 1),
    "micromamba": _wrapper("-n --name -p --prefix", 1),
    "poetry": _wrapper("", 1),
    "uv": _wrapper("--with --python -p", 1),
}
_SHELL = re.compile(r"(ba|z|da|k|c|tc)?sh$")
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|julia|octave|lua|php|tclsh|Rscript|java)[\d.]*$")
_CODE = {
    "python": "-c",
    "pypy": "-c",
    "perl": "-e",
    "ruby": "-e",
    "node": "-e",
    "julia": "-e",
    "Rscript": "-e",
}
_VALUED = {"python": "-W -X", "pypy": "-W -X", "java": "-cp -classpath", "node": "-r --require", "perl": "-I"}
_WORDS = words_of("if then else elif do while until ! { time")  # words of the shell in front of a command
_NO_COMMAND = words_of("for case select function fi done esac } in")
_SETS = re.compile(r"[A-Za-z_]\w*\+?=")


def behind_wrappers(words: Sequence[str]) -> RunProgram | None:
    """Program that a simple command runs; None: it runs none."""
    rest = list(words)
    while rest:
        base = posixpath.basename(rest[0])
        if _SETS.match(rest[0]) or (rest[0] in _WORDS and base not in _WRAPPERS):
            del rest[0]
        elif rest[0] in _NO_COMMAND:
            return None
        elif base in _WRAPPERS:
            left = _without(rest[1:], _WRAPPERS[base])
            if not left:
                return RunProgram(program=base, arguments=rest[1:])
            rest = left
        elif _SHELL.match(base) or _INTERPRETER.match(base):
            return _interpreted(base, rest[1:])
        else:
            return RunProgram(program=rest[0], arguments=rest[1:])
    return None


def _without(words: list[str], wrapper: _Wrapper) -> list[str]:
    left, own = list(words), wrapper.words
    while left:
        if left[0] == "--":
            return left[1:]
        if left[0] in wrapper.valued:
            del left[:2]
        elif left[0].startswith("-") and len(left[0]) > 1:
            del left[0]
        elif own:
            own -= 1
            del left[0]
        else:
            return left
    return left


def _interpreted(base: str, words: Sequence[str]) -> RunProgram:
    """Program that an interpreter or a shell runs: a script, a module, or code that it was given."""
    name = re.sub(r"[\d.]+$", "", base)
    is_shell = _SHELL.match(base) is not None
    valued = _VALUED.get(name, "-o -O" if is_shell else "").split()
    at = 0
    while at < len(words) and words[at].startswith(("-", "+")) and len(words[at]) > 1:
        word, behind = words[at], words[at + 1 :]
        if word == "--":
            at += 1
            break
        if word == "-m" and behind and not is_shell:
            return RunProgram(program=behind[0], arguments=behind[1:], how=f"{name} -m")
        if word == "-jar" and behind:
            return RunProgram(program=behind[0], arguments=behind[1:], is_file=True)
        if is_shell and behind and re.match(r"-[a-z]*c$", word):
            return RunProgram(program=name, line=behind[0])
        if word == _CODE.get(name) and behind:
            return RunProgram(program=name, how=word, code=behind[0])
        at += 2 if word in valued else 1
    if at >= len(words):
        return RunProgram(program=name)
    return RunProgram(program=words[at], arguments=words[at + 1 :], is_file=name != "java")


LOOKED_AT = 2000  # tasks of a bag by which its kinds are counted, evenly over the file
MOST_KINDS = 8  # of a bag; the rarer ones are not remembered
_LONGEST_LINE = 4000  # letters of a command that are looked at, or words
_NAMED = 3  # programs in the name of a kind
_LONGEST_NAME = 80

_TOKEN = re.compile(
    r"""(?:[^\s'"\\;|&()<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|[;|&()\n]+|[<>]+|['"\\]""", re.DOTALL
)
_QUOTES = re.compile(r"""\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
_NUMBER = re.compile(r"-?[\d.,:]+$")
_ASIDE = words_of(
    "cd . source module ml conda export unset set ulimit umask trap eval exit wait true"
    " false : test [ [[ echo printf mkdir rmdir rm cp mv ln touch chmod cat tee pwd date hostname sleep ls"
)
"""Commands that surround the work; they are the work where a line has nothing else."""


def kinds_of(spec: BagSpec, tasks: Sequence[TaskInput]) -> tuple[TaskKind, ...]:
    """The kinds of a bag's tasks, the most frequent first."""
    return kinds_by_sample(spec, tasks[:: sample_step(len(tasks))], len(tasks))


def sample_step(total: int) -> int:
    """The distance between two of `total` tasks that are looked at."""
    return max(1, -(-total // LOOKED_AT))


def kinds_by_sample(spec: BagSpec, sample: Sequence[TaskInput], total: int) -> tuple[TaskKind, ...]:
    """Kinds of a bag's tasks by each `sample_step`th task of a bag of `total`."""
    if spec.kind is not None:
        return (TaskKind(_key("named", spec.kind), spec.kind, total),)
    step, counts = sample_step(total), Counter(kind_of(spec, task) for task in sample)
    return tuple(TaskKind(key, name, count * step) for (key, name), count in counts.most_common(MOST_KINDS))


def kind_of(spec: BagSpec, task: TaskInput) -> tuple[str, str]:
    """The key of a task's kind, and its name for people."""
    if spec.kind is not None:
        return _key("named", spec.kind), spec.kind
    if task.call is not None:
        name = str(task.command)
        return _key("call", name), name[:_LONGEST_NAME]
    folder = task.cwd or spec.cwd
    if spec.script is not None:
        name = task.command[0] if isinstance(task.command, list) else task.command
        return _key("script", posixpath.join(spec.cwd, name)), name[:_LONGEST_NAME]
    if isinstance(task.command, list):
        programs = [*_programs([task.command[:_LONGEST_LINE]], folder)]
    else:
        programs = [*_programs([*_commands(task.command)], folder)]
    names = [name for name, _ in programs[:_NAMED]]
    return _key("command", *(key for _, key in programs)), " + ".join(names)[:_LONGEST_NAME] or "sh"


def _key(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=12).hexdigest()


def _commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a shell line, each as its words, without redirections and comments."""
    words: list[str] = []
    skip = False
    for token in _TOKEN.findall(line[:_LONGEST_LINE]):
        if token[0] in ";|&()\n":
            if not skip:  # else the & of 2>&1
                yield words
                words = []
        elif token[0] in "<>":
            skip = True
        elif skip:
            skip = False
        elif token[0] == "#":
            break
        else:
            words.append(_QUOTES.sub(_unquoted, token))
    yield words


def _unquoted(found: re.Match[str]) -> str:
    return next((text for text in found.groups() if text is not None), "")


def _programs(commands: list[list[str]], folder: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Programs that do the work: the name for people, and what tells each from others."""
    found = [ran for words in commands if (ran := behind_wrappers(words)) is not None]
    work = [ran for ran in found if ran.program not in _ASIDE] or found
    for ran in work:
        if ran.line is not None and depth < _NAMED:
            yield from _programs([*_commands(ran.line)], folder, depth + 1)
        elif ran.code is not None:
            yield f"{ran.program} {ran.how}", f"{ran.program} {ran.how} {re.sub(r'[0-9]+', '#', ran.code)}"
        else:
            name = f"{ran.how} {ran.program}".strip()
            is_path = "/" in ran.program or ran.is_file
            where = posixpath.normpath(posixpath.join(folder, ran.program)) if is_path else name
            options = " ".join(sorted(set(_options(ran.arguments))))
            yield name if not is_path else posixpath.basename(where), f"{where} {options}"


def _options(arguments: Sequence[str]) -> Iterator[str]:
    for word in arguments:
        if word == "--":
            return
        if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
            name = word.partition("=")[0]
            yield name if name.startswith("--") else re.sub(r"[\d./].*", "", name)
