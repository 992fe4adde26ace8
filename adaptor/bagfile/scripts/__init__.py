"""Batch scripts as sbatch(1) and qsub(1) read them."""
