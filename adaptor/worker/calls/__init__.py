"""Calls of Python functions: each slot keeps a Python process of the user's own for them."""
