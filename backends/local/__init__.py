"""This machine's processors as a small space-shared cluster that enforces `(p, tr)`."""
