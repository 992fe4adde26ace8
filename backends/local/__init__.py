"""The local site: this machine's processors as a small space-shared cluster that enforces `(p, tr)`."""
