"""Files in the home of the PBS of a node of a throwaway cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.clusters.openpbs_conf import EXEC, mom_config, node_conf

SEARCH_PATH = f"{EXEC}/bin:{EXEC}/sbin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FOLDERS = {
    **dict.fromkeys(("aux", "mom_logs"), 0o755),
    **dict.fromkeys(("checkpoint", "mom_priv/config.d"), 0o700),
    **dict.fromkeys(("mom_priv", "mom_priv/jobs"), 0o751),
    **dict.fromkeys(("mom_priv/hooks", "mom_priv/hooks/tmp"), 0o750),
    **dict.fromkeys(("spool", "undelivered", "tmp"), 0o1777),
}


def make_home(root: Path, head: str, node: str) -> Path:
    """Make it in the folder of the cluster; returns the node's pbs.conf."""
    home = root / node
    for folder in _FOLDERS:
        (home / folder).mkdir(parents=True, exist_ok=True)
    for folder, mode in _FOLDERS.items():
        (home / folder).chmod(mode)
    shutil.copy(root / "head" / "pbs_version", home)
    environment = f"PATH={SEARCH_PATH}\nPBS_CONF_FILE={root}/pbs.conf\n"
    (home / "pbs_environment").write_text(environment, encoding="utf-8")
    (home / "mom_priv" / "config").write_text(mom_config(head, home / "tmp"), encoding="utf-8")
    conf = root / f"{node}.conf"
    conf.write_text(node_conf(root, head, node), encoding="utf-8")
    return conf
