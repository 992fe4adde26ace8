"""`python -m adaptor.notify FILE`: sends one message to some URLs, which stand in the file and nowhere else.

The file is removed as soon as it is read. Exit status 1: some could not be sent; the output says which,
without what is secret in them.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

import msgspec

_PAUSES = (1.0, 4.0)  # seconds before the second and the third try


class Message(msgspec.Struct, frozen=True):
    urls: list[str]
    title: str
    body: str


def main(arguments: list[str]) -> int:
    path = Path(arguments[0])
    message = msgspec.json.decode(path.read_bytes(), type=Message)
    path.unlink()
    failed = _send(message)
    if failed:
        print(f"not sent: {', '.join(failed)}")
    return 1 if failed else 0


def _send(message: Message) -> list[str]:
    """The URLs that could not be sent to, by their place and their scheme: all else may be secret."""
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    failed, waiting = [], {}
    for place, url in enumerate(message.urls, 1):
        scheme, mark, _ = url.partition("://")
        name = f"URL {place} ({scheme[:20]}{mark}…)" if mark else f"URL {place}"
        server = apprise.Apprise.instantiate(url, suppress_exceptions=True)
        if server is None:
            failed.append(f"{name}, which apprise does not understand")
        else:
            waiting[name] = server
    for pause in (*_PAUSES, None):
        for name, server in list(waiting.items()):
            if server.notify(body=message.body, title=message.title):
                del waiting[name]
        if not waiting or pause is None:
            break
        time.sleep(pause)
    return failed + list(waiting)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
