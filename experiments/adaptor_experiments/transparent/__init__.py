"""Transparent allocation on the simulated cluster, next to formal requests (De Rose et al. 2008, §3, §5)."""
