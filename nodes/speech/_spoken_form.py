"""The one step between the text of an answer and the voice: what is written becomes what is said.

Rules:
1. It streams: nothing is delayed that a voice would say, wherever the text is split.
2. Every part of the text keeps what is said for it, so that what was heard counts in the written
   text.
3. A thought, a tool call or a token that stands in the text is never said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast, runtime_checkable

from bargein.nodes.hidden_text import HiddenText

from ._markup import MarkupRemover, SpokenPart


@runtime_checkable
class SpokenForm(Protocol):
    """Turns the written text of one utterance into what a voice says; made anew for each one."""

    def feed(self, text: str) -> Sequence[SpokenPart]:
        """Return the parts that this text completes.

        Args:
            text: The next characters, split anywhere.

        Returns:
            Parts in order.  All parts of an utterance, joined, are its text: the playout finds in
            it what was heard.
        """
        ...

    def flush(self) -> Sequence[SpokenPart]:
        """Return what was delayed, because the utterance is complete."""
        ...


class PlainWords:
    """The usual spoken form: without markup, emoji, thoughts, tool calls and tokens.

    Numbers, dates and addresses are left as they are, to voices that read them well.
    """

    def __init__(self) -> None:
        """Start an utterance."""
        self._hidden = HiddenText()
        self._markup = MarkupRemover()

    def feed(self, text: str) -> list[SpokenPart]:
        """Return the parts that this text completes; see `SpokenForm.feed`."""
        parts: list[SpokenPart] = []
        for piece, kind in self._hidden.feed(text):
            self._pass(parts, piece, is_hidden=bool(kind))
        return parts

    def flush(self) -> list[SpokenPart]:
        """Return what was delayed; see `SpokenForm.flush`."""
        parts: list[SpokenPart] = []
        for piece, kind in self._hidden.flush():
            self._pass(parts, piece, is_hidden=bool(kind))
        return [*parts, *self._markup.flush()]

    def _pass(self, parts: list[SpokenPart], piece: str, *, is_hidden: bool) -> None:
        if is_hidden:
            parts += [*self._markup.flush(), SpokenPart(piece, "")]
        else:
            parts += self._markup.feed(piece)


class AsWritten:
    """A spoken form that changes nothing, for a voice that reads markup or takes tags itself."""

    def feed(self, text: str) -> list[SpokenPart]:
        """Return the text; see `SpokenForm.feed`."""
        return [SpokenPart(text, text)] if text else []

    def flush(self) -> list[SpokenPart]:
        """Return nothing; see `SpokenForm.flush`."""
        return []


NewSpokenForm = Callable[[], SpokenForm]
"""Makes the spoken form of an utterance: ``PlainWords``, ``AsWritten``, or your own class."""


def spoken_form_for(voice: object, chosen: NewSpokenForm | None = None) -> NewSpokenForm:
    """Return the spoken form for a voice: the chosen one, or the voice's own, or the usual one.

    Args:
        voice: A voice; it may have an attribute ``spoken_form`` that makes one.
        chosen: What the app chose; ``None`` leaves it to the voice.
    """
    own = getattr(voice, "spoken_form", None)
    if chosen is not None:
        return chosen
    return cast(NewSpokenForm, own) if callable(own) else PlainWords
