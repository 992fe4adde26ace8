"""Donated processors in the simulated cluster."""
