"""The recording of a caller's unsettled speech, and when the recogniser hears it early."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from bargein.bridge.events import VoiceWords

from ._long_speech import BYTES_PER_S, LONGEST_PART_S, end_of_part
from ._protocols import Transcript

FIRST_LOOK_S = 0.5
"""When the recogniser first hears a continuing voice over the agent, in seconds: it has words by
0.8 s, when a lasting voice interrupts."""

LOOKS_EVERY_S = 0.8
"""How often it hears the voice again, in seconds, while the voice lasts without interrupting."""

GOES_ON_S = 0.128
"""How long the voice must have lasted since its last gap, in seconds."""

LOOKS_APART_S = 0.2
"""The least time between looks when a voice has stopped, in seconds: each takes 0.1 s of work."""

LOOK_TAKES_S = 0.1
"""How soon after a look at a continuing voice its stop may be looked at, in seconds: what that look
misses is what tells a throat that is cleared from a word."""


@dataclass(slots=True)
class VoiceRecording:
    """The audio since shortly before a voice began, and when the recogniser has heard it."""

    part: bytearray
    """The newest part."""
    window_s: float
    windows: int = 0
    """How many windows there are since the voice began."""
    parts: list[bytes] = field(default_factory=list)
    _lasting_at: int | None = None
    """How many windows there were when the recogniser last heard it as a continuing voice; None if
    it has not."""
    _recognised_at: int | None = None
    """The same as a voice that seemed to stop."""
    _recognised_before: int | None = None
    """The same at the beginning of a gap that may be none."""
    _in_gap: bool = False
    """Whether the recogniser was asked since the voice became weak or silent, and it has not
    stopped yet."""
    _gap_words: VoiceWords | None = None
    """The words of a voice that seems to stop, for when it has stopped."""
    _next_s: float = FIRST_LOOK_S
    """When the next look at a continuing voice is due, in seconds."""

    def add(self, window: bytes) -> None:
        """Record a window; close the current part, where it is quiet, if it is too long."""
        self.part += window
        self.windows += 1
        if len(self.part) > LONGEST_PART_S * BYTES_PER_S:
            end = end_of_part(self.part)
            self.parts.append(bytes(self.part[:end]))
            del self.part[:end]

    def all_parts(self) -> tuple[bytes, ...]:
        """Return the whole recording."""
        return (*self.parts, bytes(self.part)) if self.part else tuple(self.parts)

    def is_due(self, voiced: int) -> bool:
        """Return whether to hear a continuing voice now; if true, it counts as heard.

        Args:
            voiced: How many windows the voice has lasted since its last gap.
        """
        lasted_s = self.windows * self.window_s
        if lasted_s < self._next_s or voiced * self.window_s < GOES_ON_S:
            return False
        self._next_s, self._lasting_at = lasted_s + LOOKS_EVERY_S, self.windows
        self._in_gap, self._gap_words = False, None  # this look replaces that
        return True

    def is_due_at_fading(self, voiced: int) -> bool:
        """Return whether to hear a voice that has become weak; if true, it counts as heard.

        Args:
            voiced: How many windows the voice has lasted since its last gap.
        """
        return voiced * self.window_s < FIRST_LOOK_S and self.is_due_in_gap()

    def is_due_in_gap(self) -> bool:
        """Return whether to hear a voice that seems to stop; if true, it counts as heard."""
        is_soon = self._since_s(self._recognised_at) < LOOKS_APART_S
        if self._in_gap or is_soon or self._since_s(self._lasting_at) < LOOK_TAKES_S:
            return False
        self._recognised_before, self._recognised_at = self._recognised_at, self.windows
        self._in_gap = True
        return True

    def _since_s(self, look: int | None) -> float:
        return math.inf if look is None else (self.windows - look) * self.window_s

    def gap_closes(self) -> bool:
        """Return whether the voice was heard as one that stops, and goes on; it is due again."""
        if not self._in_gap:
            return False
        self._recognised_at, self._in_gap = self._recognised_before, False
        self._gap_words = None
        return True

    def keep_for_gap(self, words: VoiceWords) -> bool:
        """Keep words until it is known whether a gap is one; return whether there is a gap.

        Args:
            words: What the recogniser heard where the voice seemed to stop.
        """
        if self._in_gap:
            self._gap_words = words  # it may be a closure
        return self._in_gap

    def gap_lasts(self) -> VoiceWords | None:
        """Record that the voice has stopped; return its words if they are known already."""
        words, self._gap_words = self._gap_words, None
        self._in_gap = False
        return words


def words_of(heard: Sequence[Transcript]) -> VoiceWords:
    """Return the transcripts of all parts of a recording as one."""
    text = " ".join(part.text.strip() for part in heard)
    sure = min((part.confidence for part in heard), default=None)
    unhinted = [_share(part.unhinted_confidence) for part in heard]
    known = [confidence for confidence in unhinted if confidence is not None]
    least = min(known, default=None) if len(known) == len(heard) else None
    longest = max(heard, key=lambda part: len(part.text), default=Transcript(""))
    return VoiceWords(
        content=text,
        confidence=sure,
        unhinted_confidence=least,
        ending_confidence=_share(heard[-1].ending_confidence) if heard else None,
        language=longest.language,
    )


def _share(number: float | None) -> float | None:
    """Return a number from 0 to 1; None for any other, which must not cost the words."""
    return number if number is not None and 0 <= number <= 1 else None
