"""What tells that a cough, a laugh or a sneeze is no word, and so interrupts nothing.

A recogniser writes noises in ways of its own, and makes up words of them, or reads its hint into
them (hallucinations).  These are rules of ``_barge_in.py``, by name; that has their order.  Which
texts are those of noises is in ``_phrases.py``, and in the language packs.
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
    """What of ``TurnSettings`` tells noises from words."""

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


# --- words that a recogniser makes up ------------------------------------------------------------


FASTEST_WORDS_S = 8.0
"""More words a second than anybody says; auctioneers reach 6. Recognisers hear more in a hum, and
in a throat that is cleared."""

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

SURE_OF_ONE_WORD = 0.65
"""The confidence that a single word needs, if it is no number, no word of the hint, and no other
that callers say alone: of throats that are cleared Whisper makes "You" with up to 0.61."""

SURE_OF_ONE_LETTER = 0.8
"""The same for a single consonant: of throats that are cleared Whisper makes "M" with up to 0.67
and "f" with 0.78, and of a spoken "eight" it makes "A" with 0.71."""

_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")

SURE_DESPITE_NOISE = 0.8
"""The confidence that few words of such a sound need: of sneezes Whisper makes "Catch!" with 0.7,
and of people's words that it gets right one in two has 0.8."""

CERTAINLY_NOISE = 0.9
"""From this probability on a hint outweighs few words however sure they are, and more words and
numbers need `SURE_DESPITE_NOISE`: of sneezes Whisper makes "Thank you." with 0.89, "Three." with
0.5 and "I'm gonna kill her." with 0.65.  Of 1,617 beginnings of people who spoke, some over the
telephone, in noise, in a room or weak, one reached it."""


def heard_by_hint_alone(sound: Sound, settings: NoiseSettings) -> Verdict | None:
    """``hint_words``: a recogniser reads words of its hint into a cough."""
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


def unsure_words(sound: Sound, settings: NoiseSettings) -> Verdict | None:
    """``min_confidence``: a recogniser is unsure of the words that it makes of a cough."""
    confidence = sound.confidence
    least, evidence = _least_confidence(sound, settings)
    if not sound.text or confidence is None or confidence >= least:
        return None
    times = 1 if confidence >= NOBODY_SPOKE else 2
    if sound.lasts(times * settings.acknowledgement_lasts_s):
        return None  # who speaks for so long speaks, however badly they are heard
    values: dict[str, str | int | float] = {
        "confidence": round(confidence, 3),
        "min_confidence": least,
        "words": len(words_of(sound.text)),
    }
    if evidence:
        values["evidence"] = evidence
    if evidence == LIKE_A_NOISE and sound.hint is not None:
        values["probability"] = round(sound.hint.probability, 3)
    return Verdict("noise", "min_confidence", values, final=sound.is_over)


LIKE_A_NOISE = "sounds like a noise"


def _least_confidence(sound: Sound, settings: NoiseSettings) -> tuple[float, str]:
    """Return the confidence that the words need, and what asks for more than the setting."""
    least = settings.min_confidence
    if not least:
        return least, ""
    limits = [(least, "")]
    speed = words_a_second(sound)
    if speed > UNHEARD_OF_WORDS_S:
        fast = SAYS_FAST if speed <= IMPOSSIBLE_WORDS_S else SAYS_THE_IMPOSSIBLE
        limits.append((fast, "too fast for speech"))
    single = is_one_word(sound, settings)
    if single and sound.unhinted_confidence is None:
        letter = _is_one_consonant(sound)
        one = SURE_OF_ONE_LETTER if letter else SURE_OF_ONE_WORD
        limits.append((one, "single consonant" if letter else "single word"))
    if single and sound.since_noise_s < AGAIN_S:
        limits.append((SURE_DESPITE_NOISE, "single word after a noise"))
    few, certainly = _is_likely_noise(sound, settings), sound.seems("noise", CERTAINLY_NOISE)
    if (few or certainly) and not _follows_words(sound):
        limits.append((1.0 if few and certainly else SURE_DESPITE_NOISE, LIKE_A_NOISE))
    return max(limits, key=lambda limit: limit[0])


def _is_likely_noise(sound: Sound, settings: NoiseSettings) -> bool:
    """Whether a sound that seems a noise has few words, and none of those that are said alone.

    Of a sound that is surely a noise, more words than anybody says in that time count as few.
    """
    surely = sound.seems("noise", settings.hint_above)
    most = settings.misheard_words if surely else min(1, settings.misheard_words)
    too_fast = surely and most > 0 and words_a_second(sound) > FASTEST_WORDS_S
    is_answer = settings.phrases.is_short_answer(sound.text)
    likely = sound.seems("noise", SOUNDS_LIKE_NOISE)
    return likely and (too_fast or len(words_of(sound.text)) <= most) and not is_answer


def _is_one_consonant(sound: Sound) -> bool:
    """Whether the only word of a whole sound is a Latin consonant.

    One letter of Russian may be a word, and so may one character of Chinese.
    """
    [word] = words_of(sound.text)
    return word in _CONSONANTS and sound.words_known


def _follows_words(sound: Sound) -> bool:
    """Whether the hint is about what follows the words, as the "sh" of "I should"."""
    return sound.words_are_old and not sound.hint_is_old


def words_a_second(sound: Sound) -> float:
    """Return how many words a recogniser found in each second of a sound."""
    voiced_s = sound.voiced_before_s + sound.voiced_s
    return len(words_of(sound.text)) / max(voiced_s, 0.1)
