"""The pictures of docs/page.md can be taken anew, and there are no others."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.page.screenshots import FOLDER, PICTURES, take

PAGE = FOLDER.parent / "page.md"


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_the_page_shows_each_picture() -> None:
    """What is taken is shown, with words for who sees no pictures, and what is shown is taken."""
    shown = re.findall(r"!\[([^\]]+)\]\(pictures/page-([\w-]+)\.png\)", PAGE.read_text())
    assert sorted(name for _, name in shown) == sorted(PICTURES)
    assert all(len(words) > 10 for words, _ in shown)
    assert all((FOLDER / f"page-{name}.png").is_file() for name in PICTURES)


@pytest.mark.parametrize("name", ["desk-steps", "desk-stopping", "phone-paused", "phone-talking"])
def test_a_picture_is_taken(
    agent: int, launch: Callable[[str], Any], tmp_path: Path, name: str
) -> None:
    """The script still finds what it shows, and its picture is as large as the one of the page."""
    taken = take(launch("speaks"), agent, tmp_path, name)
    assert size_of(taken) == size_of(FOLDER / taken.name)
    assert taken.stat().st_size > 20_000
