"""The evaluation of De Rose et al. 2008, §4.4, whole or in part."""
