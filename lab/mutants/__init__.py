"""Mutants: small changes of the code, and whether the suite notices them.

`mutations.py` makes them, `rooms.py` says which tests judge which folder, `reach.py` records which test
reaches which branch, `cover.py` orders the tests by it, `judging.py` runs the mutants in a copy of the tree.
"""
