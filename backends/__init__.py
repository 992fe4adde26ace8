"""One folder per batch scheduler; `backends.base` says what each has to answer."""
