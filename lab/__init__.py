"""Programs that are run on purpose, besides the suite in `tests/`: `lab/README.md` is their index."""
