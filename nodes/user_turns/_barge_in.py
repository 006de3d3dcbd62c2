"""The barge-in strategy: decides what is a real interruption while the agent speaks or works.

The rules in the order in which they are tried; the first one with an answer decides:

1. ``echo``: words that the agent is saying are its own.
2. ``interruption_phrases``: "stop" is an interruption whatever else is said, unless the recogniser
   thinks that nobody spoke.
3. ``acknowledgements``: a backchannel alone is not an interruption.
4. ``distant``: nor is a voice that may be babble, unless the recogniser is sure of its words, or
   the line falls silent behind them.
5. ``misheard_words``: a few words from what is surely a hum or an echo are misheard, except for
   numbers, "no", and a word that the recogniser is sure of.
6. ``hint_words``: if all words of a short sound are in the recogniser's hint, it reads them into a
   cough, unless it is as sure without the hint that somebody spoke.
7. ``min_confidence``: words of a short sound with a low confidence are misheard from a cough.
8. ``noises``: what a recogniser writes for a laugh, a cough or a sneeze ("ha ha", "C-", "But...",
   "Catch!") is not a word.
9. ``min_words``: enough other words are an interruption; fewer are kept for later.
10. ``words``: a sound without words was not an interruption.
11. ``hint``: the classification of the sound is enough to let the agent go on for now.
12. ``min_duration_s``, ``acknowledgement_lasts_s``: a voice that lasts is an interruption even
    before words are known.
13. ``longest_hold_s``, ``false_interruption_timeout_s`` and ``speech_timeout_s``: the agent goes on
    for now.

Words that were recognised when the voice stopped are tentative: if they are nothing, the agent goes
on, otherwise it is held for the length of a breath. They never interrupt, and they are void if the
voice goes on.

In ``hint_words`` the hint is the recogniser's, a list of words that callers are likely to use; in
``hint`` it is a ``VoiceHint``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from bargein.bridge.languages import words_of

from ._noises import (
    FASTEST_WORDS_S,
    NOBODY_SPOKE,
    SOUNDS_LIKE_SPEECH,
    SURE_OF_ONE_WORD,
    SURE_OF_WORDS,
    UNHEARD_OF_WORDS_S,
    NoiseSettings,
    begins_a_word,
    heard_by_hint_alone,
    is_cut,
    is_heard_in_part,
    may_go_on,
    rest_within_s,
    unsure_words,
    waits_for_rest,
    words_a_second,
    written_as_noise,
)
from ._sound_verdict import CLOSE_S, Hint, Sound, Verdict

if TYPE_CHECKING:
    from ._settings import TurnSettings


Rule = Callable[[Sound, "TurnSettings"], Verdict | None]

UNDECIDED = Verdict("undecided", final=False)


@runtime_checkable
class BargeIn(Protocol):
    """Decides whether a sound of the caller interrupts an agent that speaks or works."""

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        """Return a verdict on a sound.

        It is called whenever more is known of the sound, and at the time that the last verdict
        named. It must not keep state: it serves many calls, and may be called more than once for
        the same moment.

        Args:
            sound: What was heard so far.
            settings: As they are at this moment.
        """
        ...


@dataclass(frozen=True, slots=True)
class HoldThenDecide:
    """Holds the agent's speech at the first voice, then finds out what the voice is."""

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        """Return the verdict of the first rule that has one.

        Args:
            sound: What was heard so far.
            settings: As they are at this moment.
        """
        verdict = _in_a_gap(sound, settings) if sound.words_tentative else None
        if verdict is not None:
            return verdict
        says_nothing = not sound.text or sound.words_tentative or sound.words_are_old
        for rule in _SOUND_RULES if says_nothing else _RULES:
            verdict = rule(sound, settings)
            if verdict is not None:
                return verdict if verdict.final else _for_now(verdict, sound, settings)
        return _for_now(UNDECIDED, sound, settings)


def _for_now(verdict: Verdict, sound: Sound, settings: TurnSettings) -> Verdict:
    """Return a verdict that is not final, with the time to ask again.

    A verdict that lets the agent go on for now yields to a voice that lasts, unless the words are
    the agent's own.
    """
    if verdict.decision != "echo" or verdict.rule == "hint":
        lasting = _duration(sound, settings)
        if lasting is not None:
            return lasting
    return replace(verdict, ask_in_s=_next_check_s(sound, settings))


def _in_a_gap(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """Return a verdict from tentative words, which show at once whether the sound was nothing.

    If the voice goes on after all, they show nothing.
    """
    if sound.words_are_old or sound.is_voiced or may_go_on(sound, settings):
        return None
    if not sound.text:
        values = {"words": 0, "voiced_s": round(sound.voiced_s, 3)}
        return Verdict("silence", "words", values, False, _next_check_s(sound, settings))
    for rule in _WORD_RULES:
        verdict = rule(sound, settings)
        if verdict is not None and verdict.decision == "interruption":
            return None
        if (
            verdict is not None
            and verdict.rule == "misheard_words"
            and _is_unsure_acknowledgement(sound)
        ):
            return None  # the "I" of "I should" sounds so, and a closure follows
        unsure = verdict is not None and verdict.rule == "min_confidence"
        unsure = unsure or begins_a_word(sound, settings)
        if unsure and (sound.confidence or 0.0) >= _least_in_a_gap(sound, settings):
            return None  # with the silence after it the recogniser may be surer
        if verdict is not None:
            later_s = _next_check_s(sound, settings)
            return replace(verdict, decision="silence", final=False, ask_in_s=later_s)
    return None


def _least_in_a_gap(sound: Sound, settings: TurnSettings) -> float:
    """Return the confidence from which on unsure words in a gap may be those of a sentence.

    One that lasts needs less, unless its words are written as a noise, like those of throats.
    """
    if not sound.lasts(SENTENCE_S) or settings.phrases.is_noise(sound.text):
        return settings.min_confidence
    return min(NOBODY_SPOKE, settings.min_confidence)


def _echo(sound: Sound, settings: TurnSettings) -> Verdict | None:
    if not sound.text or not sound.saying:
        return None
    hinted = sound.seems("echo", settings.hint_above)
    words = len(words_of(sound.text))
    alike = similarity(sound.text, sound.saying)
    if alike < settings.echo_similarity or not (hinted or words >= settings.echo_min_words):
        return None
    values = {"similarity": round(alike, 3), "echo_similarity": settings.echo_similarity}
    return Verdict("echo", "echo_similarity", {**values, "words": words}, final=sound.is_over)


def _phrase(sound: Sound, settings: TurnSettings) -> Verdict | None:
    if not settings.phrases.asks_to_stop(sound.text):
        return None
    values: dict[str, int | float] = {"words": len(words_of(sound.text))}
    if sound.confidence is not None:
        if sound.confidence < min(NOBODY_SPOKE, settings.min_confidence):
            return None
        values["confidence"] = round(sound.confidence, 3)
    return Verdict("interruption", "interruption_phrases", values)


def _acknowledged(sound: Sound, settings: TurnSettings) -> Verdict | None:
    if not settings.phrases.is_acknowledgement(sound.text):
        return None
    if _is_a_beginning(sound) and is_heard_in_part(sound, settings):
        return UNDECIDED  # of "I asked" a recogniser hears "Uh" before the voice goes on
    values = {"words": len(words_of(sound.text)), "voiced_s": round(sound.voiced_s, 3)}
    return Verdict("acknowledgement", "acknowledgements", values, final=sound.is_over)


def _is_a_beginning(sound: Sound) -> bool:
    """Whether more words may follow an acknowledgement: it is long, and neither sure nor noise."""
    unsure = sound.confidence is not None and sound.confidence < SURE_OF_ONE_WORD
    if unsure or sound.seems("noise", LIKELY) or _is_surely_acknowledgement(sound):
        return False
    return sound.lasts(LONG_ACKNOWLEDGEMENT_S)


def _is_surely_acknowledgement(sound: Sound) -> bool:
    return sound.seems("acknowledgement", SURE)


def _is_unsure_acknowledgement(sound: Sound) -> bool:
    return sound.seems("acknowledgement", 0.0) and not _is_surely_acknowledgement(sound)


def _misheard(sound: Sound, settings: TurnSettings) -> Verdict | None:
    words = len(words_of(sound.text))
    short = not sound.lasts(settings.acknowledgement_lasts_s)
    scrap = words == 1 and not sound.lasts(SCRAP_S)
    speed = words_a_second(sound)
    nobody_said_it = scrap or speed > UNHEARD_OF_WORDS_S
    surely = settings.hint_above if nobody_said_it else max(SURE, settings.hint_above)
    kinds: list[Misheard] = [k for k in _MISHEARD if sound.seems(k, surely)]
    kind = kinds[0] if kinds else None
    too_fast = speed > FASTEST_WORDS_S and settings.misheard_words > 0
    few = words <= settings.misheard_words or too_fast
    if not words or sound.hint is None or kind is None or not (few and short):
        return None
    if kind == "acknowledgement" and _is_sure_word(sound, settings):
        return None
    values = {
        "words": words,
        "misheard_words": settings.misheard_words,
        "voiced_s": round(sound.voiced_s, 3),
        "probability": round(sound.hint.probability, 3),
    }
    return Verdict(kind, "misheard_words", values, final=sound.is_over)


def _is_sure_word(sound: Sound, settings: TurnSettings) -> bool:
    """Whether words outweigh the sound of a backchannel: recognisers never hear a number in a hum.

    They may in half an "uh-huh", so only words of the whole sound count.
    """
    if not sound.words_known:
        return False
    if settings.phrases.is_short_answer(sound.text):
        return True
    if sound.seems("acknowledgement", CERTAIN):
        return False
    return sound.confidence is not None and sound.confidence >= SURE_OF_WORDS


def _enough_words(sound: Sound, settings: TurnSettings) -> Verdict | None:
    words = len(words_of(sound.text))
    values: dict[str, int | float] = {"words": words, "min_words": settings.min_words}
    if sound.confidence is not None:
        values["confidence"] = round(sound.confidence, 3)
    if may_go_on(sound, settings):
        return None
    if not sound.words_known and settings.phrases.may_become_acknowledgement(sound.text):
        return None
    if words and words >= settings.min_words:
        return Verdict("interruption", "min_words", values)
    if words and sound.is_over:
        return Verdict("too_few_words", "min_words", values)
    return None


def _no_words(sound: Sound, settings: TurnSettings) -> Verdict | None:
    if sound.text or not sound.is_over:
        return None
    values = {"words": 0, "voiced_s": round(sound.voiced_s, 3)}
    return Verdict("noise", "words", {**values, "waited_s": round(sound.waited_s, 3)})


def _hinted(sound: Sound, settings: TurnSettings) -> Verdict | None:
    hint = sound.hint
    if hint is None or hint.kind == "speech" or hint.probability < settings.hint_above:
        return None
    if sound.text and hint.kind not in ("acknowledgement", "distant"):
        return None  # words are not noise
    if _is_unsure_acknowledgement(sound):
        return None  # one beginning of a sentence in 50 seems so: its words and length will tell
    values = {"probability": round(hint.probability, 3), "hint_above": settings.hint_above}
    if hint.kind == "distant":
        return Verdict("noise", "distant", values, final=False)
    return Verdict(hint.kind, "hint", values, final=False)


def _duration(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """Return an interruption for a voice that lasts, unless it is too early or seems no voice."""
    found = duration_that_counts(sound, settings)
    if found is None or not sound.lasts(found[1]) or _warms_for_s(sound, settings) > CLOSE_S:
        return None
    rule, limit_s = found
    values = {"voiced_s": round(sound.voiced_s, 3), rule: limit_s}
    return Verdict("interruption", rule, values)


def _warms_for_s(sound: Sound, settings: TurnSettings) -> float:
    """Return for how many more seconds sound alone did not count when the voice was last heard."""
    if math.isinf(sound.agent.first_sound_s):
        return 0.0
    return sound.agent.first_sound_s + settings.echo_warm_up_s - (sound.now_s - sound.silent_s)


def duration_that_counts(sound: Sound, settings: TurnSettings) -> tuple[str, float] | None:
    """Return the setting for how long this sound has to last, and its value; None for never."""
    least_s = settings.min_duration_s
    if least_s is None:
        return None
    hint, text = sound.hint, sound.text
    if sound.seems("distant", settings.hint_above):
        return None  # babble lasts
    if sound.seems("echo", settings.hint_above) and not text:
        return None
    if sound.seems("noise", settings.hint_above) and not _has_words(sound, settings):
        return None  # speech of that length has words
    if text and _nobody_spoke(sound, settings):
        return None
    is_noise = bool(text) and settings.phrases.is_noise(text)
    if is_noise and not (is_cut(sound, settings) and is_surely_speech(hint)):
        return None  # people laugh for seconds; speech after that has words
    agrees = hint is not None and sound.seems("acknowledgement", LIKELY) and not sound.hint_is_old
    agrees = agrees or (bool(text) and settings.phrases.is_acknowledgement(text))
    if agrees and settings.acknowledgement_lasts_s > least_s:
        return "acknowledgement_lasts_s", settings.acknowledgement_lasts_s
    return "min_duration_s", least_s


def _nobody_spoke(sound: Sound, settings: TurnSettings) -> bool:
    """Whether the recogniser takes the sound so far for something other than speech.

    It takes some beginnings for that, mostly over the telephone, whose sound is surely speech; of
    a throat that seems so it makes "Mmm".
    """
    is_acknowledgement = settings.phrases.is_acknowledgement(sound.text)
    if sound.words_tentative or sound.confidence is None:
        return False
    if is_surely_speech(sound.hint) and not is_acknowledgement:
        return False
    return sound.confidence < min(NOBODY_SPOKE, settings.min_confidence)


def _unsure(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """Return noise for uncertain words, once the voice has stopped or nobody spoke.

    A continuing voice is held for longer: either it stops, or it interrupts by lasting. So is one
    that stopped after those words, if it is not known that nobody spoke: its silence decides.
    """
    verdict = unsure_words(sound, settings)
    if sound.is_voiced:
        waits = duration_that_counts(sound, settings) is not None
    else:
        more = not (sound.words_known or sound.words_tentative or _nobody_spoke(sound, settings))
        waits = more and sound.silent_s < _timeout(sound, settings)[1] - CLOSE_S
    return UNDECIDED if verdict is not None and waits else verdict


def _has_words(sound: Sound, settings: TurnSettings) -> bool:
    """Whether it has words that may be meant."""
    is_acknowledgement = settings.phrases.is_acknowledgement(sound.text)
    return bool(sound.text) and not is_acknowledgement and unsure_words(sound, settings) is None


def _longest_hold_reached(sound: Sound, settings: TurnSettings) -> Verdict | None:
    """Return a verdict for a sound that may hold the agent only briefly, and has done so."""
    kind = _short_hold(sound, settings)
    if not kind or not sound.held_s or settings.longest_hold_s - sound.held_s > CLOSE_S:
        return None
    values = {"held_s": round(sound.held_s, 3), "longest_hold_s": settings.longest_hold_s}
    return Verdict(kind, "longest_hold_s", values, final=False)


def _short_hold(sound: Sound, settings: TurnSettings) -> Literal["", "acknowledgement", "unclear"]:
    """Return why the hold has to be short; empty if it does not.

    That a voice has just stopped is no reason: a gap after the first syllable is not its end.
    """
    if may_go_on(sound, settings) or waits_for_rest(sound, settings):
        return ""
    if _is_surely_acknowledgement(sound):
        return "acknowledgement"
    by_length = duration_that_counts(sound, settings) is not None
    return "" if by_length and _warms_for_s(sound, settings) <= CLOSE_S else "unclear"


def _fell_silent(sound: Sound, settings: TurnSettings) -> Verdict | None:
    rule, limit_s = _timeout(sound, settings)
    if sound.is_voiced or sound.silent_s < limit_s - CLOSE_S:
        return None
    values = {"silent_s": round(sound.silent_s, 3), rule: limit_s}
    return Verdict("silence", rule, values, final=False)


def _timeout(sound: Sound, settings: TurnSettings) -> tuple[str, float]:
    """Return the setting for the silence that ends it, and its value; words allow for a breath."""
    is_gap = sound.words_tentative and not sound.words_are_old
    says_something = is_gap and _has_words(sound, settings)
    if says_something or may_go_on(sound, settings):
        return "speech_timeout_s", settings.speech_timeout_s
    return timeout(sound.hint, sound.voiced_s, settings)


def timeout(hint: Hint | None, voiced_s: float, settings: TurnSettings) -> tuple[str, float]:
    """Return the setting for the silence after which a sound is over, and its value in seconds."""
    usual = "false_interruption_timeout_s", settings.false_interruption_timeout_s
    breathes = is_surely_speech(hint) or _is_long_for_a_word(hint, voiced_s, settings)
    if not breathes or settings.speech_timeout_s <= usual[1]:
        return usual  # a long wait for any sound is no shorter for speech
    return "speech_timeout_s", settings.speech_timeout_s


def _is_long_for_a_word(hint: Hint | None, voiced_s: float, settings: TurnSettings) -> bool:
    """Whether a sound is speech by its length, if no hint says otherwise.

    By then the hold is longer than a natural pause of the agent, so waiting for the words loses
    little, while going on would talk over the caller.
    """
    if hint is not None and hint.kind != "speech" and hint.probability >= LIKELY:
        return False
    return voiced_s > settings.longest_hold_s + LONGER_S + CLOSE_S


def is_surely_speech(hint: Hint | None) -> bool:
    """Return whether the sound itself shows that its words will not be a backchannel."""
    return hint is not None and hint.kind == "speech" and hint.probability >= SOUNDS_LIKE_SPEECH


def _next_check_s(sound: Sound, settings: TurnSettings) -> float:
    """Return in how many seconds an undecided rule may be able to decide."""
    waits = []
    counts = duration_that_counts(sound, settings)
    if sound.is_voiced and counts is not None:
        waits.append(max(counts[1] - sound.voiced_s, _warms_for_s(sound, settings)))
    if sound.is_voiced and waits_for_rest(sound, settings):
        waits.append(rest_within_s(settings) - sound.voiced_s)
    if not sound.is_voiced:
        waits.append(_timeout(sound, settings)[1] - sound.silent_s)
        if sound.seems("distant", settings.hint_above):
            waits.append(FALLS_SILENT_S - sound.silent_s)
    if _short_hold(sound, settings):
        waits.append(settings.longest_hold_s - sound.held_s)
    return min((wait_s for wait_s in waits if wait_s > CLOSE_S), default=math.inf)


LIKELY = 0.5
"""From this probability on, a hint of a backchannel is more likely right than wrong: the sound may
then last longer."""

SURE = 0.9
"""From this probability on, a hint of a backchannel or an echo outweighs a few words that say
otherwise: Whisper turns "mm-hmm" into "Emma." and "And Amazon"."""

CERTAIN = 0.97
"""From this probability on a hint at an acknowledgement outweighs words of which the recogniser is
sure, too: of an "uh-huh" Whisper makes two words with up to 0.86.  Of 6,138 sounds of people and of
synthetic voices that are no acknowledgement, none reached 0.95."""

LONGER_S = 0.1
"""How much longer than `longest_hold_s` a sound lasts that is longer than most short words, in
seconds."""

LONG_ACKNOWLEDGEMENT_S = 0.5
"""From this length on the sound itself has to be surely an acknowledgement if its words are to
count as one before its end, in seconds."""

SENTENCE_S = 0.5
"""From this length on, unsure words in a gap may be those of a sentence, in seconds: in a room
Whisper heard "In earnest" twice with 0.4.  Of 6 throats that were so long before a gap it wrote all
as noises, such as "Ee-e-e"."""

SCRAP_S = 0.4
"""A hint from `hint_above` on outweighs a single word in a shorter sound, in seconds: recognisers
turn a quick "uh-huh" into any short word, and few words that interrupt are so short."""

Misheard = Literal["acknowledgement", "echo"]

_MISHEARD: tuple[Misheard, ...] = ("acknowledgement", "echo")


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


SHORTEST_RUN = 4
"""How many characters in a row have to match to count: fewer match by chance in most pairs of
sentences."""


def similarity(heard: str, saying: str) -> float:
    """Return the share of heard words that the agent is saying, in that order, 0 to 1.

    Compares words and characters, and the higher share counts: recognisers split the words of an
    echo in other places ("ware house").
    """
    words, said = words_of(heard), words_of(saying)
    if not words or not said:
        return 0.0
    by_words = _share(words, said, 1)
    return max(by_words, _share("".join(words), "".join(said), SHORTEST_RUN))


def _share(heard: Sequence[str], said: Sequence[str], shortest: int) -> float:
    matcher = SequenceMatcher(None, heard, said, autojunk=False)
    sizes = (block.size for block in matcher.get_matching_blocks())
    return sum(size for size in sizes if size >= shortest) / len(heard)


_WORD_RULES: tuple[Rule, ...] = (
    _echo,
    _phrase,
    _acknowledged,
    distant_words,
    _misheard,
    heard_by_hint_alone,
    _unsure,
    written_as_noise,
    _enough_words,
)
"""These rules need words."""

_SOUND_RULES: tuple[Rule, ...] = (
    _no_words,
    _hinted,
    _duration,
    _longest_hold_reached,
    _fell_silent,
)

_RULES = (*_WORD_RULES, *_SOUND_RULES)
