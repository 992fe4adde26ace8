"""Transparent allocation on the simulated cluster, beside formal requests (De Rose et al. 2008, §3, §5)."""
