"""Judges the words of a voice that may be further away than the caller: babble, a television.

This is the rule ``distant`` of ``_barge_in.py``; that has the order of the rules.
"""

from __future__ import annotations

from bargein.bridge.languages import words_of

from ._noises import SURE_OF_WORDS, NoiseSettings
from ._sound_verdict import CLOSE_S, Sound, Verdict

LASTS_S = 1.2
"""From this length on a recogniser is less sure of several voices at once than of one, in seconds:
of 2.3 s of three voices it had 0.7 or more in none of 32, of one voice in 31 to 69 %."""

SURE_IF_IT_LASTS = 0.7
"""The confidence that the words of so long a voice need."""

FALLS_SILENT_S = 1.0
"""Babble goes on; who stops for so long, in seconds, was the only one, and is waiting."""


def distant_words(sound: Sound, settings: NoiseSettings) -> Verdict | None:
    """``distant``: words of a voice that may be babble need a sure recogniser, or a silence."""
    if not sound.text or sound.confidence is None:
        return None
    is_distant = sound.seems("distant", settings.hint_above)
    if not is_distant or sound.silent_s >= FALLS_SILENT_S - CLOSE_S:
        return None
    lasts = sound.voiced_before_s + sound.voiced_s >= LASTS_S - CLOSE_S
    least = SURE_IF_IT_LASTS if lasts else SURE_OF_WORDS
    if sound.confidence >= least:
        return None
    if sound.is_over and sound.confidence >= settings.min_confidence:
        return Verdict("undecided", "distant", final=False)
    values = {"confidence": round(sound.confidence, 3), "distant_confidence": least}
    words = len(words_of(sound.text))
    return Verdict("noise", "distant", {**values, "words": words}, final=sound.is_over)
