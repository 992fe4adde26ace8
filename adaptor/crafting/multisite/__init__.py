"""Several sites serve the same bags: the waiting tasks are divided among them. Pure."""
