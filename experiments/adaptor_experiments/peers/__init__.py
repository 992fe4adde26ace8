"""Bags beside what users do with them today: job arrays, chunks, whole nodes."""
