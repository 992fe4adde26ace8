"""PNG files: what we write is what any reader sees, and damage never goes unnoticed."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture import png


def picture_of(width: int, height: int, seed: int) -> png.Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def plain_reader(data: bytes) -> list[list[int]]:
    """Rows of bytes by the letter of the standard (§9.2, filter Sub), without numpy or our own code."""
    (width, height) = struct.unpack_from(">II", data, 16)
    start = data.index(b"IDAT")
    (length,) = struct.unpack_from(">I", data, start - 4)
    raw = zlib.decompress(data[start + 4 : start + 4 + length])
    rows = []
    for y in range(height):
        line = raw[y * (1 + 3 * width) : (y + 1) * (1 + 3 * width)]
        assert line[0] == 1
        row: list[int] = []
        for x, byte in enumerate(line[1:]):
            row.append((byte + (row[x - 3] if x >= 3 else 0)) % 256)
        rows.append(row)
    return rows


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_another_reader_sees_the_same_pixels(width: int, height: int, seed: int) -> None:
    pixels = picture_of(width, height, seed)
    assert plain_reader(png.encode(pixels)) == pixels.reshape(height, width * 3).tolist()


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_it_reads_what_it_writes(width: int, height: int, seed: int) -> None:
    pixels = picture_of(width, height, seed)
    assert np.array_equal(png.decode(png.encode(pixels)), pixels)


def test_every_cut_off_file_is_refused() -> None:
    data = png.encode(picture_of(5, 4, 1))
    for length in range(len(data)):
        with pytest.raises(png.PngError):
            png.decode(data[:length])


def test_every_changed_byte_is_noticed() -> None:
    data = png.encode(picture_of(3, 3, 2))
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x10
        with pytest.raises(png.PngError):
            png.decode(bytes(changed))


def test_a_png_of_another_kind_is_refused() -> None:
    header = struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 0)  # with an alpha channel
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(5))), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    with pytest.raises(png.PngError, match="8-bit RGB"):
        png.decode(data)


def test_writing_leaves_one_whole_file_and_nothing_else(tmp_path: Path) -> None:
    old, new = picture_of(4, 4, 3), picture_of(4, 4, 4)
    png.write(tmp_path / "a.png", old)
    png.write(tmp_path / "a.png", new)
    assert np.array_equal(png.decode((tmp_path / "a.png").read_bytes()), new)
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.png").mkdir()
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the file system
        png.write(tmp_path / "a.png", picture_of(4, 4, 5))
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
