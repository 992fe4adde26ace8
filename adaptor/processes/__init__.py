"""Start, identify and end process trees; supervise a worker and record its end. Standard library only."""
