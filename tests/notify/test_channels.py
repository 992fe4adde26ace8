"""Where messages go: URLs in a private file, or mail to the user."""

from __future__ import annotations

import importlib.util
import os
import pwd
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from adaptor.errors import UsageError
from adaptor.notify import channels
from adaptor.notify.channels import mail, read_urls, require_apprise, sendmail

OURS = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def urls(tmp_path: Path) -> Path:
    path = tmp_path / "urls"
    path.touch(mode=0o600)
    return path


def test_each_line_is_a_url_but_comments_and_empty_ones(urls: Path) -> None:
    urls.write_text("# mine\n\n  json://a#b  \n\t# old: json://c\nmailto://d\n")
    assert read_urls(urls) == ["json://a#b", "mailto://d"]


def test_a_link_to_a_private_file_is_followed(urls: Path, tmp_path: Path) -> None:
    urls.write_text("json://a\n")
    link = tmp_path / "link"
    link.symlink_to(urls)
    assert read_urls(link) == ["json://a"]


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o602, 0o620])
def test_a_file_that_others_can_read_or_write_is_refused(urls: Path, mode: int) -> None:
    urls.write_text("json://a\n")
    urls.chmod(mode)
    with pytest.raises(UsageError, match=f"{urls}: must be a file of yours alone"):
        read_urls(urls)


def test_what_has_no_url_or_is_no_text_is_refused(urls: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no URL; write one a line"):
        read_urls(urls)
    urls.write_bytes(b"json://\xff\n")
    with pytest.raises(UsageError, match="cannot be read"):
        read_urls(urls)
    with pytest.raises(UsageError, match="none"):
        read_urls(tmp_path / "none")


def test_a_mail_has_one_line_of_subject_whatever_the_title() -> None:
    told = message_from_bytes(mail("bag 1\nBcc: x@y\r\n (b)  is done", "é\nbody"), policy=policy.default)
    assert (told["To"], told["Subject"], told["Bcc"]) == (OURS, "bag 1 Bcc: x@y (b) is done", None)
    assert told.get_content() == "é\nbody\n"


def test_mail_needs_sendmail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_PLACES", str(tmp_path))
    with pytest.raises(UsageError, match="which this machine lacks"):
        sendmail()
    program = tmp_path / "sendmail"
    program.touch(mode=0o700)
    assert sendmail() == [str(program), "-i", OURS]


def test_urls_need_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    require_apprise()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"request-adaptor\[notify\]"):
        require_apprise()
