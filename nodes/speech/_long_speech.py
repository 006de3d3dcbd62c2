"""Long speech goes to a recogniser in parts that are cut where it is quiet, between two words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bargein.bridge.audio.pcm import samples

from ._speech_protocols import Transcript

BYTES_PER_S = 32_000

LONGEST_PART_S = 24.0
"""The length of a part, in seconds: Whisper hears at most 30 s at once."""

SEARCHED_S = 6.0
"""How much of the end of a part may move into the next one, in seconds: people who tell a story
pause for a breath at least that often."""

_WINDOW_BYTES = BYTES_PER_S // 20
"""A closure inside a word is shorter than these 50 ms, and quieter than most gaps between words."""


def end_of_part(pcm: bytes | bytearray) -> int:
    """Return where to cut a part that has become too long.

    Args:
        pcm: PCM16 little-endian mono at 16 kHz, longer than `LONGEST_PART_S`.

    Returns:
        The offset, in bytes, of the quietest moment of its last `SEARCHED_S`.
    """
    last = len(pcm) - _WINDOW_BYTES
    first = max(_WINDOW_BYTES, len(pcm) - int(SEARCHED_S * BYTES_PER_S))
    offsets = range(first & ~1, last, _WINDOW_BYTES)
    loudness = lambda at: sum(map(abs, samples(pcm[at : at + _WINDOW_BYTES])))  # noqa: E731
    return (min(offsets, key=loudness, default=last) + _WINDOW_BYTES // 2) & ~1


def parts_of(pcm: bytes) -> list[bytes]:
    """Return speech as parts of at most `LONGEST_PART_S`, in order; at least one.

    Args:
        pcm: PCM16 little-endian mono at 16 kHz, any length.
    """
    parts, longest = [], int(LONGEST_PART_S * BYTES_PER_S)
    while len(pcm) > longest:
        cut = end_of_part(pcm[:longest])
        parts.append(pcm[:cut])
        pcm = pcm[cut:]
    return [*parts, pcm]


def joined(heard: Sequence[Transcript]) -> Transcript:
    """Return what was heard of the parts of one utterance as one.

    Args:
        heard: The transcripts, in order; at least one.

    Returns:
        All words; as certain as the least certain part that has some.
    """
    spoken = [part for part in heard if part.text.strip()]
    if len(spoken) < 2:
        return spoken[0] if spoken else heard[0]
    unhinted = [part.unhinted_confidence for part in spoken if part.unhinted_confidence is not None]
    return replace(
        min(spoken, key=lambda part: part.confidence),
        text=" ".join(part.text.strip() for part in spoken),
        unhinted_confidence=min(unhinted) if len(unhinted) == len(spoken) else None,
        ending_confidence=spoken[-1].ending_confidence,
        language=max(spoken, key=lambda part: len(part.text)).language,
    )
