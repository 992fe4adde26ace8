"""Fetching traces, from a folder in place of the archive."""

from __future__ import annotations

import gzip

import pytest

from adaptor.errors import AdaptorError
from adaptor_simulation.files import TraceError
from adaptor_simulation.traces import archive
from tests.simulation.swf_text import line


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    folder = tmp_path / "mirror" / "l_sdsc_sp2"
    folder.mkdir(parents=True)
    monkeypatch.setattr(archive, "ADDRESS", (tmp_path / "mirror").as_uri())
    return folder / "SDSC-SP2-1998-4.2-cln.swf.gz"


def test_a_trace_is_fetched_once(mirror, tmp_path):
    mirror.write_bytes(gzip.compress(line().encode()))
    path = archive.fetch_trace("sdsc-sp2", tmp_path)
    assert path.read_bytes() == mirror.read_bytes()
    mirror.unlink()
    assert archive.fetch_trace("SDSC-SP2-1998-4.2-cln.swf.gz", tmp_path) == path


def test_a_trace_that_is_cut_short_does_not_stay(mirror, tmp_path):
    mirror.write_bytes(gzip.compress(line().encode())[:-4])
    with pytest.raises(TraceError, match="cut short"):
        archive.fetch_trace("sdsc-sp2", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mirror"]


def test_an_archive_that_does_not_answer(mirror, tmp_path):
    with pytest.raises(AdaptorError, match="is there a network"):
        archive.fetch_trace("sdsc-sp2", tmp_path)
    assert not mirror.exists()


def test_a_folder_that_is_not_there(mirror, tmp_path):
    mirror.write_bytes(gzip.compress(line().encode()))
    with pytest.raises(TraceError, match="No such file"):
        archive.fetch_trace("sdsc-sp2", tmp_path / "none")


def test_unknown_names():
    with pytest.raises(TraceError, match="did you mean sdsc-blue"):
        archive.trace_address("sdsc-bleu")
    with pytest.raises(TraceError, match="known are anl-intrepid"):
        archive.trace_address("???")
