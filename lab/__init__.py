"""What is run on purpose, beside the suite in `tests/`: `lab/README.md` is its index."""
