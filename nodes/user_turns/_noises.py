"""What tells that a cough, a laugh or a sneeze is no word, and so interrupts nothing.

These are the rules of ``_barge_in.py`` that find a noise, by name; that has their order.  Which
texts are those of noises is in ``_phrases.py``, and in the language packs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._phrases import words_of
from ._sound_view import CLOSE_S, Sound, Verdict

if TYPE_CHECKING:
    from ._settings import TurnSettings

UNHEARD_OF_WORDS_S = 12.0
"""Words a second that nobody says even if a third of the voice was missed: what is heard so needs
only `hint_above`."""

SAYS_FAST = 0.7
"""The confidence that such words need: two and more that somebody said had no less."""

IMPOSSIBLE_WORDS_S = 18.0
"""Words a second that nobody says even if half of the voice was missed."""

SAYS_THE_IMPOSSIBLE = 0.85
"""The confidence that such words need: of two short coughs Whisper makes "I'm so sorry." with up to
0.83."""

AGAIN_S = 2.0
"""A single word so soon behind a noise needs `SURE_DESPITE_NOISE`: coughs come in bursts."""

NOBODY_SPOKE = 0.4
"""Below this confidence Whisper's own thresholds take a sound for silence.  It heard "Stop!" in a
nose that was blown with 0.2; of no beginning of a sentence, of 300 that were noisy, soft or
reverberant, had its first words less."""

SURE_OF_WORDS = 0.8
"""From this confidence on words outweigh what a sound seems to be.  Of 34 hums of synthetic voices
Whisper made words that are no assent with 0.73 at most, and people's digits, where it got them
right, with 0.54 to 0.92; one in two had 0.8."""

SURE_OF_ONE_WORD = 0.65
"""The confidence that a single word needs, if it is no number, no word of the hint, and no other
that callers say alone: of throats that are cleared Whisper makes "You" and "M" with up to 0.61."""

SOUNDS_LIKE_NOISE = 0.5
"""From this probability on a hint at a noise is more likely right than wrong."""

SURE_DESPITE_NOISE = 0.8
"""The confidence that few words of such a sound need: of sneezes Whisper makes "Catch!" with 0.7,
and of people's words that it gets right one in two has 0.8."""


def written_as_noise(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """``noises``: recognisers write a laugh, a cough or a sneeze as "ha ha", "C-", or "But...".

    Args:
        sound: What was heard so far.
        settings: As they are at this moment.
    """
    if not sound.text or may_go_on(sound, settings):
        return None
    if not settings.phrases.is_noise(sound.text) and not _breaks_off(sound, settings):
        return None
    values = {"words": len(words_of(sound.text)), "voiced_s": round(sound.voiced_s, 3)}
    return Verdict("noise", "noises", values, final=sound.is_over)


def _breaks_off(sound: Sound, settings: TurnSettings) -> bool:
    """Whether one word that breaks off is all: so Whisper writes a sneeze ("But...")."""
    if sound.lasts(settings.acknowledgement_lasts_s) or not _is_one_word(sound, settings):
        return False
    return sound.text.rstrip().endswith(("...", "\u2026"))


def may_go_on(sound: Sound, settings: TurnSettings) -> bool:
    """Whether a sure word breaks off in a silence that is no longer than a breath: "Well ..., I".

    Of sneezes recognisers write the same, with less confidence.

    Args:
        sound: What was heard so far.
        settings: As they are at this moment.
    """
    if sound.is_voiced or sound.silent_s >= settings.speech_timeout_s - CLOSE_S:
        return False
    breaks_off = sound.text.rstrip().endswith(("...", "\u2026", "-"))
    sure = sound.confidence is not None and sound.confidence >= SURE_OF_WORDS
    is_noise = sound.seems("noise", SOUNDS_LIKE_NOISE)
    return breaks_off and sure and not is_noise and _is_one_word(sound, settings)


def _is_one_word(sound: Sound, settings: TurnSettings) -> bool:
    """Whether a sound is a single word, but for numbers, "no" and others that are said alone."""
    one = len(words_of(sound.text)) == 1
    return one and not settings.phrases.is_short_answer(sound.text)


def heard_by_hint_alone(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """``hint_words``: a recogniser reads words of its hint into a cough.

    Args:
        sound: What was heard so far.
        settings: As they are at this moment.
    """
    unhinted, least = sound.unhinted_confidence, settings.min_confidence
    if not sound.text or unhinted is None or unhinted >= least:
        return None
    if sound.lasts(settings.acknowledgement_lasts_s):
        return None
    values: dict[str, int | float] = {"words": len(words_of(sound.text))}
    values |= {"unhinted_confidence": round(unhinted, 3), "min_confidence": least}
    if sound.confidence is not None:
        values["confidence"] = round(sound.confidence, 3)
    return Verdict("noise", "hint_words", values, final=sound.is_over)


def unsure_words(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """``min_confidence``: a recogniser is unsure of the words that it makes of a cough.

    Args:
        sound: What was heard so far.
        settings: As they are at this moment.
    """
    confidence, least = sound.confidence, settings.min_confidence
    speed = words_a_second(sound)
    if least and speed > UNHEARD_OF_WORDS_S:
        least = max(least, SAYS_FAST if speed <= IMPOSSIBLE_WORDS_S else SAYS_THE_IMPOSSIBLE)
    if least and sound.unhinted_confidence is None and _is_one_word(sound, settings):
        least = max(least, SURE_OF_ONE_WORD)
    if least and sound.since_noise_s < AGAIN_S and _is_one_word(sound, settings):
        least = max(least, SURE_DESPITE_NOISE)
    if least and _is_likely_noise(sound, settings):
        least = max(least, SURE_DESPITE_NOISE)
    if not sound.text or confidence is None or confidence >= least:
        return None
    times = 1 if confidence >= NOBODY_SPOKE else 2
    if sound.lasts(times * settings.acknowledgement_lasts_s):
        return None  # who speaks for so long speaks, however badly they are heard
    values = {"confidence": round(confidence, 3), "min_confidence": least}
    words = len(words_of(sound.text))
    return Verdict("noise", "min_confidence", {**values, "words": words}, final=sound.is_over)


def _is_likely_noise(sound: Sound, settings: TurnSettings) -> bool:
    """Whether a sound that seems a noise has few words, and none of those that are said alone."""
    surely = sound.seems("noise", settings.hint_above)
    most = settings.misheard_words if surely else min(1, settings.misheard_words)
    is_answer = settings.phrases.is_short_answer(sound.text)
    likely = sound.seems("noise", SOUNDS_LIKE_NOISE)
    return likely and len(words_of(sound.text)) <= most and not is_answer


def no_words(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """``words``: a sound that is over and has no words was none.

    Args:
        sound: What was heard.
        settings: As they are at this moment.
    """
    if sound.text or not sound.is_over:
        return None
    values = {"words": 0, "voiced_s": round(sound.voiced_s, 3)}
    return Verdict("noise", "words", {**values, "waited_s": round(sound.waited_s, 3)})


def words_a_second(sound: Sound) -> float:
    """Return how many words a recogniser found in each second of a sound.

    Args:
        sound: What was heard so far.
    """
    voiced_s = sound.voiced_before_s + sound.voiced_s
    return len(words_of(sound.text)) / max(voiced_s, 0.1)
