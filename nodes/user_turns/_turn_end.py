"""Decides when the caller's turn is over, and publishes its words, or that there are none."""

from __future__ import annotations

from bargein.bridge.events import (
    TurnLikelyOver,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)

from ._endpointing import ModelEndpointing, Pause
from ._sound_verdict import CLOSE_S
from ._turn_actions import Values
from ._turn_taking_state import TurnTakingState
from ._undecided_sound import OVERRUN
from ._user_turn import UserTurn
from ._voice_timing import VoiceTiming

FORCED_WORDS_S = 1.5
"""How long to wait for the last words of a turn whose end was forced, in seconds: recognisers
return them within a second, and a caller who has released a key waits for an answer."""


def decide_on_turn(state: TurnTakingState, turn: UserTurn) -> None:
    """End a turn whose time has come; publish what is new of one that continues."""
    _bound_voice(state, turn)
    if _is_too_long(state, turn) or _is_over(state, turn):
        return
    text = turn.text
    if text and text != turn.published_text:
        turn.mark_published()
        heard = turn.transcript
        state.publish(
            UserTranscriptionReceived(
                content=text,
                final=False,
                confidence=heard.confidence,
                language=heard.language,
                speaker=heard.speaker,
            )
        )
    if turn.voice.is_on or not turn.transcript.is_known:
        return
    if text != turn.likely_over_text and not state.settings.phrases.is_unfinished(text):
        turn.mark_likely_over()
        state.publish(TurnLikelyOver(content=text))


def _bound_voice(state: TurnTakingState, turn: UserTurn) -> None:
    """Count a voice as stopped if its words are known and there is no further sign of it."""
    if turn.voice.is_on and turn.transcript.fresh and turn.transcript.is_known:
        lost_at_s = turn.voice.sign_s + state.settings.voice_lost_s
        if state.now_s >= lost_at_s - CLOSE_S:
            turn.voice.lose(turn.voice.sign_s)
        else:
            state.ask_by(lost_at_s)


def _is_too_long(state: TurnTakingState, turn: UserTurn) -> bool:
    limit_s = state.settings.longest_turn_s
    if limit_s is None:
        return False
    if state.now_s < turn.began_s + limit_s - CLOSE_S:
        state.ask_by(turn.began_s + limit_s)
        return False
    _end(state, turn, "forced", "longest_turn_s", {"longest_turn_s": limit_s})
    if turn.voice.is_on:
        # The continuing voice must not interrupt the answer that the turn was ended for.
        voice = VoiceTiming(state.now_s, True, state.now_s, state.now_s, True, True)
        state.overrun(voice, OVERRUN)
    return True


def _is_forced_over(state: TurnTakingState, turn: UserTurn, forced_s: float) -> bool:
    """End a turn whose end was forced, once its words are known or the ear has ended it."""
    until_s = forced_s + FORCED_WORDS_S
    is_known = turn.transcript.is_known or turn.is_over
    if not is_known and state.now_s < until_s - CLOSE_S:
        state.ask_by(until_s)
        return False
    _end(state, turn, "forced", "talk_key", {"waited_s": round(state.now_s - forced_s, 3)})
    return True


def _is_over(state: TurnTakingState, turn: UserTurn) -> bool:
    if state.key_is_down:
        return False
    if turn.forced_s is not None:
        return _is_forced_over(state, turn, turn.forced_s)
    if turn.voice.is_on:
        return False
    settings, strategy = state.settings, state.settings.endpointing
    silent_s = turn.voice.silent_s(state.now_s)
    pause = Pause(
        score=turn.score,
        is_over=turn.is_over,
        text=turn.text,
        turn_s=max(0.0, turn.voice.since_s - turn.began_s),
        earlier_s=state.pauses_s,
        earlier_in_turn_s=tuple(turn.pauses_s),
        unfinished=settings.phrases.is_unfinished(turn.text),
        spelling=settings.phrases.is_spelling(turn.text),
        wants_noun=settings.phrases.wants_noun(turn.text),
        lacks_stop=settings.phrases.lacks_stop(turn.text),
        is_answer=settings.phrases.is_answer(turn.text),
        ending_confidence=turn.transcript.ending_confidence,
    )
    wait_s = state.ask(
        "endpointing",
        lambda: _bounded(strategy.wait_s(pause)),
        lambda: ModelEndpointing().wait_s(pause),
    )
    if not turn.transcript.is_known:
        waits_until_s = turn.voice.sign_s + settings.words_within_s
        if state.now_s < waits_until_s - CLOSE_S:
            state.ask_by(waits_until_s)
            return False
        limit: Values = {"words_within_s": settings.words_within_s}
        _end(state, turn, "complete", "words_within_s", {"silent_s": round(silent_s, 3), **limit})
        return True
    if silent_s < wait_s - CLOSE_S:
        state.ask_by(turn.voice.since_s + wait_s)
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
    _end(state, turn, "complete", type(strategy).__name__, values)
    return True


LONGEST_WAIT_S = 30.0
"""The longest wait that a strategy may ask for, in seconds, so that no mistake hangs the call."""


def _bounded(wait_s: float) -> float:
    return min(max(float(wait_s), 0.0), LONGEST_WAIT_S) if wait_s == wait_s else LONGEST_WAIT_S


def _end(state: TurnTakingState, turn: UserTurn, decision: str, rule: str, values: Values) -> None:
    text = turn.text
    if text:
        state.decide("end", decision, rule, values, text)
        heard = turn.transcript
        state.publish(
            UserTranscriptionReceived(
                content=text,
                confidence=heard.confidence,
                language=heard.language,
                speaker=heard.speaker,
                words=() if turn.before else heard.words,
            )
        )
        state.publish(UserStoppedSpeaking())
    else:
        failure = turn.transcript.failure
        state.decide("end", failure.reason, rule, values)
        state.publish(failure.model_copy(update={"interrupted": turn.interrupted}))
    state.end_turn(turn, text)
