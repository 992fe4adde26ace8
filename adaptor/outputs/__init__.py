"""Places of the output of tasks: files of their own, or packed together; read by people."""
