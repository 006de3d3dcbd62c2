"""Strategies for the start of the caller's turn while the agent is idle.

(While it is busy, the strategy in ``_barge_in.py`` decides.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ._number_checks import check_count, check_seconds
from ._phrases import words_of
from ._sound_verdict import Sound


@runtime_checkable
class TurnStart(Protocol):
    """Decides whether a sound begins a turn."""

    def begins(self, sound: Sound) -> bool:
        """Whether the caller's turn has begun.

        It is called whenever more is known of a sound.

        Args:
            sound: What was heard so far.
        """
        ...

    @property
    def ask_after_s(self) -> float | None:
        """Seconds into a sound at which to ask again without news; ``None`` for never."""
        ...


@dataclass(frozen=True, slots=True)
class StartOnVoice:
    """Starts a turn at the voice, before any word is known."""

    after_s: float = 0.0
    """How long the voice has to last, in seconds; 0 for at once, which gives the agent the most
    time to prepare. More keeps clicks and coughs from becoming turns."""

    def __post_init__(self) -> None:
        """Check the number."""
        check_seconds("StartOnVoice(after_s=)", self.after_s)

    @property
    def ask_after_s(self) -> float | None:
        """Seconds of voice after which a turn starts."""
        return self.after_s

    def begins(self, sound: Sound) -> bool:
        """Return whether the voice has lasted long enough, or words are known.

        Args:
            sound: What was heard so far.
        """
        return sound.lasts(self.after_s) or bool(sound.text)


@dataclass(frozen=True, slots=True)
class StartOnWords:
    """Starts a turn at the first words, for lines on which noise sounds like speech."""

    min_words: int = 1
    """How many words begin a turn; characters in scripts without spaces."""

    def __post_init__(self) -> None:
        """Check the number."""
        check_count("StartOnWords(min_words=)", self.min_words)

    @property
    def ask_after_s(self) -> float | None:
        """``None``: time alone decides nothing."""
        return None

    def begins(self, sound: Sound) -> bool:
        """Whether enough words are known.

        Args:
            sound: What was heard so far.
        """
        return len(words_of(sound.text)) >= self.min_words
