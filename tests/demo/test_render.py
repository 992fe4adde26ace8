"""The demo's program and its bag, as a user runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from picture import canvas, png
from picture.regions import part

OF = 64 * 64
"""So many parts that each takes a moment."""


def run(demo: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(demo / "render.py"), *arguments], capture_output=True, text=True, check=False
    )


def test_a_part_is_rendered_into_a_new_folder(demo_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "parts" / "0010.png"
    done = run(demo_folder, "part", "10", "--of", str(OF), "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert np.array_equal(png.decode(output.read_bytes()), canvas.render(part(10, OF)))


def test_missing_parts_end_with_1_and_no_picture(demo_folder: Path, tmp_path: Path) -> None:
    done = run(demo_folder, "assemble", str(tmp_path), str(tmp_path / "picture.png"))
    assert done.returncode == 1
    assert "100 of 100 parts are missing" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [("part", "100", "--output", "x.png"), ("part", "0", "--of", "200", "--output", "x.png")],
)
def test_a_part_that_cannot_be_ends_with_1(demo_folder: Path, arguments: tuple[str, ...]) -> None:
    done = run(demo_folder, *arguments)
    assert done.returncode == 1
    assert "part" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_arguments_end_with_2(demo_folder: Path) -> None:
    assert run(demo_folder, "part", "one", "--output", "x.png").returncode == 2


def test_the_bag_has_every_part_once(demo_folder: Path) -> None:
    lines = (demo_folder / "picture.bag").read_text(encoding="utf-8").splitlines()
    tasks = [line for line in lines if not line.startswith("#")]
    found = [re.search(r"part (\d+) --of 100 --output demo-out/parts/(\d{3})\.png$", line) for line in tasks]
    numbers = [(int(match[1]), int(match[2])) for match in found if match]
    assert numbers == [(number, number) for number in range(100)]


def test_a_line_of_the_bag_runs_with_the_named_python(demo_folder: Path, tmp_path: Path) -> None:
    lines = (demo_folder / "picture.bag").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if "part 0 " in line)
    (tmp_path / "fixtures").symlink_to(demo_folder.parent)
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, env=environment, check=True)
    pixels = png.decode((tmp_path / "demo-out" / "parts" / "000.png").read_bytes())
    assert pixels.shape == (48, 64, 3)
