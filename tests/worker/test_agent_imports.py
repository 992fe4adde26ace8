"""What a worker does not import: each of a thousand of them would pay for it with memory and time."""

from __future__ import annotations

import subprocess
import sys

_FOREIGN = """
apscheduler asyncio click concurrent.futures cryptography email http jinja2 logging multiprocessing numpy
plumbum psutil rich sqlite3 subprocess yaml
"""
"""What the daemon and the command line need."""
_LATER = "bz2 getpass lzma pickle pkgutil random shutil tempfile traceback adaptor.worker.calls.warm"
"""What only some tasks need, imported with the first of them."""
_ROOMS = """
adaptor.budget adaptor.cli adaptor.client adaptor.config adaptor.crafting adaptor.daemon adaptor.decisions
adaptor.donation adaptor.forecast adaptor.journal adaptor.runtimes adaptor.scheduling backends
"""


def test_a_worker_starts_without_what_it_may_never_need() -> None:
    absent = [*_FOREIGN.split(), *_LATER.split(), *_ROOMS.split()]
    code = (
        "import sys; before = set(sys.modules); "
        "import adaptor.worker.__main__, adaptor.worker.tls_transport; "
        f"print([name for name in {absent} if name in sys.modules and name not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
