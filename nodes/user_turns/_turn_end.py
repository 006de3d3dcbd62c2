"""Decides when a turn of the caller's is over, and tells its words, or that there are none."""

from __future__ import annotations

from bargein.bridge.events import (
    TurnLikelyOver,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)

from ._barge_in_decision import OVERRUN
from ._endpointing import ModelEndpointing, Pause
from ._sound import CLOSE_S
from ._turn_taking_state import Book
from ._types import UserTurn, Values, Voice


def look_at_turn(book: Book, turn: UserTurn) -> None:
    """End a turn whose time has come; tell what is new of one that goes on."""
    _bound_voice(book, turn)
    if _is_too_long(book, turn) or _is_over(book, turn):
        return
    text = turn.text
    if text and text != turn.told:
        turn.mark_told()
        confidence = turn.transcript.confidence
        book.publish(UserTranscriptionReceived(content=text, final=False, confidence=confidence))
    if turn.voice.is_on or not turn.transcript.is_known:
        return
    if text != turn.told_likely and not book.settings.phrases.is_unfinished(text):
        turn.mark_likely_over()
        book.publish(TurnLikelyOver(content=text))


def _bound_voice(book: Book, turn: UserTurn) -> None:
    """Let a voice count as stopped whose words are known, and which gives no sign any more."""
    if turn.voice.is_on and turn.transcript.fresh and turn.transcript.is_known:
        lost_at_s = turn.voice.sign_s + book.settings.voice_lost_s
        if book.now_s >= lost_at_s - CLOSE_S:
            turn.voice.lose(turn.voice.sign_s)
        else:
            book.look_at(lost_at_s)


def _is_too_long(book: Book, turn: UserTurn) -> bool:
    limit_s = book.settings.longest_turn_s
    if limit_s is None:
        return False
    if book.now_s < turn.began_s + limit_s - CLOSE_S:
        book.look_at(turn.began_s + limit_s)
        return False
    _end(book, turn, "forced", "longest_turn_s", {"longest_turn_s": limit_s})
    if turn.voice.is_on:
        # What goes on must not cut the answer that room was made for.
        voice = Voice(book.now_s, True, book.now_s, book.now_s, True, True)
        book.overrun(voice, OVERRUN)
    return True


def _is_over(book: Book, turn: UserTurn) -> bool:
    if turn.voice.is_on:
        return False
    settings, strategy = book.settings, book.settings.endpointing
    silent_s = turn.voice.silent_s(book.now_s)
    pause = Pause(
        score=turn.score,
        is_over=turn.is_over,
        text=turn.text,
        turn_s=book.now_s - turn.began_s,
        earlier_s=tuple(book.pauses_s),
        earlier_in_turn_s=tuple(turn.pauses_s),
        unfinished=settings.phrases.is_unfinished(turn.text),
        spelling=settings.phrases.is_spelling(turn.text),
        wants_noun=settings.phrases.wants_noun(turn.text),
        is_answer=settings.phrases.is_answer(turn.text),
    )
    wait_s = book.ask(
        "endpointing",
        lambda: _bounded(strategy.wait_s(pause)),
        lambda: ModelEndpointing().wait_s(pause),
    )
    if not turn.transcript.is_known:
        waits_until_s = turn.voice.sign_s + settings.words_within_s
        if book.now_s < waits_until_s - CLOSE_S:
            book.look_at(waits_until_s)
            return False
        limit: Values = {"words_within_s": settings.words_within_s}
        _end(book, turn, "complete", "words_within_s", {"silent_s": round(silent_s, 3), **limit})
        return True
    if silent_s < wait_s - CLOSE_S:
        book.look_at(turn.voice.since_s + wait_s)
        return False
    values: dict[str, str | float | bool] = {
        "silent_s": round(silent_s, 3),
        "wait_s": round(wait_s, 3),
    }
    if isinstance(strategy, ModelEndpointing):
        values["evidence"] = strategy.evidence(pause)
    if pause.unfinished:
        values["unfinished"] = True
    if turn.score is not None:
        values["score"] = round(turn.score, 3)
    _end(book, turn, "complete", type(strategy).__name__, values)
    return True


LONGEST_WAIT_S = 30.0
"""What a strategy may ask for at most; a mistake in one must not hang the call."""


def _bounded(wait_s: float) -> float:
    return min(max(float(wait_s), 0.0), LONGEST_WAIT_S) if wait_s == wait_s else LONGEST_WAIT_S


def _end(book: Book, turn: UserTurn, decision: str, rule: str, values: Values) -> None:
    text = turn.text
    if text:
        book.decide("end", decision, rule, values, text)
        book.publish(UserTranscriptionReceived(content=text, confidence=turn.transcript.confidence))
        book.publish(UserStoppedSpeaking())
    else:
        failure = turn.transcript.failure
        book.decide("end", failure.reason, rule, values)
        book.publish(failure.model_copy(update={"interrupted": turn.interrupted}))
    book.end_turn(turn, text)
