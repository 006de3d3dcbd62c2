"""Marks for files that were found damaged and could not be renamed, as on a read-only disk.

A mark holds the file's size, time and inode, so that it says nothing about a file that replaces it.
It stands beside the file, or else in the user's cache, so that later processes see it too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ._store_folder import users_cache


class DamageMarks:
    """The damaged files that this process knows of, by itself or by the marks of others."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._marks: dict[Path, str] = {}

    def add(self, file: Path, found: str) -> bool:
        """Mark a file as damaged.

        Args:
            file: The file.
            found: Its wrong hash.

        Returns:
            Whether later processes see it; false if no mark could be written anywhere.
        """
        try:
            mark = f"{_stamp(file)} {found}"
        except OSError:
            return True  # it is gone: nobody loads it
        self._marks[file] = mark
        for place in _places(file):
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(mark)
            except OSError:
                continue
            return True
        return False

    def found(self, file: Path) -> str | None:
        """Return the wrong hash of a file that is marked; ``None`` if it is not."""
        try:
            stamp = _stamp(file)
        except OSError:
            return None
        for mark in (self._marks.get(file, ""), *map(_read, _places(file))):
            marked, _, found = mark.rpartition(" ")
            if marked == stamp:
                return found
        return None


def _places(file: Path) -> Iterator[Path]:
    yield file.with_name(f".{file.name}.damaged")
    path = os.fsencode(file.absolute())
    yield users_cache() / "damaged" / hashlib.sha256(path).hexdigest()[:32]


def _read(place: Path) -> str:
    try:
        with place.open(errors="replace") as mark:
            return mark.read(400)
    except (OSError, ValueError):
        return ""


def _stamp(file: Path) -> str:
    status = file.stat()
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"


marks = DamageMarks()
"""The marks that this process knows of."""
