"""What the first byte of a call, and of its answer, says of the bytes that follow.

The daemon and the workers hand both on and unpickle neither.
"""

INLINE, INPUT_FILE = b"v", b"V"
"""Of a call: the pickle of (function, arguments, keyword arguments), or the name of a file with it in the
bag's output folder."""
VALUE, ERROR, ERROR_OF_CHILDREN, TEXT = b"v", b"e", b"c", b"t"
"""Of an answer: the pickle of a value; of an exception; of the exception of a call whose child processes have
ended, so that it may come from a signal to these; of three texts on an exception that cannot be pickled: its
class, its first line, its traceback."""
OWN_ERRORS = (ERROR, ERROR.upper(), TEXT, TEXT.upper())
"""Errors that only the call itself can have caused. A capital letter: the name of a file
follows, in the bag's output folder, which has the pickle."""
