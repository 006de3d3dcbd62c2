"""Decides what a sound is: a turn, an interruption, nothing, or words to keep for later."""

from __future__ import annotations

import math
from functools import partial

from ._barge_in import HoldThenDecide
from ._sound import CLOSE_S, Sound, Verdict
from ._turn_start import StartOnVoice
from ._turn_taking_state import Book
from ._types import Doubt


def look_at_doubt(book: Book, doubt: Doubt) -> None:
    """Decide as much about a sound as can be decided now."""
    if not doubt.agent_was_busy and not book.view.is_idle:
        doubt.note_agent("")
    _bound_voice(book, doubt)
    _mute(book, doubt)
    sound = _sound(book, doubt)
    if doubt.blocked:
        _look_at_blocked(book, doubt, sound)
    elif book.view.is_idle:
        _look_at_start(book, doubt, sound)
    else:
        _look_at_barge_in(book, doubt, sound)
    if book.doubt is doubt and not doubt.voice.is_on:
        # At the latest then nothing more is known of it.
        book.look_at(doubt.voice.sign_s + book.settings.words_within_s)
    if book.doubt is doubt:
        book.said_around(doubt)  # it may fall silent before the words are known


def _sound(book: Book, doubt: Doubt) -> Sound:
    voice, now_s = doubt.voice, book.now_s
    waited_s = now_s - voice.sign_s
    no_more = not voice.is_on and waited_s >= book.settings.words_within_s - CLOSE_S
    heard = doubt.transcript
    # Our own strategy compares words with what the agent says, and nothing else.
    asks = heard.segments or type(book.settings.barge_in) is not HoldThenDecide
    return Sound(
        now_s=now_s,
        voiced_s=voice.voiced_s(now_s),
        is_voiced=voice.is_on,
        silent_s=voice.silent_s(now_s),
        held_s=0.0 if doubt.held_at_s is None else now_s - doubt.held_at_s,
        hint=doubt.hint,
        hint_is_old=doubt.hinted_s < voice.began_s,
        text=heard.text,
        confidence=heard.confidence if heard.segments else None,
        unhinted_confidence=heard.unhinted_confidence if heard.segments else None,
        words_known=no_more or (heard.fresh and heard.is_known),
        waited_s=waited_s,
        agent=book.view,
        saying=book.said_around(doubt) if asks else doubt.saying,
    )


def _bound_voice(book: Book, doubt: Doubt) -> None:
    """Let a voice that never stops count as stopped."""
    voice, settings = doubt.voice, book.settings
    if not voice.is_on:
        return
    limits_s = [] if settings.longest_turn_s is None else [voice.began_s + settings.longest_turn_s]
    if doubt.transcript.fresh and doubt.transcript.is_known:
        limits_s.append(voice.sign_s + settings.voice_lost_s)
    at_s = min(limits_s, default=math.inf)
    if book.now_s >= at_s - CLOSE_S:
        voice.lose(book.now_s)
    else:
        book.look_at(at_s)


# --- while nothing interrupts -----------------------------------------------------------------


def blocking_rule(book: Book) -> str:
    """Return the rule by which the caller's voice interrupts nothing now; empty for none."""
    view, mute = book.view, book.settings.mute
    if view.is_idle:
        return ""
    if "first_message" in mute and view.first_message:
        return "mute first_message"
    if "tool" in mute and view.state == "tool":
        return "mute tool"
    return "interruptible" if view.is_audible and not view.may_be_cut else ""


def _mute(book: Book, doubt: Doubt) -> None:
    """Find out whether the sound may interrupt; words of a time when it must not stay kept."""
    rule = blocking_rule(book)
    is_now = doubt.voice.is_on or not doubt.voice.was_heard
    if rule and is_now and doubt.blocked not in (rule, OVERRUN):
        book.decide("barge_in", "muted", rule, {"state": book.view.state})
        doubt.block(rule)
        book.release(doubt)
    elif doubt.blocked == OVERRUN:
        if book.view.is_idle and doubt.transcript.text:
            doubt.block("")
    elif (
        doubt.blocked
        and not rule
        and (book.view.is_idle or doubt.voice.is_on or doubt.blocked == "interruptible")
    ):
        doubt.block("")


OVERRUN = "longest_turn_s"
"""Blocks a voice that goes on after its turn was ended by force: the agent is to say something, and
what goes on may be no voice at all.  Words show that it is one."""


def _look_at_blocked(book: Book, doubt: Doubt, sound: Sound) -> None:
    if not sound.is_over:
        return
    verdict = _judge(book, sound)
    if verdict.decision in ("acknowledgement", "echo", "noise") or not sound.text:
        _drop(book, doubt, verdict)
        return
    book.decide("barge_in", "kept", doubt.blocked, verdict.values, sound.text)
    book.keep(doubt, doubt.blocked, until_idle=doubt.blocked != "interruptible")


# --- while the agent is idle ------------------------------------------------------------------


def _look_at_start(book: Book, doubt: Doubt, sound: Sound) -> None:
    if sound.is_over and doubt.agent_was_busy and not _is_answer(book, doubt, sound):
        return
    if sound.text and sound.is_over:
        _start(book, doubt, sound, "words")
    elif sound.is_voiced or not doubt.agent_was_busy:
        _ask_start(book, doubt, sound)


def _is_answer(book: Book, doubt: Doubt, sound: Sound) -> bool:
    """Whether words that began while the agent was busy are an answer; else they are dropped."""
    verdict = _judge(book, sound)
    if verdict.decision == "echo" or not sound.text:
        _drop(book, doubt, verdict)
        return False
    late_s = book.silent_at_s - doubt.voice.since_s
    if verdict.decision == "acknowledgement" and late_s > book.settings.answer_within_s:
        _drop(book, doubt, verdict)
        return False
    return True


def _ask_start(book: Book, doubt: Doubt, sound: Sound) -> None:
    strategy, settings = book.settings.start, book.settings
    unlike = any(sound.seems(kind, settings.hint_above) for kind in ("noise", "echo"))
    if unlike and doubt.agent_was_busy and not sound.text:
        return  # its words will tell
    begins = book.ask("start", lambda: strategy.begins(sound), lambda: StartOnVoice().begins(sound))
    if begins:
        _start(book, doubt, sound, type(strategy).__name__)
        return
    if sound.is_over and not sound.text:
        _drop(book, doubt, _judge(book, sound))
        return
    after_s = book.ask("start", lambda: strategy.look_after_s, lambda: None)
    if sound.is_voiced and after_s is not None and after_s > sound.voiced_s:
        book.look_at(doubt.voice.began_s + after_s)


def _start(book: Book, doubt: Doubt, sound: Sound, rule: str) -> None:
    values = {"voiced_s": round(sound.voiced_s, 3), "overlapped": doubt.agent_was_busy}
    book.decide("start", "turn", rule, values, sound.text)
    book.begin_turn(doubt)


# --- while the agent speaks or works ----------------------------------------------------------


def _look_at_barge_in(book: Book, doubt: Doubt, sound: Sound) -> None:
    verdict = _judge(book, sound)
    if verdict.decision == "acknowledgement" and verdict.final and book.view.awaits_caller:
        verdict = Verdict("interruption", "awaits_caller", {"state": book.view.state})
    if verdict.decision == "interruption":
        book.decide("barge_in", "interruption", verdict.rule, verdict.values, sound.text)
        book.begin_turn(doubt)
    elif sound.is_over or (verdict.final and verdict.decision != "undecided"):
        _conclude(book, doubt, sound, verdict)
    else:
        _go_on(book, doubt, sound, verdict)
        book.look_at(book.now_s + verdict.look_in_s)


def _conclude(book: Book, doubt: Doubt, sound: Sound, verdict: Verdict) -> None:
    """End a doubt about a sound that does not interrupt."""
    answer_s = doubt.voice.since_s + book.settings.answer_within_s
    is_assent = verdict.decision == "acknowledgement" and not sound.is_voiced
    if is_assent and book.now_s < answer_s - CLOSE_S:
        if not doubt.let_go:
            _let_go(book, doubt, verdict)
        book.look_at(answer_s)  # the agent may be about to fall silent: then it is an answer
        return
    if verdict.decision in ("acknowledgement", "echo", "noise") or not sound.text:
        _drop(book, doubt, verdict)
        return
    book.decide("barge_in", "kept", verdict.rule, verdict.values, sound.text)
    book.keep(doubt, verdict.rule, until_idle=True)


def _go_on(book: Book, doubt: Doubt, sound: Sound, verdict: Verdict) -> None:
    if verdict.decision != "undecided":
        _let_go(book, doubt, verdict)
    elif sound.is_voiced and book.view.is_audible and not doubt.let_go:
        if doubt.held_at_s is None:
            values = {"state": book.view.state}
            book.decide("barge_in", "held", "voice", values)
        book.hold(doubt)


def _let_go(book: Book, doubt: Doubt, verdict: Verdict) -> None:
    """Let the agent go on for now; what is still to come may make it an interruption."""
    if doubt.let_agent_go_on(verdict.decision):
        book.decide("barge_in", verdict.decision, verdict.rule, {**verdict.values, "final": False})
    book.release(doubt)


def _drop(book: Book, doubt: Doubt, verdict: Verdict) -> None:
    decision = verdict.decision
    if decision not in ("acknowledgement", "echo"):
        decision = "noise"  # without words, and over
    book.decide(
        "barge_in", decision, verdict.rule or "words", verdict.values, doubt.transcript.text
    )
    failure = doubt.transcript.failure
    may_be_words = not doubt.transcript.text and failure.reason != "no_words"
    if may_be_words and doubt.blocked != OVERRUN:  # that was told when its turn was ended
        book.publish(failure)
    book.drop(doubt)


def _judge(book: Book, sound: Sound) -> Verdict:
    settings = book.settings
    return book.ask(
        "barge_in",
        partial(settings.barge_in.judge, sound, settings),
        lambda: HoldThenDecide().judge(sound, settings),
    )
