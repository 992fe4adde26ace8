"""Traces of the Parallel Workloads Archive, by name.

Users of a trace acknowledge the archive, the site and those who gave the data, as its header says.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path

from adaptor.did_you_mean import did_you_mean
from adaptor.errors import AdaptorError
from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.swf_read import read_trace

ADDRESS = "https://www.cs.huji.ac.il/labs/parallel/workload"
TRACES = {
    "anl-intrepid": "l_anl_int/ANL-Intrepid-2009-1",
    "cea-curie": "l_cea_curie/CEA-Curie-2011-2.1-cln",
    "ctc-sp2": "l_ctc_sp2/CTC-SP2-1996-3.1-cln",
    "hpc2n": "l_hpc2n/HPC2N-2002-2.2-cln",
    "kit-fh2": "l_kit_fh2/KIT-FH2-2016-1",
    "kth-sp2": "l_kth_sp2/KTH-SP2-1996-2.1-cln",
    "lanl-cm5": "l_lanl_cm5/LANL-CM5-1994-4.1-cln",
    "llnl-atlas": "l_llnl_atlas/LLNL-Atlas-2006-2.1-cln",
    "llnl-thunder": "l_llnl_thunder/LLNL-Thunder-2007-1.1-cln",
    "lpc-egee": "l_lpc/LPC-EGEE-2004-1.2-cln",
    "metacentrum": "l_metacentrum2/METACENTRUM-2013-3",
    "nasa-ipsc": "l_nasa_ipsc/NASA-iPSC-1993-3.1-cln",
    "pik-iplex": "l_pik_iplex/PIK-IPLEX-2009-1",
    "ricc": "l_ricc/RICC-2010-2",
    "sandia-ross": "l_sandia_ross/Sandia-Ross-2001-1.1-cln",
    "sdsc-blue": "l_sdsc_blue/SDSC-BLUE-2000-4.2-cln",
    "sdsc-ds": "l_sdsc_ds/SDSC-DS-2004-2.1-cln",
    "sdsc-sp2": "l_sdsc_sp2/SDSC-SP2-1998-4.2-cln",
    "sharcnet": "l_sharcnet/SHARCNET-2005-2",
    "unilu-gaia": "l_unilu_gaia/UniLu-Gaia-2014-2",
}
"""The version cleaned of flurries where there is one."""


def trace_address(name: str) -> str:
    """Address of a trace, from its short name or from the name of its file.

    Raises:
        TraceError: it is not known.
    """
    wanted = name.lower().removesuffix(".gz").removesuffix(".swf")
    for short, place in TRACES.items():
        if wanted in (short, place.partition("/")[2].lower()):
            return f"{ADDRESS}/{place}.swf.gz"
    hint = did_you_mean(wanted, TRACES, f"known are {', '.join(TRACES)}", shown="{}")
    raise TraceError(f"no trace {name!r}: {hint}")


_PATIENCE = 60.0  # seconds without a byte after which the archive does not answer


def fetch_trace(name: str, folder: Path) -> Path:
    """Download a trace into a folder and return its path; one that is there is not fetched again.

    The file appears whole or not at all.

    Raises:
        TraceError: the name is not known, what came is no trace, or the folder cannot be written.
        AdaptorError: the archive does not answer.
    """
    address = trace_address(name)
    path = folder / address.rpartition("/")[2]
    if path.exists():
        return path
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(_download(address))
        read_trace(part, lenient=True)
        part.replace(path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return path


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_PATIENCE) as answer:  # noqa: S310  (https, as above)
            content: bytes = answer.read()
            return content
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise AdaptorError(f"{address}: {reason}; is there a network? Any .swf file does as well") from error
