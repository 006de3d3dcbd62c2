"""What tells that a cough, a laugh or a sneeze is no word, and so interrupts nothing.

These are rules of ``_barge_in.py``, by name; that has their order.  Which texts are those of noises
is in ``_phrases.py``, and in the language packs; words that a recogniser makes up of a noise are in
``_hallucinations.py``.
"""

from __future__ import annotations

from typing import Protocol

from bargein.bridge.languages import words_of

from ._phrases import Phrases
from ._sound_verdict import CLOSE_S, Sound, Verdict

SURE_OF_WORDS = 0.8
"""From this confidence on words outweigh what a sound seems to be.  Of 34 hums of synthetic voices
Whisper made words that acknowledge nothing with 0.73 at most, and people's digits, where it got
them right, with 0.54 to 0.92; one in two had 0.8."""

SOUNDS_LIKE_NOISE = 0.5
"""From this probability on a hint at a noise is more likely right than wrong."""

SOUNDS_LIKE_SPEECH = 0.9
"""From this probability on a hint at speech is right."""

BREAKS = ("...", "\u2026", "-")
"""How a recogniser ends a word that breaks off."""

BREAKS_OFF_WITHIN_S = 0.4
"""In a gap, a longer sound of one word that breaks off is a sneeze or a sigh for now, in seconds:
of 480 beginnings of 130 people none was that long there, and sneezes last 0.4 to 0.6 s."""

PARTS = 2
"""A sound of which only a part is known holds the agent for so many times `acknowledgement_lasts_s`
at most: recognisers write the next part within a second."""

_EXCLAIMED = ("!", "\uff01")


class NoiseSettings(Protocol):
    """What of the turn settings tells noises from words."""

    @property
    def phrases(self) -> Phrases: ...
    @property
    def acknowledgement_lasts_s(self) -> float: ...
    @property
    def false_interruption_timeout_s(self) -> float: ...
    @property
    def speech_timeout_s(self) -> float: ...
    @property
    def min_confidence(self) -> float: ...
    @property
    def hint_above(self) -> float: ...
    @property
    def misheard_words(self) -> int: ...


def written_as_noise(sound: Sound, settings: NoiseSettings) -> Verdict | None:
    """``noises``: recognisers write a laugh, a cough or a sneeze as "ha ha", "C-", "But..." or
    "Catch!"."""
    if not sound.text or may_go_on(sound, settings):
        return None
    evidence = _evidence_of_noise(sound, settings)
    if not evidence:
        return None
    exclaimed = evidence == EXCLAIMED
    if waits_for_rest(sound, settings) or (exclaimed and is_heard_in_part(sound, settings)):
        return Verdict("undecided", final=False)
    values: dict[str, str | int | float] = {"words": len(words_of(sound.text))}
    values |= {"voiced_s": round(sound.voiced_s, 3), "evidence": evidence}
    return Verdict("noise", "noises", values, final=sound.is_over)


EXCLAIMED = "exclaimed"


def _evidence_of_noise(sound: Sound, settings: NoiseSettings) -> str:
    """Return what shows that words are a noise; empty if nothing does."""
    if settings.phrases.is_noise(sound.text):
        return "written as a noise"
    if _is_exclaimed(sound, settings):
        return EXCLAIMED
    return "breaks off" if breaks_off(sound, settings) else ""


def breaks_off(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether one word that breaks off is all: so Whisper writes a sneeze ("But...").

    If the sound itself seems a noise, a few words count as one ("I took...").
    """
    few = sound.seems("noise", SOUNDS_LIKE_NOISE) and _is_short(sound, settings)
    if sound.lasts(settings.acknowledgement_lasts_s) or not (few or is_one_word(sound, settings)):
        return False
    return sound.text.rstrip().endswith(("...", "\u2026"))


def begins_a_word(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether words that break off may be a beginning, and not a sneeze, which is longer."""
    return breaks_off(sound, settings) and not sound.lasts(BREAKS_OFF_WITHIN_S)


def _is_exclaimed(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether a few exclaimed words are all, unsure, not of the hint and not surely speech.

    So Whisper writes one short text in five that it makes of a noise ("Catch!", "Bye, Joe!"), and
    2 of 680 that it makes of people's words.  It is sure of one sneeze in 100.  Other recognisers
    write a caller's "Hello!" like that, and some do not say how sure they are.
    """
    if sound.lasts(settings.acknowledgement_lasts_s) or not _is_short(sound, settings):
        return False
    if sound.seems("speech", SOUNDS_LIKE_SPEECH) or sound.unhinted_confidence is not None:
        return False
    if sound.confidence is None or sound.confidence >= SURE_OF_WORDS:
        return False
    return sound.text.rstrip().endswith(_EXCLAIMED)


def _is_short(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether a sound has few words, and none of those that are said alone."""
    few = len(words_of(sound.text)) <= settings.misheard_words
    return few and not settings.phrases.is_short_answer(sound.text)


def is_heard_in_part(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether the recogniser heard the words while the voice continued, so that more may follow.

    Those of the whole sound come soon after it has stopped.
    """
    if sound.is_voiced:
        return True
    is_whole = sound.words_known or sound.words_tentative
    return not is_whole and sound.silent_s < settings.false_interruption_timeout_s - CLOSE_S


def is_cut(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether words break off because the recogniser heard only a part of the sound.

    Of beginnings it then writes "I...", "So...", "V-" and "O-P-", as it does of coughs.
    """
    breaks_off = sound.text.rstrip().endswith(BREAKS)
    return breaks_off and is_heard_in_part(sound, settings)


def waits_for_rest(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether words break off and the recogniser may still write the rest of them.

    If it has not when the sound is that long, nobody says it.
    """
    return is_cut(sound, settings) and not sound.lasts(rest_within_s(settings))


def rest_within_s(settings: NoiseSettings) -> float:
    """Return how long a sound lasts at most before the rest of its words is known, in seconds."""
    return PARTS * settings.acknowledgement_lasts_s


def may_go_on(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether a sure word breaks off in a silence that is no longer than a breath: "Well ..., I".

    Of sneezes recognisers write the same, but those are longer, or it is less sure.
    """
    if sound.is_voiced or sound.silent_s >= settings.speech_timeout_s - CLOSE_S:
        return False
    if sound.words_tentative and sound.lasts(BREAKS_OFF_WITHIN_S):
        return False
    breaks_off = sound.text.rstrip().endswith(BREAKS)
    sure = sound.confidence is not None and sound.confidence >= SURE_OF_WORDS
    is_noise = sound.seems("noise", SOUNDS_LIKE_NOISE)
    return breaks_off and sure and not is_noise and is_one_word(sound, settings)


def is_one_word(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether a sound is a single word, but for numbers, "no" and others that are said alone."""
    one = len(words_of(sound.text)) == 1
    return one and not settings.phrases.is_short_answer(sound.text)
