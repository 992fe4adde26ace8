"""Messages about bags to the outside: a process of its own, for a library that the daemon need not carry."""
