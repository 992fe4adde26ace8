"""The request adaptor: bags of tasks on space-shared clusters (De Rose et al. 2008)."""

__version__ = "0.1.0"
