"""When words are said, by the agent or by the caller."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WordTiming:
    """When a word is said in a piece of speech."""

    text: str
    """The word as written, with the punctuation that follows it, without spaces around it."""
    start_s: float
    """Seconds from the first sample of the piece."""
    end_s: float
