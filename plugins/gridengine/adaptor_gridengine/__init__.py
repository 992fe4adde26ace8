"""Grid Engine as a backend."""
