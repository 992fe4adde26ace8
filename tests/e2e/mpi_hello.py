"""Says hello from each rank of an MPI program, by the library of MPICH or Open MPI, without a compiler."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path


def node() -> str:
    """Name of the node of the process that started this one: MPI hands the variables of the first node on."""
    variables = Path(f"/proc/{os.getppid()}/environ").read_bytes().split(b"\0")
    return next(
        each.partition(b"=")[2].decode() for each in variables if each.startswith(b"SLURMD_NODENAME=")
    )


if "OMPI_COMM_WORLD_SIZE" in os.environ:
    mpi = ctypes.CDLL(os.environ.get("MPI_LIBRARY", "libmpi.so.40"), ctypes.RTLD_GLOBAL)
    names = ("ompi_mpi_comm_world", "ompi_mpi_int", "ompi_mpi_op_sum")
    world, int_, sum_ = (ctypes.byref(ctypes.c_char.in_dll(mpi, name)) for name in names)
else:
    mpi = ctypes.CDLL(os.environ.get("MPI_LIBRARY", "libmpich.so.12"))
    world, int_, sum_ = map(ctypes.c_int, (0x44000000, 0x4C000405, 0x58000003))  # handles of MPICH's ABI
mpi.MPI_Init(None, None)
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(total), 1, int_, sum_, world)
print(f"hello {rank.value} of {size.value} on {node()}, sum {total.value}", flush=True)
mpi.MPI_Finalize()
