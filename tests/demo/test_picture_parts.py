"""The picture's parts: they tile it, do not depend on each other, and join only when all are sound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from picture import canvas, png
from picture.assembly import assemble, part_path
from picture.regions import HEIGHT, WIDTH, Region, part

PARTS = 16


def flat_part(number: int) -> png.Pixels:
    region = part(number, PARTS)
    return np.full((region.height, region.width, 3), number * 10, dtype=np.uint8)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for number in range(PARTS):
        png.write(part_path(tmp_path, number), flat_part(number))
    return tmp_path


@given(st.integers(1, 20).map(lambda side: side * side))
def test_the_parts_cover_every_pixel_once(of: int) -> None:
    covered = np.zeros((HEIGHT, WIDTH), dtype=np.int64)
    for number in range(of):
        left, top, width, height = part(number, of)
        assert width > 0
        assert height > 0
        covered[top : top + height, left : left + width] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize(("number", "of"), [(0, 0), (0, -4), (0, 200), (256, 256), (-1, 256), (0, 1000**2)])
def test_impossible_parts_are_refused(number: int, of: int) -> None:
    with pytest.raises(ValueError, match="part"):
        part(number, of)


@pytest.mark.parametrize(
    "region",
    [
        pytest.param(Region(795, 45, 60, 20), id="moon and stars"),
        pytest.param(Region(188, 259, 40, 30), id="rock before sky"),
        pytest.param(Region(555, 525, 40, 30), id="glass before rock and water"),
    ],
)
def test_a_part_is_the_same_as_that_region_of_a_larger_one(region: Region) -> None:
    inner = Region(region.left + 7, region.top + 5, region.width - 20, region.height - 12)
    whole = canvas.render(region)
    cut = whole[5 : 5 + inner.height, 7 : 7 + inner.width]
    assert np.array_equal(canvas.render(inner), cut)
    assert whole.std() > 3, "an empty picture would prove nothing"


def test_assembling_puts_each_part_in_its_place(parts: Path) -> None:
    whole = assemble(parts, PARTS)
    assert whole.shape == (HEIGHT, WIDTH, 3)
    for number in range(PARTS):
        left, top, width, height = part(number, PARTS)
        assert (whole[top : top + height, left : left + width] == number * 10).all()


def test_missing_parts_are_named(parts: Path) -> None:
    part_path(parts, 3).unlink()
    part_path(parts, 12).unlink()
    with pytest.raises(ValueError, match=r"2 of 16 parts are missing.*003\.png, 012\.png"):
        assemble(parts, PARTS)


def test_of_many_missing_parts_only_some_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"256 of 256 .* and 246 more") as caught:
        assemble(tmp_path, 256)
    assert str(caught.value).count(".png") == 10


def test_a_damaged_part_is_named(parts: Path) -> None:
    path = part_path(parts, 5)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"005\.png: cut off"):
        assemble(parts, PARTS)


def test_a_part_of_another_size_is_named(parts: Path) -> None:
    png.write(part_path(parts, 7), np.zeros((3, 2, 3), dtype=np.uint8))
    with pytest.raises(ValueError, match=r"007\.png: is 2×3 pixels, the part has 160×120"):
        assemble(parts, PARTS)
