"""Hooks of OpenPBS and scripts of Torque for donated nodes outside their book-keeping."""

from __future__ import annotations

import shlex
from pathlib import Path

from backends.hooks import Hooks, Script, Wanted
from backends.scripts import fill

_FOLDER = Path(__file__).parent
_OPENPBS = """\
Tell the server, as root:
    qmgr -c "create hook adaptor_reclaim"
    qmgr -c "set hook adaptor_reclaim event = 'execjob_begin,execjob_end'"
    qmgr -c "set hook adaptor_reclaim fail_action = none"
    qmgr -c "set hook adaptor_reclaim alarm = {alarm}"
    qmgr -c "import hook adaptor_reclaim application/x-python default {{folder}}/adaptor_reclaim.py"
execjob_begin and execjob_end come to every node of a job; execjob_prologue comes to a node only with the
job's first process there."""
_TORQUE = """\
Put both files into mom_priv on every node, owned by root and writable by nobody (chmod 500), as:
    adaptor-prologue    prologue and prologue.parallel
    adaptor-epilogue    epilogue and epilogue.parallel
Where there are such scripts already, call these from them with the same arguments.
pbs_mom gives a prologue $prologalarm seconds (mom_priv/config): more than {alarm}."""


def openpbs_hooks(wanted: Wanted) -> Hooks:
    """One hook for both events."""
    text = fill(
        _FOLDER / "hook.template",
        site=wanted.site,
        python=repr(wanted.python),
        options=", ".join(repr(option) for option in wanted.options),
        bound=str(wanted.bound),
    )
    instructions = _OPENPBS.format(alarm=wanted.bound + 4)
    return Hooks((Script("adaptor_reclaim.py", text, 0o644),), tuple(instructions.splitlines()), ".")


def torque_hooks(wanted: Wanted) -> Hooks:
    """Scripts for `mom_priv`."""
    scripts = []
    for kind in ("prologue", "epilogue"):
        text = fill(
            _FOLDER / "torque" / f"{kind}.template",
            site=wanted.site,
            python=shlex.quote(wanted.python),
            options=shlex.join(wanted.options),
            bound=str(wanted.bound),
        )
        scripts.append(Script(f"adaptor-{kind}", text))
    return Hooks(tuple(scripts), tuple(_TORQUE.format(alarm=wanted.bound).splitlines()), "mom_priv")
