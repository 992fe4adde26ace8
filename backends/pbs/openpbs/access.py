"""Who may submit to a queue, by its access control lists. Pure.

As acl_check() in OpenPBS's src/lib/Libattr/attr_fn_acl.c: the first entry that names us decides; `+` and `-`
alone say what holds for whom no entry names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from backends.pbs.records import comma_list


def shuts_out(values: Mapping[str, str], user: str, groups: Collection[str] | None) -> str:
    """Why a queue takes no jobs of this user, one clause; empty where it does.

    Args:
        values: the attributes of the queue.
        groups: all of the user's; None: not known, and not judged.
    """
    if values.get("acl_user_enable") == "True" and not _admits(values.get("acl_users", ""), {user}):
        return f"its acl_users do not admit {user}"
    if groups is None or values.get("acl_group_enable") != "True":
        return ""
    if _admits(values.get("acl_groups", ""), groups):
        return ""
    return f"its acl_groups admit none of the groups of {user} ({', '.join(sorted(groups))})"


def submit_hosts(values: Mapping[str, str]) -> tuple[str, ...]:
    """The only machines from which a queue takes jobs; empty: any."""
    if values.get("acl_host_enable") != "True":
        return ()
    return comma_list(values.get("acl_hosts", ""))


def _admits(entries: str, names: Collection[str]) -> bool:
    admitted = False
    for entry in comma_list(entries):
        allows, name = not entry.startswith("-"), entry.lstrip("+-")
        if not name:
            admitted = allows
        elif _names(name, names, allows):
            return allows
    return admitted


def _names(entry: str, names: Collection[str], allows: bool) -> bool:
    """`user@host` means us only on some machines, which are taken to include this one where it admits."""
    name, _, host = entry.partition("@")
    return (name == "*" or name in names) and (not host or host == "*" or allows)
