"""Says hello from each rank of an MPI program; MPICH's library, called without a compiler."""

from __future__ import annotations

import ctypes
import os

WORLD, INT, SUM = 0x44000000, 0x4C000405, 0x58000003
"""Handles of MPICH's ABI."""

mpi = ctypes.CDLL("libmpich.so.12")
mpi.MPI_Init(None, None)
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
mpi.MPI_Allreduce(ctypes.byref(rank), ctypes.byref(total), 1, INT, SUM, WORLD)
print(f"hello {rank.value} of {size.value} on {os.environ['SLURMD_NODENAME']}, sum {total.value}", flush=True)
mpi.MPI_Finalize()
