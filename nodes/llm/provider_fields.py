"""Collects the fields of a provider's own that come with tool calls, so that they can go back.

Nobody but the provider reads them, so they are kept as they came: pieces of a stream are joined as
OpenAI's SDK joins those of a chunk (texts are appended, objects merged, items of lists found by
their index), and a field that comes whole in each piece counts once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bargein.bridge.validation.foreign_data import MOST_NESTING, is_deep
from bargein.routes.logs import get_logger

log = get_logger()

MOST_CHARACTERS = 1 << 18
"""How long the own fields of one answer may be, as JSON: about 60,000 tokens of thoughts.  Each
further request repeats them, and a history keeps them."""

_TEXTS = frozenset({"reasoning_content", "reasoning", "text", "summary", "thinking"})
"""Fields whose pieces are parts of one text, even where a piece equals all that came before it."""


class OwnFields:
    """The own fields of one answer."""

    def __init__(self, model: str) -> None:
        """Start without any.

        Args:
            model: The model's name, for the log.
        """
        self._model = model
        self._size = 0
        self._is_too_long = False

    def join(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields with a further piece of them, if it fits.

        Args:
            old: The fields so far.
            new: The piece.
        """
        return joined(old, new) if new and self.fits(new) else dict(old)

    def fits(self, new: Mapping[str, Any]) -> bool:
        """Count a piece; return whether it can be kept.

        Args:
            new: The piece.
        """
        if self._is_too_long or is_deep(new, MOST_NESTING):
            return False
        try:
            self._size += len(json.dumps(new))
        except ValueError:
            return False  # a number of more than 4,300 digits
        self._is_too_long = self._size > MOST_CHARACTERS
        if self._is_too_long:
            log.warning("provider_fields_too_long", model=self._model, most=MOST_CHARACTERS)
        return not self._is_too_long

    def whole(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields as they are kept; empty if those of the answer are too long.

        What a provider has signed is valid only as it came, so no more is changed than what no
        request can carry: halves of characters are joined, or replaced if they are alone.
        """
        if self._is_too_long:
            return {}
        text = json.dumps(fields, ensure_ascii=False)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        whole: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
        return whole


def joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of two pieces of an object as one."""
    whole = dict(old)
    for name, value in new.items():
        if value is not None:
            whole[name] = _joined(name, whole[name], value) if name in whole else value
    return whole


def _joined(name: str, old: Any, new: Any) -> Any:
    match old, new:
        case Mapping(), Mapping():
            return joined(old, new)
        case list(), list():
            return _joined_lists(old, new)
        case str(), str() if new.startswith(old) and (len(new) > len(old) or name not in _TEXTS):
            return new  # all that came before, once more
        case str(), str():
            return old + new
    return new


def _joined_lists(old: list[Any], new: list[Any]) -> list[Any]:
    is_numbered = any(isinstance(item, Mapping) and "index" in item for item in new)
    if not is_numbered and new[: len(old)] == old:
        return new  # all that came before, once more
    whole = list(old)
    for item in new:
        same = [n for n, other in enumerate(whole) if _is_same_item(other, item)]
        if same:
            whole[same[-1]] = joined(whole[same[-1]], item)
        else:
            whole.append(item)
    return whole


def _is_same_item(one: object, other: object) -> bool:
    """Whether two objects of a list are pieces of one item: their index, and what names them."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping) or "index" not in other:
        return False
    names = ("index", "type", "id")
    return all(
        one.get(name) == other.get(name) or None in (one.get(name), other.get(name))
        for name in names
    )
