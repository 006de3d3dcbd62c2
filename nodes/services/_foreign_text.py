"""Joins the characters that a server cuts in two, and drops the halves that stay alone.

A server that sends tokens as they come cuts emoji and others in two: as the two halves of a
character beyond U+FFFF in JSON escapes, or as bytes of UTF-8, which `parse_json` keeps.  Nothing
can be made of a half: no file, wire or voice takes it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic_core import from_json

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BYTES = re.compile("[\udc80-\udcff]+")
_UNFINISHED = re.compile(rb"[\xc2-\xf4][\x80-\xbf]{0,2}\Z")


def parse_json(data: str | bytes | bytearray) -> Any:
    """Parse JSON of a server; halves of characters stay in it, as surrogates.

    Raises:
        ValueError: It is not JSON, or nested too deeply.
    """
    try:
        return from_json(data)
    except ValueError:
        pass
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


class WholeCharacters:
    """Joins halves across the pieces of one text."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """Return the text so far that is whole; half a character at its end waits for the rest."""
        if not self._half and (text.isascii() or not _SURROGATE.search(text)):
            return text  # nearly always
        text, self._half = _joined(self._half + text), ""
        half = re.search("[\ud800-\udfff]+\\Z", text)
        if half is not None and _may_be_begun(half[0]):
            text, self._half = text[: half.start()], half[0]
        return _SURROGATE.sub("", text)


def _joined(text: str) -> str:
    if not _SURROGATE.search(text):
        return text
    text = _PAIR.sub(lambda pair: _character(pair[0]), text)
    return _BYTES.sub(_decoded, text)


def _character(pair: str) -> str:
    return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _decoded(run: re.Match[str]) -> str:
    """Return the characters of a run of bytes; what is not UTF-8 stays."""
    data = run[0].encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "surrogateescape")


def _may_be_begun(half: str) -> bool:
    """Whether surrogates at the end of a piece may be the beginning of a character."""
    if "\ud800" <= half[-1] <= "\udbff":
        return True
    try:
        return _UNFINISHED.search(half.encode("utf-8", "surrogateescape")) is not None
    except UnicodeEncodeError:
        return False  # the second half of a character whose first is missing
