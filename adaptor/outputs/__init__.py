"""Where the output of tasks lies: files of their own, or packed together; read by people."""
